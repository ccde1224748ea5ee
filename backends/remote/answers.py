"""What gathers an answer that arrives in pieces, and ends one that is larger than was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from backends.engine import frames
from backends.remote import convert
from backends.remote.convert import MalformedReply
from operations import GrepMatch, GrepQuery, Progress

__all__ = ["Collector", "Rows", "match_converter", "progress_of"]

Row = TypeVar("Row")


class Collector:
    """Raw output of one answer, up to what was asked for.

    Args:
        limit: Most bytes.
    """

    def __init__(self, limit: int) -> None:
        self._chunks: list[bytes] = []
        self._room = limit

    def take(self, chunk: bytes) -> None:
        """Add what has arrived."""
        self._room -= len(chunk)
        if self._room < 0:
            raise MalformedReply("more data than was asked for")
        # Joined, since a million tiny chunks would take far more memory than their bytes.
        if self._chunks and len(self._chunks[-1]) + len(chunk) <= frames.CHUNK:
            self._chunks[-1] += chunk
        else:
            self._chunks.append(chunk)

    def content(self) -> bytes:
        """Return all of it."""
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)


class Rows(Generic[Row]):
    """Rows that arrive in parts under one key, up to as many as were asked for.

    Args:
        key: Name of the rows in a part.
        limit: Most rows.
        convert_row: Makes a checked and bounded value of a row; at once, since what has been
            decoded but not been looked at may be many times the size of what came.
    """

    def __init__(self, key: str, limit: int, convert_row: Callable[[object], Row]) -> None:
        self.rows: list[Row] = []
        self._key = key
        self._limit = limit
        self._convert = convert_row

    def take(self, part: Any) -> bool:
        """Add a part's rows; return False if it is a part of another kind."""
        if not isinstance(part, dict):
            raise MalformedReply("malformed part")
        if self._key not in part:
            return False
        rows = part[self._key]
        if not isinstance(rows, list) or len(self.rows) + len(rows) > self._limit:
            raise MalformedReply("more rows than were asked for")
        self.rows += map(self._convert, rows)
        return True


def match_converter(query: GrepQuery) -> Callable[[object], GrepMatch]:
    """Return what makes a GrepMatch of a row, no larger than the query allows."""
    # Twice, since what cannot be shown is spelled out.
    most_chars = 2 * query.max_line_chars + 100

    def converted(row: object) -> GrepMatch:
        match = convert.grep_match_in_context(row)
        lines = (*match.before, *match.after)
        texts = (match.text, *(line.text for line in lines))
        if len(lines) > 2 * query.context or max(map(len, texts)) > most_chars:
            raise MalformedReply("a match larger than was asked for")
        return match

    return converted


def progress_of(on_progress: Callable[[Progress], None] | None) -> Callable[[Any], None] | None:
    """Return what hands parts on as Progress, or None when nobody wants to know."""
    if on_progress is None:
        return None
    return lambda value: on_progress(convert.progress(value))
