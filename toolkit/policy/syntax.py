"""The syntax of a shell command: every simple command and redirection in it, wherever it stands.

tree-sitter-bash makes the tree. Nothing of its structure is relied on but this: whatever runs is
somewhere in it. So all of it is looked at, and a tree with an error in it counts as undecided.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from toolkit.policy.nodes import text_of, words_of
from toolkit.policy.soundness import LEAVES, Substitutions
from toolkit.policy.words import Word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Language, Node, Parser

__all__ = ["ParserMissing", "Script", "Statement", "read_script"]

#: A longer command is undecided: reading it would hold everything else up.
MAX_BYTES = 64 * 1024
_MOST_NODES = 10_000
_MOST_DEPTH = 200
#: A longer function is not looked at for calls of itself.
_MOST_BODY_BYTES = 2000

#: The shell makes one word of it, the grammar two.
_GLUED = re.compile(r"\S\\\n\S")
_ASSIGNABLE = re.compile(r"[A-Za-z_]\w*(?:\[.*\])?", re.DOTALL | re.ASCII)
_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_DECLARATIONS = frozenset({"declaration_command", "unset_command"})


class ParserMissing(ImportError):
    """The parser is not installed."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A simple command as it is written.

    Attributes:
        words: The program and its arguments.
        assigned: Names of the variables that are set for it.
        shown: Its source.
    """

    words: tuple[Word, ...]
    assigned: tuple[str, ...]
    shown: str


@dataclass(slots=True)
class Script:
    """All that was found in a command.

    Attributes:
        statements: Its simple commands.
        writes: Where redirections write.
        reads: Where redirections read.
        assigned: Names of the variables that it sets.
        problems: Why it is undecided.
        functions: Names of its functions, each with the names of the commands in its body.
    """

    statements: list[Statement] = field(default_factory=list)
    writes: list[Word] = field(default_factory=list)
    reads: list[Word] = field(default_factory=list)
    assigned: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    functions: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)


@cache
def _language() -> Language:
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError as error:
        raise ParserMissing from error
    return tree_sitter.Language(tree_sitter_bash.language())


def _parser() -> Parser:
    """Return a new parser: one is cheap, and must not be used by two threads."""
    language = _language()
    import tree_sitter

    return tree_sitter.Parser(language)


def read_script(text: str) -> Script:
    """Read a command.

    Raises:
        ParserMissing: The extra `policy` is not installed.
    """
    script = Script()
    parser = _parser()
    if strange := next((each for each in text if each < " " and each not in "\n\t"), None):
        # The shell and the grammar may see different things in it.
        script.problems.append(f"it has the control character {strange!r}")
        return script
    if _GLUED.search(text):
        script.problems.append("a line is continued within a word")
        return script
    source = text.encode("utf-8", "surrogatepass")
    if len(source) > MAX_BYTES:
        script.problems.append(f"it has {len(source)} bytes; up to {MAX_BYTES} are looked at")
        return script
    root = parser.parse(source).root_node
    if root.has_error:
        script.problems.append("it is not a syntax that is understood")
    _walk(root, source, script)
    return script


def _walk(root: Node, source: bytes, script: Script) -> None:
    waiting = [(root, 0)]
    substitutions = Substitutions(source)
    seen = 0
    while waiting:
        node, depth = waiting.pop()
        seen += 1
        if seen > _MOST_NODES or depth > _MOST_DEPTH:
            script.problems.append("it is too long or too deeply nested to be looked at whole")
            return
        children = node.named_children
        if children or node.type in LEAVES:
            substitutions.look(node, children)
        if children:
            _look(node, children, script)
            waiting += [(child, depth + 1) for child in reversed(children)]
    if missing := substitutions.missing():
        script.problems.append(missing)


def _look(node: Node, children: list[Node], script: Script) -> None:
    kind = node.type
    if kind == "command":
        _add_statement(node, children, script)
    elif kind == "file_redirect":
        _add_redirect(node, script)
    elif kind in _DECLARATIONS:
        first = node.children[0].type
        words = [Word(first, first)]
        for child in children:
            if child.type == "variable_assignment":
                words.append(
                    Word(None, text_of(child), prefix=f"{text_of(child.named_children[0])}=")
                )
            else:
                words += words_of([child])
        _add(node, words, (), script)
    elif kind == "function_definition":
        body = node.child_by_field_name("body")
        short = body is not None and body.end_byte - body.start_byte <= _MOST_BODY_BYTES
        names = tuple(_names(body)) if body is not None and short else ()
        script.functions.append((text_of(children[0]), names))
    elif kind == "variable_assignment":
        name = text_of(children[0])
        script.assigned.append(name.partition("[")[0])
        if not _ASSIGNABLE.fullmatch(name):
            script.problems.append(f"{name[:40]} is no variable")
    elif kind in ("for_statement", "select_statement"):
        script.assigned.append(text_of(children[0]))
    elif kind == "ERROR" and not script.problems:
        script.problems.append("it is not a syntax that is understood")


def _add_statement(node: Node, children: list[Node], script: Script) -> None:
    assigned: list[str] = []
    redirects: list[Node] = []
    arguments: list[Node] = []
    for child in children:
        kind = child.type
        if kind == "variable_assignment":
            assigned.append(text_of(child.named_children[0]).partition("[")[0])
        else:
            (redirects if kind in _REDIRECTS else arguments).append(child)
    parent = node.parent
    if parent is not None and parent.type == "redirected_statement":
        redirects += [child for child in parent.named_children if child.type in _REDIRECTS]
    words = words_of(arguments) + _behind(redirects)
    _add(node, words, tuple(assigned), script)


def _add(node: Node, words: list[Word], assigned: tuple[str, ...], script: Script) -> None:
    if words:
        script.statements.append(Statement(tuple(words), assigned, text_of(node)))


def _behind(redirects: list[Node]) -> list[Word]:
    """Return arguments that stand behind a redirection, which the grammar counts as part of it."""
    words: list[Word] = []
    for redirect in redirects:
        if redirect.type == "file_redirect":
            words += words_of(redirect.children_by_field_name("destination")[1:])
        elif redirect.type == "heredoc_redirect":
            words += words_of(redirect.children_by_field_name("argument"))
    return words


def _add_redirect(node: Node, script: Script) -> None:
    destinations = node.children_by_field_name("destination")
    operator = next((child.type for child in node.children if not child.is_named), "")
    words = words_of(destinations[:1])
    parent = node.parent
    if len(destinations) > 1 and parent is not None and parent.type == "redirected_statement":
        body = parent.child_by_field_name("body")
        if body is None or body.type != "command":
            script.problems.append("words stand behind a redirection that is not of one command")
    if operator in ("<&", ">&") and words and _is_descriptor(words[0]):
        return
    if "<" in operator:
        script.reads += words
    if ">" in operator:
        script.writes += words


def _is_descriptor(word: Word) -> bool:
    return word.text is not None and word.text.rstrip("-").isdigit()


def _names(body: Node) -> Iterator[str]:
    """Return the names of the commands that stand in a function."""
    waiting = [body]
    while waiting:
        node = waiting.pop()
        if node.type == "command_name":
            yield text_of(node)
        waiting += node.named_children
