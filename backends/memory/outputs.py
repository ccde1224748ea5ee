"""Where the output of commands in memory goes: straight on, or as snapshots and kept files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import anyio

from operations import OutputSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.memory.clock import Clock

__all__ = ["ForwardedOutput", "Output", "TailedOutput"]

_SNAPSHOT_PAUSE_S = 0.1
# Less than this is what adding up times has lost.
_INSTANT_S = 1e-6


class Output(Protocol):
    """Takes what one command prints.

    Attributes:
        total_bytes: Bytes printed so far.
        total_lines: LF bytes among them.
    """

    total_bytes: int
    total_lines: int

    def write(self, data: bytes) -> None:
        """Take a chunk."""
        ...

    async def pump(self) -> None:
        """Do what has to be done in time while the command runs; runs until cancelled."""
        ...

    def finish(self) -> bytes | None:
        """Hand over what is left; return what is to be kept in a file, or None."""
        ...


class ForwardedOutput:
    """Hand every chunk on as it comes.

    Args:
        on_data: Takes the chunks.
    """

    def __init__(self, on_data: Callable[[bytes], None]) -> None:
        self.total_bytes = 0
        self.total_lines = 0
        self._on_data = on_data

    def write(self, data: bytes) -> None:
        """Hand a chunk on."""
        self.total_bytes += len(data)
        self.total_lines += data.count(b"\n")
        self._on_data(data)

    async def pump(self) -> None:
        """Do nothing."""
        await anyio.sleep_forever()

    def finish(self) -> bytes | None:
        """Keep nothing."""
        return None


class TailedOutput:
    """Hand over snapshots of what is new, at most every 100 ms, and collect the whole.

    Args:
        on_snapshot: Takes the snapshots.
        clock: What the 100 ms go by.
        tail_bytes: Most bytes of a snapshot.
        keep_over_bytes: More output than this is to be kept.
        keep_over_lines: More lines than this are to be kept.
        keep_limit: Most bytes that are kept, the first ones.
    """

    def __init__(
        self,
        on_snapshot: Callable[[OutputSnapshot], None],
        clock: Clock,
        *,
        tail_bytes: int,
        keep_over_bytes: int,
        keep_over_lines: int,
        keep_limit: int,
    ) -> None:
        self.total_bytes = 0
        self.total_lines = 0
        self._on_snapshot = on_snapshot
        self._clock = clock
        self._tail_bytes = tail_bytes
        self._keep_over = (keep_over_bytes, keep_over_lines)
        self._keep_limit = keep_limit
        self._whole = bytearray()
        self._fresh = bytearray()
        self._fresh_came = anyio.Event()
        self._next_at = clock.now()

    def write(self, data: bytes) -> None:
        """Take a chunk; hand over a snapshot unless there was one within the last 100 ms."""
        self.total_bytes += len(data)
        self.total_lines += data.count(b"\n")
        self._whole += data[: max(0, self._keep_limit - len(self._whole))]
        self._fresh += data[-self._tail_bytes :]
        if len(self._fresh) > 2 * self._tail_bytes:
            del self._fresh[: -self._tail_bytes]
        if self._clock.now() >= self._next_at:
            self._hand_over()
        else:
            self._fresh_came.set()

    async def pump(self) -> None:
        """Hand over what came too early for a snapshot of its own."""
        while True:
            await self._fresh_came.wait()
            while (pause := self._next_at - self._clock.now()) > _INSTANT_S:
                await self._clock.sleep(pause)
            self._hand_over()

    def finish(self) -> bytes | None:
        """Hand over the last snapshot; return the whole output if it is over what needs no file."""
        self._hand_over()
        over = self.total_bytes > self._keep_over[0] or self.total_lines > self._keep_over[1]
        return bytes(self._whole) if over else None

    def _hand_over(self) -> None:
        if self._fresh_came.is_set():  # else `pump` may be waiting for this very one
            self._fresh_came = anyio.Event()
        if not self._fresh:
            return
        data = bytes(self._fresh[-self._tail_bytes :])
        self._fresh.clear()
        self._next_at = self._clock.now() + _SNAPSHOT_PAUSE_S
        self._on_snapshot(
            OutputSnapshot(
                data=data,
                start=self.total_bytes - len(data),
                total_bytes=self.total_bytes,
                total_lines=self.total_lines,
            )
        )
