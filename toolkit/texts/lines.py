"""A window of lines cut out of a whole file's bytes, for places that cannot send windows. Pure."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Literal

from operations import LineWindow
from toolkit.images import binary_mime_type, image_mime_type

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["window_of"]

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le", 4),
    (codecs.BOM_UTF32_BE, "utf-32-be", 4),
    (codecs.BOM_UTF8, "utf-8-sig", 1),
    (codecs.BOM_UTF16_LE, "utf-16-le", 2),
    (codecs.BOM_UTF16_BE, "utf-16-be", 2),
)
_SNIFFED = 8192


def window_of(
    content: bytes, *, start: int, max_lines: int, max_bytes: int, mime_type: str | None = None
) -> LineWindow:
    """Return what `WindowReadOperations.read_lines` would for a file with this content.

    Args:
        content: The whole file.
        start: 1-based number of the first line wanted.
        max_lines: Most lines wanted, 1 or more.
        max_bytes: Most bytes wanted, 1 or more; lines are never cut.
        mime_type: The image type, where something else has told it.
    """
    size = len(content)
    mime_type = mime_type or image_mime_type(content)
    if mime_type is not None:
        return LineWindow(kind="image", size=size, mime_type=mime_type)
    mark, encoding, unit = next(
        (each for each in _MARKS if content.startswith(each[0])), (b"", "utf-8", 1)
    )
    if not mark and b"\x00" in content[:_SNIFFED]:
        return LineWindow(kind="binary", size=size, mime_type=binary_mime_type(content))
    data = content[len(mark) :]
    total = first = end = room = lines = long_line = 0
    stopped: Literal["lines", "bytes"] | None = None
    at = 0
    for total, line_end in enumerate(_line_ends(data, encoding, unit), 1):
        if total >= start and stopped is None:
            if total == start:
                first = end = at
            room += _utf8_bytes(data[at:line_end], encoding, unit)
            if lines == max_lines:
                stopped = "lines"
            elif room > max_bytes:
                stopped = "bytes"
                long_line = 0 if lines else line_end - at
            else:
                lines, end = lines + 1, line_end
        at = line_end
    return LineWindow(
        kind="text",
        data=data[first:end],
        start=start,
        lines=lines,
        total_lines=total,
        size=size,
        encoding=encoding,
        stopped_by=stopped,
        long_line_bytes=long_line,
    )


def _line_ends(data: bytes, encoding: str, unit: int) -> Iterator[int]:
    """Yield where each line ends, after its LF; the last one may have none."""
    newline = "\n".encode(encoding) if unit > 1 else b"\n"
    at = end = 0
    while (found := data.find(newline, at)) >= 0:
        at = found + 1
        if found % unit == 0:  # else it is made of halves of two characters
            at = end = found + unit
            yield end
    if end < len(data):
        yield len(data)


def _utf8_bytes(line: bytes, encoding: str, unit: int) -> int:
    return len(line) if unit == 1 else len(line.decode(encoding, "replace").encode())
