"""Cut text to what a model should be sent: whole lines, UTF-8 bytes, true totals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = [
    "MAX_BYTES",
    "MAX_COUNT",
    "MAX_LINES",
    "Truncation",
    "count_lines",
    "format_size",
    "over_limit",
    "truncate_head",
    "truncate_tail",
    "utf8_size",
]

MAX_LINES = 2000
MAX_BYTES = 50 * 1024
#: More of anything is the same as all of it, and may not fit the wire.
MAX_COUNT = 1 << 53


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """A text cut to limits, and what it was before.

    Attributes:
        text: What is left. The text itself, unchanged, when nothing had to go.
        truncated_by: The limit that was met first, or None when nothing was left out.
        total_lines: Lines before the cut; a trailing newline does not start another one.
        total_bytes: UTF-8 bytes before the cut.
        shown_lines: Lines in `text`.
        shown_bytes: UTF-8 bytes in `text`.
        line_cut: True when `text` begins (tail) inside a line, which alone was over the limit.
    """

    text: str
    truncated_by: Literal["lines", "bytes"] | None
    total_lines: int
    total_bytes: int
    shown_lines: int
    shown_bytes: int
    line_cut: bool = False

    def details(self) -> dict[str, Any]:
        """Return what a result's `details["truncation"]` tells programs."""
        return {
            "truncated_by": self.truncated_by,
            "total_lines": self.total_lines,
            "total_bytes": self.total_bytes,
            "shown_lines": self.shown_lines,
            "shown_bytes": self.shown_bytes,
            "line_cut": self.line_cut,
        }


def truncate_head(
    text: str, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES
) -> Truncation:
    """Keep whole lines from the start.

    Args:
        text: Any text; lines end at LF only.
        max_lines: Most lines to keep, 1 or more.
        max_bytes: Most UTF-8 bytes to keep, the last line's ending not counted; 1 or more.

    Returns:
        The cut, with the ending of its last line. Its text is empty when the first line alone is
        over `max_bytes`.
    """
    whole = _whole(text)
    if _fits(whole, max_lines, max_bytes):
        return whole
    end = _end_of_line(text, max_lines)
    by: Literal["lines", "bytes"] = "lines"
    kept = text if end < 0 else text[: end + 1]
    if utf8_size(kept.removesuffix("\n")) > max_bytes:
        by = "bytes"
        room = kept.encode("utf-8", "surrogatepass")[: max_bytes + 1]
        kept_bytes = room[: room.rfind(b"\n") + 1]
        kept = kept_bytes.decode("utf-8", "surrogatepass")
    return _cut(whole, kept, by, line_cut=False)


def truncate_tail(
    text: str, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES
) -> Truncation:
    """Keep whole lines from the end, or the end of the last line where that alone is too long.

    Args:
        text: Any text; lines end at LF only.
        max_lines: Most lines to keep, 1 or more.
        max_bytes: Most UTF-8 bytes to keep, the last line's ending not counted; 4 or more.

    Returns:
        The cut; its text is never empty unless `text` is.
    """
    whole = _whole(text)
    if _fits(whole, max_lines, max_bytes):
        return whole
    body = text.removesuffix("\n")
    ending = text[len(body) :]
    by: Literal["lines", "bytes"] = "lines"
    line_cut = False
    kept = body[_start_of_last_lines(body, max_lines) :]
    data = kept.encode("utf-8", "surrogatepass")
    if len(data) > max_bytes:
        by = "bytes"
        tail = data[-max_bytes:]
        newline = -1 if data[-max_bytes - 1] == 0x0A else tail.find(b"\n")
        # Blank lines alone are no tail: the end of the long line before them is worth more.
        blank = not tail[newline + 1 :].strip(b"\n")
        line_cut = data[-max_bytes - 1] != 0x0A and (newline < 0 or blank)
        tail = _from_character(tail) if line_cut else tail[newline + 1 :]
        kept = tail.decode("utf-8", "surrogatepass")
    return _cut(whole, kept + ending, by, line_cut=line_cut)


def count_lines(text: str) -> int:
    """Return how many lines `text` has; a trailing newline does not start another one."""
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def utf8_size(text: str) -> int:
    """Return the number of bytes that `text` takes as UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def format_size(size: int) -> str:
    """Return a size for people: bytes below 1024, then one decimal of KB or MB."""
    if size < 1024:
        return f"{size} bytes" if size != 1 else "1 byte"
    # 1023.95 KB and more would print as "1024.0 KB".
    if size < 1024 * 1024 - 51:
        return f"{size / 1024:.1f} KB"
    return f"{size / (1024 * 1024):.1f} MB"


def over_limit(size: int, limit: int) -> str:
    """Say that a size is over a limit, in bytes where both would look the same."""
    sizes = format_size(size), format_size(limit)
    if sizes[0] == sizes[1]:
        sizes = f"{size} bytes", f"{limit} bytes"
    return f"{sizes[0]} is over the limit of {sizes[1]}"


def _whole(text: str) -> Truncation:
    lines, size = count_lines(text), utf8_size(text)
    return Truncation(
        text=text,
        truncated_by=None,
        total_lines=lines,
        total_bytes=size,
        shown_lines=lines,
        shown_bytes=size,
    )


def _fits(whole: Truncation, max_lines: int, max_bytes: int) -> bool:
    ending = 1 if whole.text.endswith("\n") else 0
    return whole.total_lines <= max_lines and whole.total_bytes - ending <= max_bytes


def _cut(
    whole: Truncation, kept: str, by: Literal["lines", "bytes"], *, line_cut: bool
) -> Truncation:
    return Truncation(
        text=kept,
        truncated_by=by,
        total_lines=whole.total_lines,
        total_bytes=whole.total_bytes,
        shown_lines=count_lines(kept),
        shown_bytes=utf8_size(kept),
        line_cut=line_cut,
    )


def _end_of_line(text: str, number: int) -> int:
    """Return where line `number` (1-based) ends, at its LF, or -1 when there is no such LF."""
    end = -1
    for _ in range(number):
        end = text.find("\n", end + 1)
        if end < 0:
            break
    return end


def _start_of_last_lines(body: str, number: int) -> int:
    start = len(body)
    for _ in range(number):
        start = body.rfind("\n", 0, start)
        if start < 0:
            break
    return start + 1


def _from_character(data: bytes) -> bytes:
    """Drop UTF-8 continuation bytes from the front."""
    start = 0
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
