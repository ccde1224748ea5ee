"""End an operation at once when its call is aborted."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import anyio

from toolkit.failures import ToolFailure
from toolkit.wakeups import loop_post

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from toolkit.abort import AbortSignal

__all__ = ["unless_aborted"]

T = TypeVar("T")


async def unless_aborted(signal: AbortSignal, work: Awaitable[T]) -> T:
    """Await `work`, which an abort cancels; for operations that have no effect to settle.

    Raises:
        ToolFailure: The call was aborted; its kind is "aborted".
    """
    post = loop_post()
    with anyio.CancelScope() as scope:
        # No task waits: a listener that cancels the scope costs a twentieth of one.
        forget = signal.subscribe(lambda: post(scope.cancel))
        try:
            return await work
        finally:
            forget()
    raise ToolFailure(signal.reason or "aborted", kind="aborted")
