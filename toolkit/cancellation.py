"""Telling a cancellation that was asked for from one that nobody asked for, on both event loops."""

from __future__ import annotations

import contextlib
import math

import anyio

from toolkit.failures import leaves

__all__ = ["cancellation_requested", "forget_stray_cancellation", "is_cancellation"]


def is_cancellation(error: BaseException) -> bool:
    """Return True for a cancellation, and for a group of nothing else."""
    cancelled = anyio.get_cancelled_exc_class()
    return all(isinstance(leaf, cancelled) for leaf in leaves(error))


def cancellation_requested() -> bool:
    """Return True when a cancel scope around the running code has been cancelled."""
    return anyio.current_effective_deadline() == -math.inf


async def forget_stray_cancellation() -> None:
    """Take back what a tool did to its own task by asyncio's `current_task().cancel()`.

    A task that ends with such a request pending counts as cancelled, and would take the whole task
    group down with it.
    """
    import asyncio  # under trio this is never called: a task has no handle on itself there

    task = asyncio.current_task()
    if task is None or not task.cancelling() or cancellation_requested():
        return
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    while task.cancelling():
        task.uncancel()
