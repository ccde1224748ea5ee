"""Where a command's output goes at the near end: straight on, or as snapshots of its tail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import anyio

from operations import OutputSnapshot

__all__ = ["Forwarded", "Output", "Tailed"]

_PAUSE_S = 0.1


class Output(Protocol):
    """Takes what one command prints.

    Attributes:
        total_bytes: Bytes so far.
        total_lines: LF bytes among them.
    """

    total_bytes: int
    total_lines: int

    def feed(self, data: bytes) -> None:
        """Take a chunk."""
        ...

    def due_s(self) -> float | None:
        """Return seconds until `tick` has something to do; None for nothing."""
        ...

    def tick(self) -> None:
        """Do what is due."""
        ...

    def finish(self) -> None:
        """Hand over what is left."""
        ...


class Forwarded:
    """Hand every chunk on as it comes.

    Args:
        on_data: Takes the chunks.
    """

    def __init__(self, on_data: Callable[[bytes], None]) -> None:
        self.total_bytes = 0
        self.total_lines = 0
        self._on_data = on_data

    def feed(self, data: bytes) -> None:
        """Hand a chunk on."""
        self.total_bytes += len(data)
        self.total_lines += data.count(b"\n")
        self._on_data(data)

    def due_s(self) -> float | None:
        """Nothing is ever due."""
        return None

    def tick(self) -> None:
        """Do nothing."""

    def finish(self) -> None:
        """Nothing is left."""


class Tailed:
    """Hand over snapshots of what is new, cut to its tail, at most every 100 ms.

    Args:
        on_snapshot: Takes the snapshots.
        tail_bytes: Most bytes of one.
    """

    def __init__(self, on_snapshot: Callable[[OutputSnapshot], None], tail_bytes: int) -> None:
        self.total_bytes = 0
        self.total_lines = 0
        self._on_snapshot = on_snapshot
        self._tail_bytes = tail_bytes
        self._fresh = bytearray()
        self._next_at = 0.0

    def feed(self, data: bytes) -> None:
        """Take a chunk; the first is handed over at once."""
        self.total_bytes += len(data)
        self.total_lines += data.count(b"\n")
        self._fresh += data[-self._tail_bytes :]
        if len(self._fresh) > 2 * self._tail_bytes:
            del self._fresh[: -self._tail_bytes]
        if anyio.current_time() >= self._next_at:
            self.finish()

    def due_s(self) -> float | None:
        """Return when the next snapshot may go, if there is news."""
        return max(0.0, self._next_at - anyio.current_time()) if self._fresh else None

    def tick(self) -> None:
        """Hand over a snapshot if it may go."""
        if self._fresh and anyio.current_time() >= self._next_at:
            self.finish()

    def finish(self) -> None:
        """Hand over what is new now."""
        if not self._fresh:
            return
        data = bytes(self._fresh[-self._tail_bytes :])
        self._fresh.clear()
        self._next_at = anyio.current_time() + _PAUSE_S
        start = self.total_bytes - len(data)
        self._on_snapshot(
            OutputSnapshot(
                data=data,
                start=start,
                total_bytes=self.total_bytes,
                total_lines=self.total_lines,
            )
        )
