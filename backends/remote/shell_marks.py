"""What a lane prints, taken apart: data, and the marks that one request's own word tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from backends.remote.shell_script import MARK

__all__ = ["Garbage", "Mark", "MarkReader"]

_LONGEST_NUMBER = 12
_REST = re.compile(rb" ([A-Z]) (\d{1,%d})\n" % _LONGEST_NUMBER)


class Garbage(Exception):
    """The far end printed what no script of ours prints; the text is a sentence part."""


class Mark(NamedTuple):
    """A mark: its letter, and the number that goes with it."""

    letter: str
    number: int


class MarkReader:
    """Split a stream at the marks with one word; pure, and it holds back next to nothing.

    Args:
        word: The word, which nothing on the target knew before the request.
    """

    def __init__(self, word: str) -> None:
        self._begin = MARK + word.encode("ascii")
        self._longest = len(self._begin) + _LONGEST_NUMBER + len(" X \n")
        self._held = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | Mark]:
        """Yield what the next bytes complete: runs of data, and marks, in order.

        Raises:
            Garbage: The word is there, but no mark.
        """
        data = self._held + chunk if self._held else chunk
        self._held = b""
        start = 0
        while (at := data.find(self._begin, start)) != -1:
            if at > start:
                yield data[start:at]
            rest = _REST.match(data, at + len(self._begin))
            if rest is None:
                if len(data) - at >= self._longest:
                    raise Garbage("a malformed mark")
                self._held = data[at:]
                return
            yield Mark(rest[1].decode(), int(rest[2]))
            start = rest.end()
        end = len(data) - self._possible(data, start)
        self._held = data[end:]
        if end > start:
            yield data[start:end] if start or end < len(data) else data

    def _possible(self, data: bytes, start: int) -> int:
        """Return how many bytes at the end may be the beginning of a mark."""
        at = data.find(MARK, max(start, len(data) - len(self._begin) + 1))
        while at != -1 and not self._begin.startswith(data[at:]):
            at = data.find(MARK, at + 1)
        return 0 if at == -1 else len(data) - at
