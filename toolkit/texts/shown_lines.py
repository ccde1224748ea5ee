"""A window of a file's lines as text for a model, with notices on what was left out. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.failures import ToolFailure
from toolkit.paths import quote_for_shell
from toolkit.texts.text import (
    DisplayText,
    decode_for_display,
    encoding_label,
    line_endings,
    without_terminal_codes,
)
from toolkit.texts.truncate import format_size, truncate_head, utf8_size

if TYPE_CHECKING:
    from operations import LineWindow

__all__ = ["ShownLines", "show_lines"]


@dataclass(frozen=True, slots=True)
class ShownLines:
    """Text for the model, and what programs are told about it."""

    text: str
    details: dict[str, Any]


def show_lines(
    window: LineWindow, *, given: str, path: str, max_bytes: int, line_numbers: bool
) -> ShownLines:
    """Show a window of kind "text".

    Args:
        window: The lines.
        given: The path as the model gave it, for messages.
        path: The path on the target, for command lines.
        max_bytes: Most bytes of UTF-8 of the lines, numbers included.
        line_numbers: Put "12│ " before each line.

    Raises:
        ToolFailure: The window starts past the end of the file.
    """
    if window.start > max(window.total_lines, 1):
        count = f"{window.total_lines} line{'' if window.total_lines == 1 else 's'}"
        raise ToolFailure(
            f"{given}: offset {window.start} is past the end; the file has {count}",
            details={"path": path, "total_lines": window.total_lines},
        )
    decoded = decode_for_display(window.data, window.encoding)
    endings = line_endings(decoded.text)
    body = without_terminal_codes(decoded.text.replace("\r\n", "\n"))
    if line_numbers:
        body = _numbered(body, window.start)
    cut = truncate_head(body, max_lines=max(window.lines, 1), max_bytes=max_bytes)
    shown = cut.shown_lines
    long_line = window.long_line_bytes
    if window.lines and not shown:
        long_line = utf8_size(body.partition("\n")[0])
    notices = _notices(window, decoded, shown, long_line, path)
    if body != decoded.text and any(mark in body for mark in "\u2400\u241b"):
        notices.append("NUL and escape characters are shown as \u2400 and \u241b.")
    text = cut.text.removesuffix("\n")
    if not window.total_lines:
        text = f"{given} is empty."
    elif not text and not notices:
        notices.append(f"Line {window.start} is empty.")
    return ShownLines(
        text=_joined(text, notices),
        details=_details(window, decoded, shown, long_line) | {"line_endings": endings},
    )


def _notices(
    window: LineWindow, decoded: DisplayText, count: int, long_line: int, path: str
) -> list[str]:
    notices = []
    last = window.start + count - 1
    if long_line:
        notices.append(_long_line(window, path, long_line))
    elif last < window.total_lines:
        first = f"lines {window.start}-{last}" if count > 1 else f"line {last}"
        notices.append(f"Showing {first} of {window.total_lines}; continue with offset={last + 1}.")
    label = encoding_label(decoded.encoding)
    if decoded.guessed and decoded.encoding != "utf-8":
        notices.append(f"Not UTF-8; shown as {label}, which is a guess.")
    elif decoded.encoding not in ("utf-8", "utf-8-sig"):
        notices.append(f"Encoding: {label}.")
    if decoded.damaged:
        notices.append(f"Bytes that are not valid {label} are shown as \ufffd.")
    return notices


def _long_line(window: LineWindow, path: str, size: int) -> str:
    number = window.start
    after = f"; lines after it: offset={number + 1}" if number < window.total_lines else ""
    return (
        f"Line {number} of {window.total_lines} is {format_size(size)}, too long to be shown"
        f"{after}. To see part of it: "
        f"sed -n '{number}{{p;q;}}' {quote_for_shell(path)} | head -c 2000"
    )


def _details(
    window: LineWindow, decoded: DisplayText, count: int, long_line: int
) -> dict[str, Any]:
    left_out = window.start + count - 1 < window.total_lines
    by = "bytes" if long_line or count < window.lines else window.stopped_by
    details: dict[str, Any] = {
        "encoding": decoded.encoding,
        "encoding_guessed": decoded.guessed,
        "total_lines": window.total_lines,
        "start_line": window.start,
        "shown_lines": count,
    }
    if left_out:
        details["truncation"] = {
            "truncated_by": by,
            "total_lines": window.total_lines,
            "total_bytes": window.size,
            "shown_lines": count,
            "next_offset": window.start + max(count, 1),
        }
    elif window.data:
        details["final_newline"] = decoded.text.endswith("\n")
    return details


def _numbered(body: str, start: int) -> str:
    lines = body.split("\n")
    ending = lines.pop() if lines[-1] == "" else None
    width = len(str(start + len(lines) - 1))
    numbered = [f"{number:>{width}}\u2502 {line}" for number, line in enumerate(lines, start)]
    return "\n".join(numbered if ending is None else [*numbered, ending])


def _joined(text: str, notices: list[str]) -> str:
    if not notices:
        return text
    notes = "\n".join(f"[{notice}]" for notice in notices)
    return f"{text}\n\n{notes}" if text else notes
