"""Nodes of a syntax tree as words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.policy.words import Piece, Word, joined, unescaped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

__all__ = ["text_of", "words_of"]

#: Nothing in it is for the shell.
_PLAIN_WORD = re.compile(r"[\w./:,=@%+-]{1,120}")
_DYNAMIC = frozenset({"command_substitution", "arithmetic_expansion", "expansion"})
_UNKNOWN = Piece(None, quoted=False)


def words_of(nodes: Iterable[Node]) -> list[Word]:
    """Return the words that nodes stand for; braces can make several of one."""
    words: list[Word] = []
    for node in nodes:
        kind = node.type
        if kind == "comment":
            continue
        text = text_of(node)
        if kind in ("word", "number", "command_name") and _PLAIN_WORD.fullmatch(text):
            words.append(Word(text, text))
        else:
            words += joined(_pieces(node), text)
    return words


def _pieces(node: Node) -> list[Piece]:
    kind = node.type
    if kind in ("word", "number", "variable_name"):
        return unescaped(text_of(node), kind="word") if not node.named_child_count else [_UNKNOWN]
    if kind == "raw_string":
        return [Piece(text_of(node)[1:-1], quoted=True)]
    if kind in ("string", "translated_string"):
        return _string_pieces(node)
    if kind == "ansi_c_string":
        return unescaped(text_of(node)[2:-1], kind="ansi")
    if kind == "concatenation":
        # Anonymous parts belong to the word too; a gap would be a blank.
        return [piece for child in node.children for piece in _pieces(child)]
    if kind == "command_name":
        return [piece for child in node.children for piece in _pieces(child)]
    if kind == "process_substitution":
        return [Piece("/dev/fd/63", quoted=True)]
    if kind in ("simple_expansion", "expansion") and (known := _known_variable(text_of(node))):
        return [known]
    if kind in _DYNAMIC or node.named_child_count:
        return [_UNKNOWN]
    return unescaped(text_of(node), kind="word") if not node.is_named else [_UNKNOWN]


def _string_pieces(node: Node) -> list[Piece]:
    if node.type == "translated_string":
        return [piece for child in node.named_children for piece in _string_pieces(child)]
    raw = node.text or b""
    pieces: list[Piece] = []
    at = 1
    for child in node.named_children:
        if child.type == "string_content":
            continue
        start = child.start_byte - node.start_byte
        pieces += unescaped(_decoded(raw[at:start]), kind="string") if start > at else []
        pieces += _pieces(child)
        at = child.end_byte - node.start_byte
    return [*pieces, *unescaped(_decoded(raw[at:-1]), kind="string")]


def _known_variable(text: str) -> Piece | None:
    name = text.strip("${}")
    if text not in (f"${name}", f"${{{name}}}"):
        return None
    if name == "HOME":
        return Piece("~", quoted=False, folder=True)
    return Piece(".", quoted=True, folder=True) if name == "PWD" else None


def text_of(node: Node) -> str:
    """Return the source of a node."""
    return _decoded(node.text or b"")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")
