"""The lines of a file that an old text which is not there most likely meant."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from heapq import nlargest
from typing import TYPE_CHECKING

from toolkit.texts.text import without_terminal_codes

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["describe_closest"]

_WORD = re.compile(r"\w+|[^\w\s]")
_LINES_LOOKED_AT = 50_000
_CHARS_LOOKED_AT = 400
_FINALISTS = 8
_PLACES_SHOWN = 2
_LINES_SHOWN = 6
_CHARS_SHOWN = 200


def describe_closest(text: str, old_text: str) -> str:
    """Show where the file is most like `old_text`, with line numbers, and what differs.

    The work is bounded for files and lines of any size.

    Returns:
        Lines of text, or "" when nothing in the file is like it.
    """
    wanted = old_text.replace("\r\n", "\n").split("\n")
    anchor = max(range(min(len(wanted), 20)), key=lambda index: len(wanted[index].strip()))
    if not wanted[anchor].strip():
        return ""
    lines = _first_lines(text)
    best = _most_alike(lines, wanted[anchor])
    places = [max(0, index - anchor) for index in best]
    shown = ["The closest lines of the file:"]
    for place in sorted(dict.fromkeys(places)):
        count = min(len(wanted) - (1 if wanted[-1] == "" else 0), _LINES_SHOWN)
        shown += [
            f"  {number + 1}: {_short(lines[number])}"
            for number in range(place, min(place + count, len(lines)))
        ]
    if not best:
        return ""
    return "\n".join([*shown, *_difference(lines, places[0], wanted)])


def _first_lines(text: str) -> list[str]:
    lines: list[str] = []
    at = 0
    while at < len(text) and len(lines) < _LINES_LOOKED_AT:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        lines.append(text[at : min(end, at + 10_000)].removesuffix("\r"))
        at = end + 1
    return lines


def _most_alike(lines: list[str], wanted: str) -> list[int]:
    """Return the numbers of up to `_PLACES_SHOWN` lines, the most alike first."""
    words = frozenset(_WORD.findall(wanted[:_CHARS_LOOKED_AT]))
    if not words:
        return []

    def common(line: str) -> float:
        found = frozenset(_WORD.findall(line[:_CHARS_LOOKED_AT]))
        return len(words & found) / max(len(words | found), 1)

    scores = {line: common(line) for line in frozenset(lines)}
    finalists = nlargest(_FINALISTS, range(len(lines)), key=lambda index: scores[lines[index]])
    target = wanted.strip()[:_CHARS_LOOKED_AT]
    rated = [
        (SequenceMatcher(None, lines[index].strip()[:_CHARS_LOOKED_AT], target).ratio(), -index)
        for index in finalists
    ]
    good = sorted((each for each in rated if each[0] >= 0.5), reverse=True)
    return [-index for ratio, index in good if ratio >= good[0][0] - 0.03][:_PLACES_SHOWN]


def _difference(lines: list[str], place: int, wanted: list[str]) -> Iterator[str]:
    """Say what differs first, comparing line by line from the best place on."""
    for offset, line in enumerate(wanted):
        number = place + offset
        if number >= len(lines):
            yield f"The file ends before line {number + 1}, where old_text goes on."
            return
        have = lines[number]
        if have == line or (offset == 0 and have.endswith(line)):
            continue
        if offset == len(wanted) - 1 and have.startswith(line):
            continue
        yield f"Line {number + 1} differs {_kind_of_difference(have, line)}"
        yield f"  old_text: {_short(line)}"
        yield f"  file:     {_short(have)}"
        return


def _kind_of_difference(have: str, wanted: str) -> str:
    if have.strip() == wanted.strip():
        had, want = _indentation(have), _indentation(wanted)
        if had != want:
            return f"in indentation: the file has {had}, old_text has {want}."
        return "in blanks at its end."
    if have.split() == wanted.split():
        return "in the blanks between words."
    if have.casefold().split() == wanted.casefold().split():
        return "in upper and lower case."
    quotes = str.maketrans("'`", '""')
    if have.translate(quotes).split() == wanted.translate(quotes).split():
        return "in a quote."
    start = _first_difference(have, wanted)
    return f"from its character {start + 1} on."


def _indentation(line: str) -> str:
    lead = line[: len(line) - len(line.lstrip())]
    tabs, spaces = lead.count("\t"), lead.count(" ")
    parts = [
        f"{count} {name}{'s' * (count != 1)}"
        for count, name in ((tabs, "tab"), (spaces, "space"))
        if count
    ]
    return " and ".join(parts) or "none"


def _first_difference(first: str, second: str) -> int:
    for index, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return index
    return min(len(first), len(second))


def _short(line: str) -> str:
    line = without_terminal_codes(line.removesuffix("\r"))
    return (
        line if len(line) <= _CHARS_SHOWN else f"{line[:_CHARS_SHOWN]}... ({len(line)} characters)"
    )
