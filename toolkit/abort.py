"""Asking running calls to end early: a controller that asks, a signal that is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from toolkit.wakeups import loop_post

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["AbortController", "AbortSignal"]


class AbortController:
    """Owns one `AbortSignal` and sets it off.

    Args:
        parent: A signal that sets this one off too.
    """

    __slots__ = ("signal",)

    def __init__(self, parent: AbortSignal | None = None) -> None:
        self.signal = AbortSignal(parent)

    def abort(self, reason: str = "aborted") -> None:
        """Set the signal off; only the first call counts.

        It may be called from any thread and from a signal handler, on the event loop's own
        thread too.

        Args:
            reason: Why, in words that a model may read.
        """
        self.signal._set(reason)  # noqa: SLF001 - the other half of one thing


class AbortSignal:
    """Tells its readers that the caller wants them to end early; never goes back.

    It is an `operations.StopSignal`. Only an `AbortController` sets it off.
    """

    __slots__ = ("_listeners", "_parent", "_reason")

    def __init__(self, parent: AbortSignal | None = None) -> None:
        self._parent = parent
        self._reason: str | None = None
        self._listeners: list[Callable[[], Any]] = []

    def is_set(self) -> bool:
        """Return True once the caller has asked to stop."""
        return self._reason is not None or (self._parent is not None and self._parent.is_set())

    @property
    def reason(self) -> str | None:
        """Why, in the caller's words; None while it is not set."""
        if self._reason is None and self._parent is not None:
            return self._parent.reason
        return self._reason

    async def wait(self) -> None:
        """Return once the caller has asked to stop, at once if that was before."""
        event = anyio.Event()
        post = loop_post()
        forget = self.subscribe(lambda: post(event.set))
        try:
            await event.wait()
        finally:
            forget()

    def subscribe(self, listener: Callable[[], Any]) -> Callable[[], None]:
        """Have `listener` called when the signal is set off, at once if it already is.

        Args:
            listener: Called in whatever thread or signal handler the abort comes from, perhaps
                twice: it should do no more than post to an event loop.

        Returns:
            A function that takes the listener off again.
        """
        self._listeners.append(listener)
        forget_parent = None if self._parent is None else self._parent.subscribe(listener)
        if self._reason is not None:  # looked at with the listener in place: no gap to fall into
            listener()

        def forget() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)
            if forget_parent is not None:
                forget_parent()

        return forget

    def _set(self, reason: str) -> None:
        if self._reason is not None:
            return
        self._reason = reason
        for listener in list(self._listeners):
            listener()
