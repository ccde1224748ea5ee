"""A shell command taken apart: every program that it runs, every path that it is known to change.

The answer errs to one side only. What cannot be decided (a name in a variable, code that comes
from somewhere else, syntax that is not understood) is `unknown`, never left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from toolkit.policy.effects import path_uses
from toolkit.policy.inner import Inner, Source, Undecided
from toolkit.policy.options import read_options
from toolkit.policy.path_use import PathUse
from toolkit.policy.syntax import ParserMissing, read_script
from toolkit.policy.variables import is_risky
from toolkit.policy.words import Word
from toolkit.policy.wrappers import PLAIN, inner_commands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.policy.options import Options
    from toolkit.policy.syntax import Script

__all__ = ["ParsedCommand", "PathUse", "SimpleCommand", "Unknown", "Word", "parse_command"]

_MOST_NESTED = 20
_MOST_COMMANDS = 2000
_MOST_SHOWN = 120
_BINS = frozenset(f"{at}{name}" for at in ("/", "/usr/", "/usr/local/") for name in ("bin", "sbin"))
_KEYWORDS = frozenset(
    {"!", "{", "}", "[[", "]]", "case", "do", "done", "elif", "else", "esac", "fi", "for"}
    | {"function", "if", "in", "select", "then", "until", "while"}
)
_SETTERS = frozenset(
    {"declare", "export", "getopts", "local", "read", "readonly", "typeset", "unset"}
)


@dataclass(frozen=True)
class SimpleCommand:
    r"""One program with its arguments.

    Attributes:
        name: What runs: "rm" for `rm`, `\rm` and `/bin/rm`, but "./rm" for that one.
        words: Its arguments.
        shown: Its source, cut.
    """

    name: str
    words: tuple[Word, ...]
    shown: str

    @cached_property
    def options(self) -> Options:
        """The arguments taken apart, as far as that goes without knowing the program."""
        return read_options(self.words)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something that nobody can say before it runs.

    Attributes:
        reason: Why.
        shown: Where, in the command's words.
        command: The command that it belongs to, if its program is known.
    """

    reason: str
    shown: str
    command: SimpleCommand | None = None


@dataclass(slots=True)
class ParsedCommand:
    """What a shell command comes to.

    Attributes:
        text: The command.
        commands: Every program that it runs, whatever else decides whether it does.
        paths: What it is known to read, write or delete.
        folders: Where its `cd` lead; a relative path may mean one in any of them.
        unknown: What cannot be decided; empty only if all was understood.
    """

    text: str
    commands: list[SimpleCommand] = field(default_factory=list)
    paths: list[PathUse] = field(default_factory=list)
    folders: list[Word] = field(default_factory=list)
    unknown: list[Unknown] = field(default_factory=list)


def parse_command(text: str) -> ParsedCommand:
    """Take a shell command apart; it never raises.

    Without the extra `policy` (tree-sitter-bash), and beyond 64 KiB, all of it is one `Unknown`.
    """
    parsed = ParsedCommand(text)
    try:
        _read(text, parsed, depth=0)
    except ParserMissing:
        _doubt(parsed, "commands cannot be parsed without remotehands[policy]", text)
    except Exception as error:
        _doubt(parsed, f"it could not be parsed ({type(error).__name__})", text)
    return parsed


def _doubt(
    parsed: ParsedCommand, reason: str, shown: str, command: SimpleCommand | None = None
) -> None:
    parsed.unknown.append(Unknown(reason, shown[:_MOST_SHOWN], command))


def _read(text: str, parsed: ParsedCommand, *, depth: int) -> None:
    if depth > _MOST_NESTED:
        _doubt(parsed, "commands are nested too deeply in others", text)
        return
    script = read_script(text)
    for problem in script.problems:
        _doubt(parsed, problem, text)
    for name in script.assigned:
        if is_risky(name):
            _doubt(parsed, f"it sets {name}, which changes what other programs do", text)
    _look_for_loops(script, parsed)
    parsed.paths += [PathUse("write", word) for word in script.writes]
    parsed.paths += [PathUse("read", word) for word in script.reads]
    for statement in script.statements:
        for name in statement.assigned:
            if is_risky(name):
                _doubt(parsed, f"it sets {name}, which changes what runs", statement.shown)
        _add(statement.words, statement.shown, parsed, depth)


def _add(words: Sequence[Word], shown: str, parsed: ParsedCommand, depth: int) -> None:
    program, *rest = words
    shown = shown[:_MOST_SHOWN]
    if len(parsed.commands) >= _MOST_COMMANDS:
        raise RecursionError
    if program.text is None or program.glob or program.home or not program.text:
        _doubt(parsed, "the name of a program is known only when it runs", shown)
        return
    if program.text in _KEYWORDS:
        _doubt(parsed, f"{program.text} stands where a program is expected", shown)
        return
    name = _name(program.text)
    command = SimpleCommand(name, tuple(rest), shown)
    # A program elsewhere with a known name is taken to do the same, but not to do no more.
    known_as = program.text.rpartition("/")[2]
    inner = inner_commands(known_as, rest)
    if name not in PLAIN or not inner:
        parsed.commands.append(command)
    _look_at_builtins(command, parsed)
    for use in path_uses(known_as, rest):
        if isinstance(use, PathUse):
            parsed.paths.append(use)
        else:
            _doubt(parsed, use, shown, command)
    if depth > _MOST_NESTED and inner:
        _doubt(parsed, "commands are nested too deeply in others", shown)
        return
    for each in inner:
        if isinstance(each, Undecided):
            _doubt(parsed, each.reason, shown, command)
        elif isinstance(each, Source):
            _read(each.text, parsed, depth=depth + 1)
        elif isinstance(each, Inner) and each.words:
            source = " ".join(word.shown for word in each.words)
            _add(each.words, source, parsed, depth + 1)


def _name(program: str) -> str:
    folder, _, name = program.rpartition("/")
    return name if folder in _BINS and name else program


def _look_at_builtins(command: SimpleCommand, parsed: ParsedCommand) -> None:
    name, words = command.name, command.words
    if name in ("cd", "pushd"):
        operands = read_options(words).operands
        parsed.folders.append(operands[0] if operands else Word("~", "~", home=True))
        if operands and (operands[0].text or "-")[:1] in ("-", "+"):
            _doubt(
                parsed, f"the folder of {name} is known only when it runs", command.shown, command
            )
    elif name == "popd":
        _doubt(parsed, "the folder of popd is known only when it runs", command.shown, command)
    if name in ("declare", "local", "typeset") and command.options.has("n"):
        _doubt(parsed, "a variable is made a name of another one", command.shown, command)
    if name in _SETTERS or (name == "printf" and words[:1] and words[0].text == "-v"):
        for word in words:
            known = word.prefix if word.text is None else word.text
            if is_risky(known.partition("=")[0]) or (word.text is None and "=" not in known):
                reason = f"{word.shown} may be a variable that changes what runs"
                _doubt(parsed, reason, command.shown, command)


def _look_for_loops(script: Script, parsed: ParsedCommand) -> None:
    bodies = dict(script.functions)
    for name in bodies:
        seen: set[str] = set()
        waiting = list(bodies[name])
        while waiting:
            called = waiting.pop()
            if called == name:
                _doubt(parsed, f"the function {name} calls itself", parsed.text)
                break
            if called not in seen and called in bodies:
                seen.add(called)
                waiting += bodies[called]
