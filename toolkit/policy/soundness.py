"""Whether a tree has all of a command in it, whatever its grammar makes of the rest.

The grammar and the shell differ in places: backticks, words that are put together, quotes within
quotes. A tree may be free of errors then and still hide a command. So it is counted: everything in
the source that can begin a substitution must begin one in the tree, and words must be whole.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["LEAVES", "Substitutions"]

_BEGINNINGS = re.compile(rb"\\.|`|\$\(|[<>]\(", re.DOTALL)
_ESCAPED = (b"\\$", b"\\`")
_SUBSCRIPT_BYTES = 100
#: Where the shell evaluates the values of variables as expressions.
_ARITHMETIC = re.compile(
    rb"\(\(|\[\[|\$\{|\w\[|-(?:eq|ne|lt|gt|le|ge|v)\b"
    rb"|\b(?:let|declare|typeset|local|export|readonly|unset|read|printf|test)\b"
)
_SUBSTITUTIONS = frozenset(
    {"command_substitution", "process_substitution", "arithmetic_expansion", "compound_statement"}
)
_COMMANDS = frozenset({"command", "declaration_command", "unset_command", "variable_assignments"})
_REDIRECTED = frozenset({"file_redirect", "redirected_statement", "variable_assignment"})
#: What a bare word never holds.
_NO_WORD = re.compile(rb"\n|(?<!\\)\$|\A\{[ \t]")
_EDGES = b" \t\n;|&()`<>"
#: A blank that begins a word, and a "$" that is one: the grammar passes over both.
_PASSED_OVER = re.compile(rb"(?:^|[^\w./~,:+-])\\[ \t]|\$(?=[\s;|&<>)`]|$)")
_OPAQUE = frozenset({"raw_string", "ansi_c_string", "comment"})
#: The nodes without children that have to be looked at.
LEAVES = frozenset({"word", "command_substitution", "process_substitution", *_OPAQUE})
_WORDS = frozenset(
    {"word", "number", "string", "raw_string", "ansi_c_string", "translated_string", "expansion"}
    | {"simple_expansion", "command_substitution", "process_substitution", "concatenation"}
    | {"arithmetic_expansion", "brace_expression", "command_name"}
)


@dataclass(slots=True)
class Substitutions:
    """What the nodes of a tree have shown so far.

    Attributes:
        source: What the tree is of.
        problem: Why the tree cannot be trusted, or "".
    """

    source: bytes
    problem: str = ""
    _known: set[int] = field(default_factory=set)
    _opaque: list[tuple[int, int]] = field(default_factory=list)

    def look(self, node: Node, children: list[Node]) -> None:
        """Take a node into account."""
        kind = node.type
        if kind in _SUBSTITUTIONS:
            self._known.add(node.start_byte)
            if kind == "command_substitution" and (text := node.text or b"").startswith(b"`"):
                self._known.add(node.end_byte - 1)
                if b"\\" in text:
                    self.problem = "backticks and backslashes within backticks are not understood"
        elif kind == "word" and _NO_WORD.search(node.text or b""):
            self.problem = "where its words begin and end is not clear"
        elif kind in _OPAQUE:
            self._opaque.append((node.start_byte, node.end_byte))
        elif kind == "heredoc_redirect":
            self._look_at_document(children)
        if kind in _COMMANDS:
            self._look_at_command(node, children)
            return
        if kind in _REDIRECTED:
            self._look_at_lines(node, children)
        if kind == "concatenation":
            children = node.children  # braces are no named nodes
        if len(children) > 1 and kind != "string":
            self._look_at_words(kind, children)

    def missing(self) -> str:
        """Return why something may be hidden in the source, once all nodes were looked at."""
        source = self.source
        if self.problem:
            return self.problem
        self._opaque.sort()
        quoted = False
        for found in _BEGINNINGS.finditer(source):
            at = found.start()
            if found[0] in _ESCAPED or self._is_opaque(at):
                quoted |= b"[" in source[max(0, at - _SUBSCRIPT_BYTES) : at]
            elif found[0][:1] != b"\\" and at not in self._known:
                return f"what {found[0].decode()} begins in it is not understood"
        if any(not self._is_opaque(each.end() - 1) for each in _PASSED_OVER.finditer(source)):
            return "a blank or a dollar sign in it is not understood"
        if quoted and _ARITHMETIC.search(source):
            # `x='a[$(rm b)]'; echo $((x))`: arithmetic runs what was quoted before.
            return "a subscript in quotes may run a command"
        return ""

    def _is_opaque(self, at: int) -> bool:
        number = bisect_right(self._opaque, (at, 1 << 62)) - 1
        return number >= 0 and at < self._opaque[number][1]

    def _look_at_document(self, children: list[Node]) -> None:
        quoted = False
        for child in children:
            if child.type == "heredoc_start":
                quoted = any(mark in (child.text or b"") for mark in (b"'", b'"', b"\\"))
            elif child.type == "heredoc_body" and quoted:
                self._opaque.append((child.start_byte, child.end_byte))

    def _look_at_command(self, node: Node, children: list[Node]) -> None:
        """See that words begin where the shell begins one, and that only blanks are between."""
        source = self.source
        end, was_word = node.start_byte, False
        for child in children:
            begin = child.start_byte
            is_word = child.type in _WORDS
            if (begin and source[begin - 1] not in _EDGES) or (begin == end and was_word & is_word):
                self.problem = "where its words begin and end is not clear"
            if end < begin and was_word | (end != node.start_byte):
                self._look_at_gap(end, begin)
            end, was_word = child.end_byte, is_word
        self._look_at_gap(end, node.end_byte)

    def _look_at_gap(self, end: int, begin: int) -> None:
        if begin - end > 1 or (begin > end and self.source[end] not in b" \t"):
            between = self.source[end:begin].replace(b"\\\n", b"")
            if between.strip(b" \t"):
                self.problem = "what belongs to one of its commands is not clear"

    def _look_at_lines(self, node: Node, children: list[Node]) -> None:
        """See that a redirection ends with its line, and that a value follows its "=" at once."""
        text = node.text or b""
        start = node.start_byte
        for before, child in pairwise(children):
            gap = text[before.end_byte - start : child.start_byte - start]
            if b"\n" in gap.replace(b"\\\n", b"") or (b"=" in gap and len(gap) > len(b"+=")):
                self.problem = "where its lines end is not clear"

    def _look_at_words(self, kind: str, children: list[Node]) -> None:
        whole = kind == "concatenation"
        for before, child in pairwise(children):
            touch = child.start_byte == before.end_byte
            both = before.type in _WORDS and child.type in _WORDS
            if touch is not whole and (whole or both):
                self.problem = "where its words begin and end is not clear"
