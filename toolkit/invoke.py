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
    # a tuple around what comes back: trio refuses a coroutine from a thread, and asyncio throws an
    # error from there into this task, which GeneratorExit would close instead of reaching it.
    limiter = anyio.CapacityLimiter(1)
    returned, error = await anyio.to_thread.run_sync(
        lambda: _outcome(function, args, named), limiter=limiter
    )
    if error is not None:
        raise error
    return await returned if inspect.isawaitable(returned) else returned


def _outcome(
    function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, BaseException | None]:
    try:
        return function(*args, **named), None
    except BaseException as error:
        return None, error
