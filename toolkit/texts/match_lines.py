"""Matches of a search as lines of text: `path:12: match`, `path-11- context`. Pure."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from toolkit.texts.text import without_terminal_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from operations import GrepMatch

__all__ = ["match_lines", "match_values"]

_CUT = " [part of a longer line]"


def match_lines(
    matches: Sequence[GrepMatch], shown: Callable[[str], str], *, context: bool
) -> Iterator[str]:
    """Yield one text for each line to show.

    Args:
        matches: In order of path, then line.
        shown: Gives a match's path as the model is to see it.
        context: Show the lines around matches too; "--" then stands between runs of lines.
    """
    first = True
    for path, group in groupby(matches, key=lambda match: match.path):
        name = shown(path)
        previous = None
        for number, (text, mark) in sorted(_lines(group, context=context).items()):
            if context and not first and (previous is None or number > previous + 1):
                yield "--"
            first, previous = False, number
            yield f"{name}{mark}{number}{mark} {without_terminal_codes(text)}"


def _lines(group: Iterable[GrepMatch], *, context: bool) -> dict[int, tuple[str, str]]:
    """Return text and mark of each line to show; windows of near matches overlap."""
    matches = list(group)
    lines: dict[int, tuple[str, str]] = {}
    if context:
        for match in matches:
            for near in (*match.before, *match.after):
                lines[near.line] = (near.text, "-")
    for match in matches:
        lines[match.line] = (f"{match.text}{_CUT if match.cut else ''}", ":")
    return lines


def match_values(matches: Sequence[GrepMatch], shown: Callable[[str], str]) -> list[dict[str, Any]]:
    """Return the matches for programs."""
    return [
        {
            "path": shown(match.path),
            "line": match.line,
            "text": match.text,
            "cut": match.cut,
            "before": [{"line": near.line, "text": near.text} for near in match.before],
            "after": [{"line": near.line, "text": near.text} for near in match.after],
        }
        for match in matches
    ]
