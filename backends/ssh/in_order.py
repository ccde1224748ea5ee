"""Calls that are under way together, and their results in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Coroutine, Iterable
from typing import Any, TypeVar

__all__ = ["in_order"]

T = TypeVar("T")


async def in_order(
    calls: Iterable[Coroutine[Any, Any, T]], most: int, *, ramp: bool = False
) -> AsyncGenerator[T, None]:
    """Yield the results of calls in their order, with up to `most` of them under way.

    Args:
        calls: What to do, made only when there is room for it.
        most: How many at a time.
        ramp: Begin with one, and have two more under way with each result.
    """
    waiting = iter(calls)
    running: deque[asyncio.Future[T]] = deque()
    room = 1 if ramp else most
    try:
        while True:
            while len(running) < room and (call := next(waiting, None)) is not None:
                running.append(asyncio.ensure_future(call))
            if not running:
                return
            yield await running.popleft()
            room = min(most, room + 2)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
