"""The limit on calls that run at once, first come first served."""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Slots"]

#: What the running code holds a place in.
_held: ContextVar[frozenset[Slots]] = ContextVar("_held", default=frozenset())


class Slots:
    """Starts jobs in the order in which they were added, never more than `limit` at a time.

    Args:
        limit: How many may run at once, 1 or more.
        one_by_one: Start a job only when the one before has taken its first step. trio shuffles
            tasks that become ready together; this keeps the order of the calls there too, so that
            two edits of one file are made in it.
    """

    def __init__(self, limit: int, *, one_by_one: bool) -> None:
        self._limit = self._free = limit
        self._waiting: deque[tuple[Callable[[], None], Callable[[], bool]]] = deque()
        self._one_by_one = one_by_one
        self._starting = False

    def for_this_caller(self) -> Slots:
        """Return these, or new ones for a batch that is run from within one of the jobs.

        The job keeps its place while it waits for that batch, which might wait for the place.
        """
        if self not in _held.get():
            return self
        return Slots(self._limit, one_by_one=self._one_by_one)

    def add(self, start: Callable[[], None], wanted: Callable[[], bool]) -> None:
        """Have `start` called once there is room, unless `wanted` says no by then.

        The job calls `begun` when it starts and `release` when it has ended.
        """
        self._waiting.append((start, wanted))
        self._fill()

    def begun(self) -> None:
        """Note that the job started last runs; called in its own task."""
        _held.set(_held.get() | {self})
        self._starting = False
        if self._one_by_one:
            self._fill()

    def release(self) -> None:
        """Give a place back."""
        self._free += 1
        self._fill()

    def _fill(self) -> None:
        while self._free > 0 and self._waiting and not self._starting:
            start, wanted = self._waiting.popleft()
            if wanted():
                self._free -= 1
                self._starting = self._one_by_one
                start()
