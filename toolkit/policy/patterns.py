"""The two patterns that rules are written in: globs for paths, words for commands. Pure."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from toolkit.policy.options import read_options
from toolkit.policy.words import Word, expand_braces

if TYPE_CHECKING:
    from toolkit.policy.commands import SimpleCommand

__all__ = ["CommandPattern", "PathGlob", "command_pattern", "path_glob", "path_globs"]


@dataclass(frozen=True, slots=True)
class PathGlob:
    """A compiled glob, or several, for absolute paths; see `path_glob`.

    Attributes:
        literal: The paths that it fits, where it has no wildcards.
        alternatives: Where it has: what stands before them, and all parts.
        beginnings: The paths without wildcards, and what stands before the wildcards of others.
    """

    literal: frozenset[str]
    alternatives: tuple[tuple[str, tuple[re.Pattern[str] | None, ...]], ...]
    beginnings: tuple[str, ...]

    def fits(self, path: str) -> bool:
        """Whether the glob fits a path that is absolute and lexically normal."""
        if path in self.literal:
            return True
        parts: list[str] | None = None
        for beginning, glob in self.alternatives:
            if path.startswith(beginning):
                parts = parts or [part for part in path.split("/") if part]
                if _fits(glob, parts):
                    return True
        return False

    def may_fit_beneath(self, path: str) -> bool:
        """Whether what the glob names stands in the folder `path`, as its beginning tells."""
        folder = path.rstrip("/") + "/"
        return any(beginning.startswith(folder) for beginning in self.beginnings)


def _fits(glob: tuple[re.Pattern[str] | None, ...], parts: list[str]) -> bool:
    """Match part by part; the work is at most (parts of the glob) x (parts of the path)."""
    reached = {0}
    for pattern in glob:
        if pattern is None:
            reached = set(range(min(reached), len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and pattern.match(parts[at])}
        if not reached:
            return False
    return len(parts) in reached


def path_globs(texts: tuple[str, ...], cwd: str, home: str) -> PathGlob:
    """Compile globs into one that fits what any of them fits; as `path_glob`."""
    globs = [path_glob(text, cwd, home) for text in texts]
    return PathGlob(
        frozenset(path for glob in globs for path in glob.literal),
        tuple(each for glob in globs for each in glob.alternatives),
        tuple(each for glob in globs for each in glob.beginnings),
    )


def path_glob(text: str, cwd: str, home: str) -> PathGlob:
    """Compile a glob for paths.

    `*`, `?` and `[...]` stay inside one part of a path, `**` as a whole part is any number of
    parts, `{a,b}` is one of several. A glob that begins with "/" is absolute, with "~/" beneath
    the home folder, with "**" anywhere; any other is beneath the working folder, and "." is that.

    Args:
        text: The glob.
        cwd: The absolute working folder.
        home: The absolute home folder.

    Raises:
        ValueError: It has too many alternatives, or names somebody else's home.
    """
    expanded = expand_braces(text)
    if expanded is None:
        raise ValueError(f"{text!r}: {{...}} takes names with commas, and few of them")
    literal: set[str] = set()
    alternatives: list[tuple[str, tuple[re.Pattern[str] | None, ...]]] = []
    beginnings: list[str] = []
    for each in expanded:
        absolute = _absolute(each, cwd, home)
        parts = [part for part in absolute.split("/") if part not in ("", ".")]
        if ".." in parts:
            raise ValueError(f"{text!r}: '..' has no place in a glob; write the path out")
        plain = next((at for at, part in enumerate(parts) if _is_wild(part)), len(parts))
        beginning = "/".join(["", *map(_unescaped, parts[:plain])])
        if plain == len(parts):
            literal.add(beginning or "/")
            beginnings.append(beginning or "/")
        else:
            beginnings.append(beginning + "/")
            alternatives.append((beginning, tuple(map(_part, parts))))
    return PathGlob(frozenset(literal), tuple(alternatives), tuple(beginnings))


def _absolute(text: str, cwd: str, home: str) -> str:
    if text == "~" or text.startswith("~/"):
        return _escaped(home) + text[1:]
    if text.startswith("~"):
        raise ValueError(f"{text!r}: only ~/ (the target's user's home) is known, no other's")
    return text if text.startswith(("/", "**")) else f"{_escaped(cwd)}/{text}"


def _part(part: str) -> re.Pattern[str] | None:
    return None if part == "**" else re.compile(fnmatch.translate(part))


def _escaped(folder: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", posixpath.normpath(folder)).rstrip("/")


def _unescaped(part: str) -> str:
    return re.sub(r"\[([*?\[])\]", r"\1", part)


def _is_wild(part: str) -> bool:
    return any(character in _LITERAL_CLASS.sub("", part) for character in "*?[")


_LITERAL_CLASS = re.compile(r"\[[*?\[]\]")


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """A compiled pattern for simple commands; see `command_pattern`."""

    text: str
    program: re.Pattern[str]
    letters: frozenset[str]
    names: frozenset[str]
    operands: tuple[re.Pattern[str], ...]

    @property
    def literal_program(self) -> str:
        """The program's name, or "" when it has wildcards."""
        name = self.text.split()[0]
        return "" if "*" in name or "?" in name else name

    def fits(self, command: SimpleCommand, *, certain: bool) -> bool:
        """Whether the pattern fits.

        Args:
            command: What would run.
            certain: True for a rule that allows: then the operands stand in front and no option
                that the pattern does not name is before them. False for one that asks or denies:
                then they may have others between them.
        """
        if not (
            self.program.match(command.name)
            or (not certain and self.program.match(command.name.rpartition("/")[2]))
        ):
            return False
        return self.fits_arguments(command, certain=certain)

    def fits_arguments(self, command: SimpleCommand, *, certain: bool) -> bool:
        """As `fits`, where the program is known to be the right one."""
        options = command.options
        operands = options.operands
        if self.letters and not self.letters <= {letter for letter, _ in options.short}:
            return False
        if self.names:
            long = {name for name, _ in options.long}
            if not all(any(name.startswith(each) for each in long) for name in self.names):
                return False
        if not certain:
            return _in_order(self.operands, operands)
        if self.operands and options.before and not (self.letters or self.names):
            return False
        return len(operands) >= len(self.operands) and all(
            _fits_word(pattern, word)
            for pattern, word in zip(self.operands, operands, strict=False)
        )


def _in_order(patterns: tuple[re.Pattern[str], ...], words: list[Word]) -> bool:
    rest = iter(words)
    return all(any(_fits_word(pattern, word) for word in rest) for pattern in patterns)


def _fits_word(pattern: re.Pattern[str], word: Word) -> bool:
    return word.text is not None and pattern.fullmatch(word.text) is not None


@lru_cache(maxsize=1024)
def command_pattern(text: str) -> CommandPattern:
    """Compile a pattern for commands, as "git push" or "rm -r /*".

    Its first word is the program. Its options must all be given, in any order and spelling
    (`-r -f` is `-fr`, `--rec` is `--recursive`). Its other words must be among the operands, in
    order; `*` and `?` in them stand for any characters. More operands may follow.

    Raises:
        ValueError: It has no program, or holds shell syntax, which is not matched as text.
    """
    if found := re.search(r"[|;&<>`$()\n]", text):
        raise ValueError(
            f"{text!r} has {found.group()!r}: a pattern is one program with its arguments; pipes "
            "and lists are taken apart before it is matched"
        )
    program, *rest = text.split() or [""]
    if not program or program.startswith("-"):
        raise ValueError(f"{text!r}: a pattern begins with the name of a program")
    options = read_options([Word(each, each) for each in rest])
    return CommandPattern(
        text,
        _wildcards(program),
        frozenset(letter for letter, _ in options.short),
        frozenset(name for name, _ in options.long),
        tuple(_wildcards(word.text or "") for word in options.operands),
    )


def _wildcards(text: str) -> re.Pattern[str]:
    """Compile `*` and `?`; brackets are themselves, since `[` is a program."""
    return re.compile(fnmatch.translate(text.replace("[", "[[]")))
