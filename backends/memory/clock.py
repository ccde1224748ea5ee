"""The time that a tree in memory and its commands go by: the event loop's, or a test's own."""

from __future__ import annotations

import heapq
import itertools
import math
import time
from typing import Protocol

import anyio
import anyio.lowlevel

__all__ = ["Clock", "LoopClock", "ManualClock"]


class Clock(Protocol):
    """Time in seconds that only goes forward."""

    def now(self) -> float:
        """Return seconds since some fixed moment."""
        ...

    def wall_ns(self) -> int:
        """Return nanoseconds since 1970, for modification times."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return when `seconds` have gone by; a cancellation point even for 0.

        Args:
            seconds: 0 or more.
        """
        ...


class LoopClock:
    """The event loop's own time; the default."""

    def now(self) -> float:
        """Return the running loop's time."""
        return anyio.current_time()

    def wall_ns(self) -> int:
        """Return the machine's time."""
        return time.time_ns()

    async def sleep(self, seconds: float) -> None:
        """Sleep in real time."""
        await anyio.sleep(seconds)


class ManualClock:
    """Time that stands still until a test moves it, so that an hour's timeout takes no time.

    Everything that a `MemoryBackend` waits for by time (delays of commands, their timeouts,
    pauses between snapshots, stalls) waits for `advance`. A test usually starts a call in a task
    group, waits with `wait_until_sleeping` until it has come to its sleep, and advances::

        clock = ManualClock()
        backend = MemoryBackend(clock=clock)
        backend.on_command("slow", CommandOutput("done", delay_s=3600))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call_slow_with_a_timeout_of_ten_minutes)
            await clock.wait_until_sleeping(2)  # the delay and the timeout
            clock.advance(600)

    A command that prints again within 100 ms of a snapshot sleeps once more, until the next one.

    Args:
        start: What `now()` tells at first, in seconds.
        epoch_s: What `wall_ns()` tells at first, in seconds since 1970 (2000-01-01 UTC).
    """

    def __init__(self, start: float = 0.0, *, epoch_s: int = 946_684_800) -> None:
        self._start = start
        self._now = start
        self._epoch_ns = epoch_s * 1_000_000_000
        self._sleepers: list[tuple[float, int, anyio.Event]] = []
        self._order = itertools.count()
        self._changed: list[anyio.Event] = []

    def now(self) -> float:
        """Return the time that the test has set."""
        return self._now

    def wall_ns(self) -> int:
        """Return the epoch plus what has been advanced since the start."""
        return self._epoch_ns + round((self._now - self._start) * 1_000_000_000)

    @property
    def sleeping(self) -> int:
        """How many sleeps are going on."""
        return len(self._sleepers)

    async def sleep(self, seconds: float) -> None:
        """Sleep until `advance` has moved the time that far."""
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return
        sleeper = (self._now + seconds, next(self._order), anyio.Event())
        heapq.heappush(self._sleepers, sleeper)
        self._tell_waiters()
        try:
            await sleeper[2].wait()
        finally:
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)
                heapq.heapify(self._sleepers)

    def advance(self, seconds: float) -> None:
        """Move the time and wake every sleep that is over by then, the earliest first.

        The time moves in one jump: who sleeps again after waking does so from the new time on.
        To be called on the event loop's thread; the woken tasks run at the next `await`.

        Args:
            seconds: 0 or more, finite.

        Raises:
            ValueError: `seconds` is negative or not finite.
        """
        if not math.isfinite(seconds) or seconds < 0:
            raise ValueError(f"seconds must be 0 or more and finite, not {seconds!r}")
        self._now += seconds
        while self._sleepers and self._sleepers[0][0] <= self._now:
            heapq.heappop(self._sleepers)[2].set()

    async def wait_until_sleeping(self, count: int = 1) -> None:
        """Return as soon as `count` sleeps are going on.

        Args:
            count: 1 or more.
        """
        while len(self._sleepers) < count:
            changed = anyio.Event()
            self._changed.append(changed)
            await changed.wait()
        await anyio.lowlevel.checkpoint()

    def _tell_waiters(self) -> None:
        waiting, self._changed = self._changed, []
        for event in waiting:
            event.set()
