"""Threads that no exit waits for: an engine that says nothing must not hold up a Ctrl-C."""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
from anyio.lowlevel import current_token

__all__ = ["run_apart"]

T = TypeVar("T")

#: What may have made something still gets so long at the end, to take it away.
_LAST_WORK_S = 5.0

_to_finish: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


async def run_apart(work: Callable[[], T], *, finishes: bool = False) -> T:
    """Return what a blocking function returns; a caller that is cancelled leaves it to itself.

    Args:
        work: Runs in a thread of its own. Unlike anyio's, it ends with the process.
        finishes: Whether the process gives it a few seconds more.
    """
    done = anyio.Event()
    results: list[T] = []
    errors: list[BaseException] = []
    token: Any = current_token()
    native = getattr(token, "native_token", token)  # anyio before 4.11 gave the native one
    schedule = getattr(native, "run_sync_soon", None) or native.call_soon_threadsafe

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # the caller's, wherever it comes from
            errors.append(error)
        with contextlib.suppress(RuntimeError):  # the loop is closed; trio's error is one too
            schedule(done.set)

    thread = threading.Thread(target=run, name="docker request", daemon=True)
    if finishes:
        _to_finish.add(thread)
    thread.start()
    await done.wait()
    if errors:
        raise errors.pop()
    return results[0]


@atexit.register
def _finish() -> None:
    end = time.monotonic() + _LAST_WORK_S
    for thread in list(_to_finish):
        thread.join(max(0.0, end - time.monotonic()))
