"""Requests to one engine over one channel, by any number of tasks at once."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup, TaskStatus

from backends.remote import bootstrap
from backends.remote.channel import Channel, ChannelClosed
from backends.remote.convert import MalformedReply
from backends.remote.faults import error_from_fault
from backends.remote.session import (
    SILENT_PINGS,
    DataReceived,
    Event,
    Failed,
    FarewellReceived,
    Finished,
    HelloReceived,
    NearSession,
    PartReceived,
    WireError,
)
from operations import ConnectionLost, OperationUnsupported, StopSignal

__all__ = ["EngineClient", "StartFailed", "Unanswered"]

#: Written to the channel in runs of this size, so that a large body does not hold the event loop.
_RUN = 1 << 18
#: How long a cancelled caller waits for what must be settled (a dead tree, a renamed file).
SETTLE_S = 5.0
#: How much longer than its own limits an answer may take before it counts as not coming.
PATIENCE_S = 6.0
#: How much longer still while its output goes on arriving.
BACKLOG_S = 60.0
#: How long who wants a command stopped waits to learn how that went, which is less than the 5 s
#: after which a runner takes a call for one that does not listen.
STOP_S = 4.5
_NOISE_SHOWN = 300


class StartFailed(Exception):
    """The engine did not say hello; the text is a sentence part."""


class Unanswered(Exception):
    """The engine has not ended a request within its limits, though it is there."""


class _Call:
    """One request and its caller."""

    __slots__ = (
        "ended",
        "error",
        "finish",
        "latest",
        "left",
        "on_data",
        "on_part",
        "scope",
        "value",
        "watch",
    )

    def __init__(
        self,
        on_part: Callable[[Any], None] | None,
        on_data: Callable[[bytes], None] | None,
        finish: Callable[[Any], Any] | None,
        deadline_s: float,
    ) -> None:
        deadline = anyio.current_time() + deadline_s
        self.scope = anyio.CancelScope(deadline=deadline)
        self.latest = deadline + BACKLOG_S
        self.on_part = on_part
        self.on_data = on_data
        self.finish = finish
        self.ended = anyio.Event()
        self.value: Any = None
        self.error: BaseException | None = None
        self.left = False
        self.watch: anyio.CancelScope | None = None

    def end_soon(self) -> None:
        """Have the answer come within STOP_S, also while output arrives."""
        self.latest = anyio.current_time() + min(STOP_S, PATIENCE_S)
        self.scope.deadline = min(self.scope.deadline, self.latest)

    def hear(self) -> None:
        """Note that output arrives: on a slow wire the answer may stand behind much of it."""
        due = min(anyio.current_time() + PATIENCE_S, self.latest)
        if due > self.scope.deadline:
            self.scope.deadline = due


class EngineClient:
    """Send requests and hand each answer to its caller; two tasks and a pinger do the I/O.

    A caller only queues frames, so one that is cancelled never leaves half a frame behind. Nothing
    that happens to the connection cancels a caller: every call in flight gets ConnectionLost.

    Args:
        channel: A channel to a program that waits for the bootstrap's payload.
        target: The target as the user named it, for errors.
        ping_s: Seconds between pings.
    """

    def __init__(self, channel: Channel, *, target: str, ping_s: float = 10.0) -> None:
        self._channel = channel
        self._target = target
        self._ping_s = ping_s
        self._session = NearSession()
        self._calls: dict[int, _Call] = {}
        self._rest = memoryview(b"")
        self._writing = False
        self._wake = anyio.Event()
        self._unsent = ""
        self._tasks: TaskGroup | None = None
        self._reading = anyio.CancelScope()
        self._running = anyio.CancelScope(shield=True)
        self._ended = anyio.Event()
        #: Why no request can be made any more, as a sentence part; None while it can.
        self.lost: str | None = None

    async def start(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Send the engine to the target and return the facts of its hello.

        Raises:
            StartFailed: It did not start.
        """
        try:
            await self._channel.send(bootstrap.payload(settings))
            while data := await self._channel.receive():
                for event in self._session.receive(data):
                    if isinstance(event, HelloReceived):
                        return event.facts
        except ChannelClosed:
            pass  # how the program ended says more
        except WireError as error:
            raise StartFailed(f"no engine answers there: {error}{self._noise()}") from error
        except Exception as error:
            raise StartFailed(f"the channel failed: {error!r}{self._noise()}") from error
        raise StartFailed(await self._channel.exit_report() + self._noise())

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve calls until the connection ends or `close`; raises nothing."""
        reason = ""
        # Shielded: a caller that is being cancelled needs the connection to end its command.
        try:
            with self._running:
                async with anyio.create_task_group() as self._tasks:
                    self._tasks.start_soon(self._write)
                    self._tasks.start_soon(self._ping)
                    task_status.started()
                    with self._reading:
                        reason = await self._read()
                    self._lose(reason or self._unsent or "the backend was closed")
                    self._tasks.cancel_scope.cancel()
                await self._close_channel()
        finally:
            self._ended.set()

    async def close(self, limit_s: float) -> None:
        """Tell the engine to kill what it started and end; wait until `run` is over.

        Args:
            limit_s: Seconds after which a channel that does not close is left to itself.
        """
        if self.lost is None:
            self._session.bye()
            self._flush()
        self._lose("the backend was closed")
        self._running.deadline = anyio.current_time() + limit_s
        await self._ended.wait()

    async def abandon(self) -> None:
        """Close the channel of a client that was not started, or whose start failed."""
        self.lost = "it was not started"
        await self._close_channel()

    async def _close_channel(self) -> None:
        with contextlib.suppress(Exception):  # what a transport says then helps nobody
            await self._channel.close()

    async def call(
        self,
        operation: str,
        arguments: dict[str, Any],
        *,
        body: bytes | None = None,
        on_part: Callable[[Any], None] | None = None,
        on_data: Callable[[bytes], None] | None = None,
        finish: Callable[[Any], Any] | None = None,
        stop: StopSignal | None = None,
        deadline_s: float = math.inf,
        settle: bool = False,
    ) -> Any:
        """Make a request and return its result.

        Args:
            operation: Its name on the wire.
            arguments: Plain values.
            body: Bytes that follow the request.
            on_part: Takes each part of the answer; may raise MalformedReply for a malformed one.
            on_data: Takes raw output.
            finish: Turns the result's plain value into what is returned; may raise MalformedReply.
            stop: When it fires the request is cancelled, and what it then answers returned.
            deadline_s: When the answer counts as not coming.
            settle: On cancellation wait (at most SETTLE_S) until the engine has ended the request.

        Raises:
            OperationUnsupported: The arguments cannot be sent; nothing was.
            OperationError: What the engine reported, or ConnectionLost.
            Unanswered: The deadline has passed, or PATIENCE_S since `stop` fired, and no output
                arrives any more.
        """
        if self.lost is not None:
            raise ConnectionLost(self._target, self.lost)
        call = _Call(on_part, on_data, finish, deadline_s)
        try:
            request_id = self._session.request(operation, arguments, body)
        except WireError as error:
            raise OperationUnsupported(operation, str(error)) from error
        self._calls[request_id] = call
        self._flush()
        if stop is not None:
            assert self._tasks is not None, "the client is not running"
            self._tasks.start_soon(self._watch, stop, request_id, call)
        try:
            with call.scope:
                await call.ended.wait()
        finally:
            if not call.ended.is_set():
                self._cancel(request_id, call)
                # A deadline has run out of patience already; a caller's cancellation has not.
                if settle and not call.scope.cancelled_caught:
                    with anyio.move_on_after(SETTLE_S, shield=True):
                        await call.ended.wait()
            self._calls.pop(request_id, None)
            call.left = True
            if call.watch is not None:
                call.watch.cancel()
        if call.error is not None:
            raise call.error
        if not call.ended.is_set():
            raise Unanswered(operation)
        return call.value

    async def _watch(self, stop: StopSignal, request_id: int, call: _Call) -> None:
        """Cancel a call's request when its caller wants it to stop."""
        with anyio.CancelScope() as call.watch:
            if call.left:
                return
            try:
                await stop.wait()
            except Exception as error:
                call.error = error
            self._cancel(request_id, call)

    def _cancel(self, request_id: int, call: _Call) -> None:
        """Ask the engine to end a request, which it must within PATIENCE_S."""
        if self.lost is None:
            self._session.cancel(request_id)
            self._flush()
        call.end_soon()

    # What is sent

    def _flush(self) -> None:
        """Send what waits, here and now if the channel takes it, else by the writer's task."""
        if self._writing:
            return
        try:
            data = self._session.data_to_send(_RUN)
            if not data:
                return
            sent = self._channel.send_nowait(data)
        except Exception as error:
            self._write_failed(error)
            return
        if sent < len(data) or len(data) >= _RUN:
            self._rest = memoryview(data)[sent:]
            self._writing = True
            self._wake.set()

    async def _write(self) -> None:
        try:
            while True:
                await self._wake.wait()
                data: bytes | memoryview = self._rest or self._session.data_to_send(_RUN)
                while data:
                    await self._channel.send(data)
                    data = self._session.data_to_send(_RUN)
                self._wake = anyio.Event()
                self._writing = False
        except Exception as error:
            self._write_failed(error)

    def _write_failed(self, error: Exception) -> None:
        """Give the reader a moment to learn from the far end why."""
        self._writing = True
        self._unsent = f"nothing can be sent: {error}"
        self._reading.deadline = min(self._reading.deadline, anyio.current_time() + 1.0)

    async def _ping(self) -> None:
        """Keep the engine's lease, and find out when nobody is there."""
        while self._session.ping():
            self._flush()
            await anyio.sleep(self._ping_s)
        self._lose(f"nothing heard for {SILENT_PINGS * self._ping_s:g} seconds")

    # What arrives

    async def _read(self) -> str:
        """Take what arrives until nothing does; return why."""
        try:
            while data := await self._channel.receive():
                for event in self._session.receive(data):
                    if isinstance(event, FarewellReceived):
                        return f"the engine has ended: {event.reason:.500}"
                    self._take(event)
                self._flush()
                # What arrives as fast as it is taken in would let no other task run.
                await anyio.lowlevel.checkpoint()
            return await self._channel.exit_report()
        except (WireError, MalformedReply) as error:
            return f"the far end broke the protocol: {error}"
        except ChannelClosed as error:
            return self._unsent or str(error)
        except Exception as error:
            # A fault of the channel (or of ours) must not end tasks that are our caller's.
            return f"the channel failed: {error!r}"

    def _take(self, event: Event) -> None:
        if isinstance(event, Finished | Failed):
            call = self._calls.get(event.request_id)
            if call is not None:
                self._settle(call, event)
        elif isinstance(event, PartReceived):
            call = self._calls.get(event.request_id)
            if call is not None and call.on_part is not None:
                self._hand_over(event.request_id, call, call.on_part, event.value)
            self._session.consume_part(event.request_id, event.value)
        elif isinstance(event, DataReceived):
            call = self._calls.get(event.request_id)
            if call is not None:
                if call.on_data is None:
                    raise WireError("data in an answer that has none")
                call.hear()
                self._hand_over(event.request_id, call, call.on_data, event.data)
                self._session.consume(event.request_id, len(event.data))

    def _hand_over(
        self, request_id: int, call: _Call, receiver: Callable[[Any], None], value: Any
    ) -> None:
        if call.error is not None:
            return
        try:
            receiver(value)
        except (WireError, MalformedReply):
            raise
        except Exception as error:
            call.error = error  # the caller's own, so it gets it, once the request has ended
            self._cancel(request_id, call)

    def _settle(self, call: _Call, event: Finished | Failed) -> None:
        if call.error is None:
            if isinstance(event, Failed):
                call.error = error_from_fault(event.code, event.arguments)
            else:
                call.value = event.value if call.finish is None else call.finish(event.value)
        call.ended.set()

    def _lose(self, reason: str) -> None:
        """Refuse further calls, end those in flight, and have `run` end."""
        if self.lost is None:
            self.lost = reason
            for call in self._calls.values():
                call.error = call.error or ConnectionLost(self._target, reason)
                call.ended.set()
        self._reading.cancel()

    def _noise(self) -> str:
        """Return the end of what came instead of a hello, for an error."""
        text = self._session.noise[-_NOISE_SHOWN:].decode("utf-8", "replace").strip()
        return f"; it printed {text!r}" if text else ""
