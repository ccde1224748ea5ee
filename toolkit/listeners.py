"""Getting events to listeners so that none of them can change a result or hold a batch up."""

from __future__ import annotations

import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

import anyio

from toolkit.cancellation import cancellation_requested, is_cancellation
from toolkit.events import Event, Listener, ToolExecutionUpdate
from toolkit.failures import pass_interrupt

__all__ = ["Listeners"]

_log = logging.getLogger(__name__)

#: From this many waiting events on, an update takes the place of the one before of its call.
_COALESCE_FROM = 64
#: A listener that is further behind than this gets nothing more.
_MAX_PENDING = 10_000
#: How long the end of a batch waits for listeners that still have events before them.
_PATIENCE_S = 1.0

#: Starts an async function in the background.
Spawn = Callable[[Callable[[], Coroutine[Any, Any, None]]], Any]


class Listeners:
    """The listeners of a runner.

    Args:
        listeners: Plain or async functions.
        spawn: Starts the task in which an async listener's events are awaited, one by one.
    """

    def __init__(self, listeners: Iterable[Listener], spawn: Spawn) -> None:
        self._lines = [_Line(listener, spawn) for listener in listeners]

    def __bool__(self) -> bool:
        return bool(self._lines)

    def emit(self, event: Event) -> None:
        """Hand an event to every listener; nothing that they do comes back but Ctrl-C."""
        for line in self._lines:
            line.send(event)

    async def flush(self) -> None:
        """Wait a moment for async listeners to catch up; who does not is not waited for again."""
        behind = [line for line in self._lines if line.idle is not None and not line.slow]
        if not behind:
            return
        with anyio.move_on_after(_PATIENCE_S):
            for line in behind:
                await line.caught_up()
        for line in behind:
            line.mark_if_slow()

    async def close(self) -> None:
        """Wait a moment for all of them, then end those that still hang."""
        await self.flush()
        for line in self._lines:
            line.drop("the runner is closing")


class _Line:
    """One listener and the events on their way to it."""

    def __init__(self, listener: Listener, spawn: Spawn) -> None:
        self._listener = listener
        self._spawn = spawn
        self._pending: deque[tuple[Event, Awaitable[None]]] = deque()
        self._scope: anyio.CancelScope | None = None
        self._detached = False
        self.idle: anyio.Event | None = None  # set and None again once all is delivered
        self.slow = False

    def send(self, event: Event) -> None:
        if self._detached:
            return
        try:
            returned = self._listener(event)
        except BaseException as error:
            pass_interrupt(error)
            self._detach(error)
            return
        if returned is not None and inspect.isawaitable(returned):
            self._enqueue(event, returned)

    def _enqueue(self, event: Event, awaitable: Awaitable[None]) -> None:
        if len(self._pending) >= _COALESCE_FROM and isinstance(event, ToolExecutionUpdate):
            self._drop_update_of(event.tool_call_id)
        self._pending.append((event, awaitable))
        if len(self._pending) > _MAX_PENDING:
            self.drop(f"it is more than {_MAX_PENDING} events behind")
        elif self.idle is None:
            self.idle = anyio.Event()
            self._spawn(self._deliver)

    def _drop_update_of(self, tool_call_id: str) -> None:
        for index in range(len(self._pending) - 1, -1, -1):
            event, awaitable = self._pending[index]
            if isinstance(event, ToolExecutionUpdate) and event.tool_call_id == tool_call_id:
                del self._pending[index]
                _dispose(awaitable)
                return

    async def _deliver(self) -> None:
        with anyio.CancelScope() as self._scope:
            while self._pending:
                try:
                    await self._pending.popleft()[1]
                except BaseException as error:
                    pass_interrupt(error)
                    if not (is_cancellation(error) and cancellation_requested()):
                        self._detach(error)
                        break
        self._clear()
        if self.idle is not None:
            self.idle.set()
            self.idle = None

    async def caught_up(self) -> None:
        if self.idle is not None:
            await self.idle.wait()

    def mark_if_slow(self) -> None:
        if self.idle is not None:
            self.slow = True
            _log.warning("event listener %r is slow and is not waited for", self._listener)

    def drop(self, reason: str) -> None:
        """End delivery, with a word in the log if something was still to be delivered."""
        if self.idle is not None and not self._detached:
            _log.warning("event listener %r was detached: %s", self._listener, reason)
        self._detached = True
        self._clear()
        if self._scope is not None:
            self._scope.cancel()

    def _detach(self, error: BaseException) -> None:
        self._detached = True
        _log.error("event listener %r raised and was detached", self._listener, exc_info=error)

    def _clear(self) -> None:
        while self._pending:
            _dispose(self._pending.popleft()[1])


def _dispose(awaitable: Awaitable[None]) -> None:
    """Close a coroutine that will not run, so that Python does not warn about it."""
    if inspect.iscoroutine(awaitable):
        awaitable.close()
