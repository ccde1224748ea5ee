"""Reach a running event loop from anywhere: another thread, or a signal handler on its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anyio.lowlevel import current_token

__all__ = ["Post", "is_trio", "loop_post"]

#: Has a function called soon on the loop it belongs to; False when that loop is gone.
Post = Callable[[Callable[[], Any]], bool]


def loop_post() -> Post:
    """Return a `Post` for the running event loop; it may be used from threads and signal handlers.

    Functions given to one loop run in the order in which they were given.
    """
    native = _native_token()
    schedule = getattr(native, "run_sync_soon", None) or native.call_soon_threadsafe

    def post(function: Callable[[], Any]) -> bool:
        try:
            schedule(function)
        except RuntimeError:  # closed; trio.RunFinishedError is one too
            return False
        return True

    return post


def is_trio() -> bool:
    """Return True when the running event loop is trio's."""
    return hasattr(_native_token(), "run_sync_soon")


def _native_token() -> Any:
    token: Any = current_token()
    return getattr(token, "native_token", token)  # anyio before 4.11 gave the native one
