"""What a terminal would show in the end of a command's raw output, as plain text."""

from __future__ import annotations

import codecs
import re

__all__ = ["OutputTail", "clean_terminal_text"]

# Bodies of strings stop at anything that could begin the next sequence and at LF, so that text full
# of beginnings without an end is still scanned once.
_BODY = r"[^\x07\x1b\x90\x98\x9b-\x9f\n]*"
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, erasing
    rf"|(?:\x1b\]|\x9d){_BODY}(?:\x07|\x1b\\|\x9c)"  # OSC: titles, links
    rf"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f]){_BODY}(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]+[0-~]"  # character sets
    r"|\x1b[0-~]"  # the rest with one character; also the beginning of one without an end
)
_UNFINISHED = re.compile(
    r"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*"
    rf"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]){_BODY}\x1b?"
    r"|\x1b[ -/]*)\Z"
)
# LF, TAB and NEL (which is inside a line) stay; CR and BS have been acted on.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f]")


def clean_terminal_text(text: str, *, final: bool = True) -> str:
    """Return what `text` leaves on a terminal, as far as plain lines can show it.

    CRLF is LF. Of a line that was written over after a carriage return (a progress bar), the last
    state stays. Backspace takes the character before it. Escape sequences, NUL and other control
    characters but TAB and LF go.

    Args:
        text: Decoded output, from the start of a line.
        final: False when more may follow: an escape sequence that has only begun at the end is
            then held back.
    """
    if not final:
        text = _UNFINISHED.sub("", text)
    if "\x1b" in text or not text.isascii():
        text = _SEQUENCES.sub("", text)
    if "\r" in text or "\x08" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    return _CONTROLS.sub("", text)


def _last_state(line: str) -> str:
    """Play carriage returns and backspaces of one line."""
    if "\r" in line:
        line = line.rstrip("\r").rpartition("\r")[2]
    if "\x08" not in line:
        return line
    shown: list[str] = []
    for character in line:
        if character != "\x08":
            shown.append(character)
        elif shown:
            shown.pop()
    return "".join(shown)


class OutputTail:
    """Keep the end of a command's raw output; clean and decode it only when asked.

    The work of adding a chunk does not grow with what came before, and memory stays at about
    twice `keep_bytes`, whatever is printed.

    Args:
        keep_bytes: Most raw bytes to keep, 1 or more.

    Attributes:
        dropped: True when the beginning is no longer kept.
        total_bytes: Bytes printed so far.
    """

    __slots__ = ("_buffer", "_ended_lines", "_keep_bytes", "dropped", "total_bytes")

    def __init__(self, keep_bytes: int) -> None:
        self._keep_bytes = keep_bytes
        self._buffer = bytearray()
        self.dropped = False
        self.total_bytes = 0
        self._ended_lines = 0

    @property
    def total_lines(self) -> int:
        """Lines printed so far; one that has no ending yet counts."""
        return self._ended_lines + (1 if self._buffer and self._buffer[-1] != 0x0A else 0)

    def add(self, data: bytes) -> None:
        """Take the next raw bytes."""
        self.total_bytes += len(data)
        self._ended_lines += data.count(b"\n")
        self._keep(data)

    def add_snapshot(self, data: bytes, start: int, total_bytes: int, total_lines: int) -> None:
        """Take a snapshot of the tail: bytes from position `start` of the whole output.

        Args:
            data: The newest bytes.
            start: Where they begin in the whole output.
            total_bytes: Bytes printed so far.
            total_lines: LF bytes among them.
        """
        if start != self.total_bytes:
            self._buffer.clear()
            self.dropped = True
        self.total_bytes = total_bytes
        self._ended_lines = total_lines
        self._keep(data)

    def text(self, *, final: bool) -> str:
        """Return the cleaned tail.

        Args:
            final: False while more may follow: a character or an escape sequence that is not
                complete yet is then left out; True turns such a character into one U+FFFD.
        """
        data = bytes(self._buffer)
        if self.dropped:
            data = _from_line_start(data[-self._keep_bytes :])
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        return clean_terminal_text(decoder.decode(data, final), final=final)

    def _keep(self, data: bytes) -> None:
        if len(data) > self._keep_bytes:
            self.dropped = True
            data = data[-self._keep_bytes :]
            self._buffer.clear()
        self._buffer += data
        # Trimmed at twice the size, so that each byte is moved at most once.
        if len(self._buffer) > 2 * self._keep_bytes:
            del self._buffer[: -self._keep_bytes]
            self.dropped = True


def _from_line_start(data: bytes) -> bytes:
    """Drop a first line that is only partly there, or, where there is no other, part of it.

    Blank lines alone are no other: the end of a long line before them is worth more.
    """
    newline = data.find(b"\n", 0, len(data) - 1)
    if newline >= 0 and data[newline:].strip():
        return data[newline + 1 :]
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
