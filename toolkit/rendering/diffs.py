"""A unified diff with line numbers, and with the words that differ marked."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from toolkit.rendering.plain import more_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

__all__ = ["diff_view", "marked_pair"]

_REMOVED, _ADDED, _MARK = "red", "green", "reverse"
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
#: Lines that have less in common than this were not changed but replaced: marks would be noise.
_ALIKE = 0.4
_MOST_CHARS = 2000

Row = tuple[str, str, Text]


def diff_view(diff: str, *, max_lines: int | None = None) -> RenderableType:
    """Return a unified diff as a table: old number, new number, line.

    Args:
        diff: As `diff -u` gives it, with nothing in it that acts on a terminal.
        max_lines: Show at most so many; None for all.
    """
    # A table measures its columns before a terminal makes tabs wider; the sign has one of its own.
    lines = [f"{line[:1]}{line[1:].expandtabs(4)}" for line in diff.removesuffix("\n").split("\n")]
    rows = list(_rows(lines))
    table = Table.grid(padding=(0, 1, 0, 0))
    for _ in range(2):
        table.add_column(justify="right", style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows[:max_lines]:
        table.add_row(*row)
    if max_lines is None or len(rows) <= max_lines:
        return table
    return Group(table, more_lines(len(rows) - max_lines))


def marked_pair(old: str, new: str) -> tuple[Text, Text]:
    """Return a removed line and what took its place, the words that differ marked."""
    before, after = Text(f"-{old}", _REMOVED), Text(f"+{new}", _ADDED)
    if max(len(old), len(new)) > _MOST_CHARS:
        return before, after
    old_words, new_words = _WORDS.findall(old), _WORDS.findall(new)
    matcher = difflib.SequenceMatcher(None, old_words, new_words, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return before, after
    for what, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if what != "equal":
            _mark(before, old_words, old_from, old_to)
            _mark(after, new_words, new_from, new_to)
    return before, after


def _mark(line: Text, words: list[str], start: int, end: int) -> None:
    at = 1 + sum(map(len, words[:start]))  # behind the sign
    line.stylize(_MARK, at, at + sum(map(len, words[start:end])))


def _rows(lines: list[str]) -> Iterator[Row]:
    old = new = 0
    at = 0
    while at < len(lines):
        line = lines[at]
        hunk = _HUNK.match(line)
        if hunk is not None:
            if old or new:
                yield "", "", Text("...", "dim")
            old, new = int(hunk[1]), int(hunk[2])
        elif not (old or new) or line.startswith("\\"):
            pass  # the names above the first hunk; "\ No newline at end of file"
        elif line.startswith("-"):
            removed = _run(lines, at, "-")
            added = _run(lines, at + len(removed), "+")
            yield from _changed(removed, added, old, new)
            old, new = old + len(removed), new + len(added)
            at += len(removed) + len(added)
            continue
        elif line.startswith("+"):
            yield "", str(new), Text(line, _ADDED)
            new += 1
        else:
            yield str(old), str(new), Text(line, "dim")
            old, new = old + 1, new + 1
        at += 1


def _run(lines: list[str], start: int, sign: str) -> list[str]:
    """Return the lines from `start` on that begin with a sign, without it."""
    end = start
    while end < len(lines) and lines[end].startswith(sign):
        end += 1
    return [line[1:] for line in lines[start:end]]


def _changed(removed: list[str], added: list[str], old: int, new: int) -> Iterator[Row]:
    pairs = [marked_pair(*pair) for pair in zip(removed, added, strict=False)]
    before = [pair[0] for pair in pairs]
    before += [Text(f"-{line}", _REMOVED) for line in removed[len(pairs) :]]
    after = [pair[1] for pair in pairs]
    after += [Text(f"+{line}", _ADDED) for line in added[len(pairs) :]]
    yield from ((str(old + index), "", line) for index, line in enumerate(before))
    yield from (("", str(new + index), line) for index, line in enumerate(after))
