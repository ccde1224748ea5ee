"""Writers of one file take turns, first come first served, across runners and event loops.

The registry belongs to the process: two runners, or two event loops in two threads, that act on one
machine share it. A key exists only while somebody holds it or waits for it.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from toolkit.wakeups import loop_post

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Hashable

    from toolkit.wakeups import Post

__all__ = ["mutation_queue"]


class _Waiter:
    """One who waits: how to wake it, and whether the turn is its by now."""

    __slots__ = ("event", "has_turn", "post")

    def __init__(self) -> None:
        self.event = anyio.Event()
        self.post: Post = loop_post()
        self.has_turn = False


# Held for a few instructions only, never across an await.
_lock = threading.Lock()
_queues: dict[Hashable, deque[_Waiter]] = {}


@asynccontextmanager
async def mutation_queue(key: Hashable) -> AsyncIterator[None]:
    """Hold the turn for `key` in the body; who asked first is first.

    It may be cancelled at any time: a waiter leaves the queue, a holder hands the turn on.

    Args:
        key: What is written, as (machine identity, lexically normal path).
    """
    waiter = _join(key)
    try:
        if waiter is not None:
            await waiter.event.wait()
    except BaseException:
        assert waiter is not None
        _leave(key, waiter)
        raise
    try:
        yield
    finally:
        _hand_on(key)


def _join(key: Hashable) -> _Waiter | None:
    """Take the turn, or a place in the queue."""
    with _lock:
        queue = _queues.get(key)
        if queue is None:
            _queues[key] = deque()
            return None
        waiter = _Waiter()
        queue.append(waiter)
        return waiter


def _leave(key: Hashable, waiter: _Waiter) -> None:
    with _lock:
        if not waiter.has_turn:
            _queues[key].remove(waiter)
            return
    _hand_on(key)  # the turn and the cancellation came at the same time


def _hand_on(key: Hashable) -> None:
    with _lock:
        queue = _queues[key]
        while queue:
            waiter = queue.popleft()
            waiter.has_turn = True
            if waiter.post(waiter.event.set):
                return  # otherwise its event loop is gone, and it with it
        del _queues[key]
