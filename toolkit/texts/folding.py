"""Texts folded so that variants look alike, with the way back to the original. Pure."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Space", "blanks_end", "fold_line_endings", "fold_look_alikes"]

_BLANKS = " \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_BLANK_RUN = re.compile(f"[{_BLANKS}]*+")
# Only the start of a run is tried, so that a long run inside a line is scanned once.
_LINE_END_BLANKS = re.compile(r"(?<![ \t])[ \t]++(?=\n|\Z)")
_LINE_END_BLANKS_BEFORE_LF = re.compile(r"(?<![ \t])[ \t]++(?=\n)")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]++")
_LOOK_ALIKES = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
    | dict.fromkeys("\u00a0\u1680\u202f\u205f\u3000", " ")
    | {chr(code): " " for code in range(0x2000, 0x200B)}
)

_Piece = tuple[int, int, int, int]


class Space:
    """A text in which positions lead back to the original that it was folded from.

    Args:
        text: The folded text.
        pieces: What was folded, in order: start and end here, start and end below.
        below: The space that was folded, or None when this is the original.
    """

    def __init__(
        self, text: str, pieces: list[_Piece] | None = None, below: Space | None = None
    ) -> None:
        self.text = text
        self._pieces = pieces or []
        self._starts = [piece[0] for piece in self._pieces]
        self._below = below

    def original(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the span of the original that became `start:end` here.

        The smallest one: what vanished in folding right before or after it is not in it.

        Returns:
            The span, or None when one of its ends is inside something that was folded as one.
        """
        below_start, below_end = self._start_below(start), self._end_below(end)
        if below_start is None or below_end is None:
            return None
        if self._below is None:
            return below_start, below_end
        return self._below.original(below_start, below_end)

    def root(self) -> str:
        """Return the original text."""
        return self.text if self._below is None else self._below.root()

    def _start_below(self, position: int) -> int | None:
        number = bisect_right(self._starts, position) - 1
        if number < 0:
            return position
        start, end, below_start, below_end = self._pieces[number]
        if position >= end:
            return below_end + position - end
        return below_start if position == start else None

    def _end_below(self, position: int) -> int | None:
        number = bisect_left(self._starts, position) - 1
        if number < 0:
            return position
        _, end, _, below_end = self._pieces[number]
        return below_end + position - end if position >= end else None


def fold_line_endings(space: Space) -> Space:
    """Make CRLF look like LF."""
    # One character is looked for at memory speed, two are not.
    if "\r" not in space.text or "\r\n" not in space.text:
        return space
    return _fold(space, ((m.start(), m.end(), "\n") for m in re.finditer("\r\n", space.text)))


def fold_look_alikes(space: Space, *, keep_last_blanks: bool = False) -> Space:
    """Make texts that look the same be the same.

    By compatibility form (NFKC), curly quotes, dashes and Unicode blanks; and without blanks at
    the ends of lines.

    Args:
        space: What to fold; its lines end in LF.
        keep_last_blanks: Keep blanks at the very end, where `space` may stop inside a line.
    """
    space = _fold(space, _look_alikes(space.text))
    blanks = _LINE_END_BLANKS_BEFORE_LF if keep_last_blanks else _LINE_END_BLANKS
    return _fold(space, ((m.start(), m.end(), "") for m in blanks.finditer(space.text)))


def blanks_end(space: Space, position: int) -> int:
    """Return where the blanks that begin at `position` of the original end."""
    match = _BLANK_RUN.match(space.root(), position)
    return match.end() if match else position


def _fold(space: Space, changes: Iterable[tuple[int, int, str]]) -> Space:
    parts: list[str] = []
    pieces: list[_Piece] = []
    at = length = 0
    for start, end, text in changes:
        parts += (space.text[at:start], text)
        length += start - at
        pieces.append((length, length + len(text), start, end))
        length += len(text)
        at = end
    if not pieces:
        return space
    parts.append(space.text[at:])
    return Space("".join(parts), pieces, space)


def _look_alikes(text: str) -> Iterator[tuple[int, int, str]]:
    known: dict[str, str] = {}
    for start, end in _clusters(text):
        cluster = text[start:end]
        folded = known.get(cluster)
        if folded is None:
            normal = unicodedata.normalize("NFKC", cluster.translate(_LOOK_ALIKES))
            folded = known[cluster] = normal.translate(_LOOK_ALIKES)
        if folded != cluster:
            yield start, end, folded


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """Yield runs that normalise by themselves: a character that is not ASCII, and its marks."""
    for run in _NOT_ASCII.finditer(text):
        start = run.start()
        if start and _joins(text[start]) and text[start - 1] != "\n":
            start -= 1
        for position in range(start + 1, run.end()):
            if not _joins(text[position]):
                yield start, position
                start = position
        yield start, run.end()


def _joins(character: str) -> bool:
    """Tell characters that normalisation may merge into the one before."""
    return unicodedata.combining(character) != 0 or "\u1160" <= character <= "\u11ff"
