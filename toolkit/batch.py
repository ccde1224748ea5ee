"""The state of one batch: its calls, what became of them, and what listeners are told."""

from __future__ import annotations

import time
from collections import Counter
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import anyio

from toolkit.abort import AbortController, AbortSignal
from toolkit.events import (
    Event,
    MessageEnd,
    MessageStart,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from toolkit.failures import error_text, pass_interrupt
from toolkit.results import error_result, noted, result_message
from toolkit.updates import Updates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.calls import ErrorKind, ToolCall, ToolResultMessage
    from toolkit.cancellation import ScopeWatch
    from toolkit.listeners import Listeners
    from toolkit.pipeline import Pipeline, Prepared
    from toolkit.slots import Slots
    from toolkit.tool import AgentToolResult
    from toolkit.wakeups import Post

__all__ = ["Batch", "BatchResult", "Environment", "OnError", "RunningCall"]

OnError = Literal["continue", "cancel"]


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What a batch came to.

    Attributes:
        messages: One for each call, in the order of the calls.
        terminate: True when there were calls and every one of them asks for the end of the
            agent's loop.
    """

    messages: tuple[ToolResultMessage, ...]
    terminate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What a runner lends to its batches.

    Attributes:
        pipeline: The five steps' tools and hooks.
        listeners: Where events go.
        slots: The limit on calls that run at once.
        spawn: Starts an async function in the runner's task group.
        post: Reaches the event loop from anywhere.
        trio: Whether that is trio's.
        scopes: Finds what tools and hooks leave open.
        grace_s: Seconds that a call has to end after an abort, and again after its cancellation.
        on_error: Whether a failed call stops the others.
    """

    pipeline: Pipeline
    listeners: Listeners
    slots: Slots
    spawn: Callable[..., Any]
    post: Post
    trio: bool
    scopes: ScopeWatch
    grace_s: float
    on_error: OnError


@dataclass(slots=True, eq=False)
class RunningCall:
    """One call on its way to its message."""

    call: ToolCall
    notes: dict[str, str]
    state: Literal["waiting", "preparing", "running", "settled"] = "waiting"
    prepared: Prepared | None = None
    updates: Updates | None = None
    executed: bool = False
    #: Cancels what the call is doing right now.
    scope: anyio.CancelScope | None = None
    began: float | None = None
    worked_s: float = 0.0
    told_start: bool = False
    told_message: bool = False
    message: ToolResultMessage | None = None
    terminate: bool = False
    #: Set with the message, where somebody waits for this very call.
    settled: anyio.Event | None = None

    def clock_in(self) -> None:
        """Start to count the time that is worked on this call."""
        self.began = time.perf_counter()

    def clock_out(self) -> None:
        """Stop counting."""
        if self.began is not None:
            self.worked_s += time.perf_counter() - self.began
            self.began = None


class Batch:
    """What driver and supervisor of a batch share; everything here is done without waiting."""

    def __init__(
        self, calls: Sequence[ToolCall], environment: Environment, signal: AbortSignal | None
    ) -> None:
        counts = Counter(call.id for call in calls)
        self.environment = environment
        self.calls = [
            RunningCall(call, _clash(call.id) if counts[call.id] > 1 else {}) for call in calls
        ]
        self.unsettled = len(self.calls)
        self.changed = anyio.Event()
        self.controller = AbortController(signal)
        self.signal = self.controller.signal
        self.stop_kind: ErrorKind = "aborted"
        self.interrupt: KeyboardInterrupt | None = None
        self.driver_scope = anyio.CancelScope()
        #: What `ScopeWatch.innermost` gives in there.
        self.driver_innermost: Any = None
        self._context = copy_context()

    def spawn(self, function: Callable[..., Any], *args: Any) -> None:
        """Start a task of the runner in the context of the batch.

        A call that makes room for another one must not hand on the context variables it has set.
        """
        self._context.copy().run(self.environment.spawn, function, *args)

    def settle(self, running: RunningCall, result: AgentToolResult) -> None:
        """Give a call its one result; what comes later for it is dropped."""
        if running.message is not None:
            return
        running.clock_out()
        result = noted(result, running.notes)
        running.terminate = result.terminate
        running.message = result_message(running.call, result, running.worked_s)
        if running.state == "running":
            self.environment.slots.release()
        running.state = "settled"
        if result.is_error and self.environment.on_error == "cancel" and not self.signal.is_set():
            self.stop_kind = "sibling_failed"
            self.controller.abort(f"the call {running.call.id!r} ({running.call.name}) failed")
        if running.told_start and self.environment.listeners:
            call = running.call
            self.tell(ToolExecutionEnd(call.id, call.name, result, result.is_error))
        if running.settled is not None:
            running.settled.set()
        self.unsettled -= 1
        if not self.unsettled:
            self.notify()

    def notify(self) -> None:
        """Wake the supervisor."""
        self.changed.set()

    def result(self) -> BatchResult:
        """Return the messages in the order of the calls."""
        messages = tuple(running.message for running in self.calls if running.message is not None)
        return BatchResult(messages, bool(messages) and all(call.terminate for call in self.calls))

    # What calls are told that could not run or end.

    @property
    def stop_reason(self) -> str:
        """Why the batch ends early."""
        return self.signal.reason or "aborted"

    def not_started(self) -> AgentToolResult:
        """Return the result of a call that did nothing."""
        kind: ErrorKind = "not_started" if self.stop_kind == "aborted" else self.stop_kind
        return error_result(f"not started: {self.stop_reason}", kind)

    def left_behind(self, running: RunningCall) -> AgentToolResult:
        """Return the result of a call that swallows its cancellation, with the output it had."""
        if running.prepared is None:
            return self.not_started()  # its before hook hangs; its tool will never run
        text = (
            f"{self.stop_reason}; {running.call.name} did not stop when it was told to and goes on "
            "in the background: what it does may still take effect"
        )
        result = error_result(text, self.stop_kind)
        last = running.updates.last if running.updates is not None else None
        if last is None:
            return result
        return replace(result, content=[*last.content, *result.content], details=last.details)

    def crashed(self, error: BaseException) -> AgentToolResult:
        """Keep Ctrl-C for the caller; return whatever else got this far as an error."""
        try:
            pass_interrupt(error)
        except KeyboardInterrupt as interrupt:
            self._interrupted(interrupt)
        return error_result(error_text(error), "internal")

    def _interrupted(self, interrupt: KeyboardInterrupt) -> None:
        self.interrupt = interrupt
        self.controller.abort("interrupted")

    # What listeners are told.

    def tell(self, event: Event) -> None:
        """Send an event to the listeners."""
        try:
            self.environment.listeners.emit(event)
        except KeyboardInterrupt as interrupt:
            self._interrupted(interrupt)

    def tell_start(self, running: RunningCall) -> None:
        """Tell that work on a call begins."""
        running.told_start = True
        if self.environment.listeners:
            call = running.call
            self.tell(ToolExecutionStart(call.id, call.name, call.arguments))

    def tell_message(self, running: RunningCall) -> None:
        """Tell of a call's message, once."""
        if running.message is not None and not running.told_message:
            running.told_message = True
            if self.environment.listeners:
                self.tell(MessageStart(running.message))
                self.tell(MessageEnd(running.message))

    def updates_of(self, running: RunningCall) -> Updates:
        """Return the `on_update` of a call."""
        call = running.call

        def deliver(partial: AgentToolResult) -> None:
            self.tell(ToolExecutionUpdate(call.id, call.name, call.arguments, partial))

        return Updates(call.name, deliver, self.environment.post)


def _clash(call_id: str) -> dict[str, str]:
    return {"duplicate_call_id": f"note: another call of this batch has the id {call_id!r} too"}
