"""Calling what a tool is made of: an async function, or a plain one that may block."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["invoke"]


async def invoke(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Return what a function gives; a plain one runs in a worker thread.

    A thread cannot be interrupted: when the caller is cancelled, the call still lasts until the
    function returns.
    """
    if inspect.iscoroutinefunction(function):
        return await function(*args, **named)
    if inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return await function(*args, **named)
    # A limiter of its own: threads of calls that were given up must not use up a shared one. And
    # a tuple around what comes back, since trio refuses a coroutine from a thread.
    limiter = anyio.CapacityLimiter(1)
    (returned,) = await anyio.to_thread.run_sync(
        lambda: (function(*args, **named),), limiter=limiter
    )
    return await returned if inspect.isawaitable(returned) else returned
