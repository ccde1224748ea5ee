"""What tools do to the cancellation of the task they run in, told and put right on both loops."""

from __future__ import annotations

import contextlib
import math
import sys
from typing import TYPE_CHECKING, Any

import anyio

from toolkit.failures import leaves

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ScopeWatch",
    "cancellation_requested",
    "forget_stray_cancellation",
    "is_cancellation",
]


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


class ScopeWatch:
    """Finds cancel scopes that a tool or hook has entered in our task and not left.

    It opened a scope or task group by hand and kept it, as for a connection that is to last. The
    event loop would end the whole task group over it, and all other calls with it.

    Args:
        trio: Whether the running event loop is trio's.

    Attributes:
        innermost: Returns the cancel scope that the running task is in.
    """

    __slots__ = ("_trio", "innermost")

    def __init__(self, *, trio: bool) -> None:
        self._trio = trio
        self.innermost = _innermost(trio=trio)

    def close_inside(self, scope: Any) -> bool:
        """Leave all that was entered since `innermost` gave `scope`; True if there was any."""
        found = False
        while (inner := self.innermost()) is not scope and inner is not None:
            found = True
            if self._trio:
                _forget_nursery(inner)
            try:
                inner.__exit__(None, None, None)
            except RuntimeError:
                break
        return found


def _innermost(*, trio: bool) -> Callable[[], Any]:
    # There is no public way to ask. In a version to come that has no such way, nothing is found.
    try:
        innermost = _innermost_of_trio() if trio else _innermost_of_asyncio()
        innermost()
    except (AttributeError, ImportError, KeyError):
        return lambda: None
    return innermost


def _innermost_of_trio() -> Callable[[], Any]:
    current_task: Any = sys.modules["trio"].lowlevel.current_task
    return lambda: current_task()._cancel_status._scope  # noqa: SLF001


def _innermost_of_asyncio() -> Callable[[], Any]:
    from asyncio import current_task

    from anyio._backends._asyncio import _task_states

    states: Any = _task_states
    return lambda: states[current_task()].cancel_scope


def _forget_nursery(scope: Any) -> None:
    """Cancel a nursery and take it off the task, or trio would complain when the task ends."""
    task = sys.modules["trio"].lowlevel.current_task()
    for nursery in task.child_nurseries:
        if nursery.cancel_scope is scope:
            scope.cancel()
            task._child_nurseries.remove(nursery)  # noqa: SLF001
