"""A script of calls on many hosts: who is visited when, and what a host does to its answers."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import anyio
import anyio.lowlevel

from toolkit.abort import AbortController, AbortSignal
from toolkit.calls import ToolCall, ToolResultMessage
from toolkit.cancellation import (
    cancellation_requested,
    forget_stray_cancellation,
    is_cancellation,
)
from toolkit.events import Listener
from toolkit.failures import error_text, leaves, pass_interrupt
from toolkit.fleet.host import Host
from toolkit.json_values import preview
from toolkit.results import error_result, result_message
from toolkit.runner import ToolRunner
from toolkit.toolset import CodingPlace, coding_tools
from toolkit.wakeups import is_trio, loop_post

if TYPE_CHECKING:
    from types import TracebackType

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from toolkit.fleet.host import HostStatus

__all__ = ["Fleet", "HostMessage", "MakeRunner"]

#: Gets a host's name, its open place, and a listener that the runner must have.
MakeRunner = Callable[[str, CodingPlace, Listener], ToolRunner]


@dataclass(frozen=True, slots=True)
class HostMessage:
    """The answer to one call on one host.

    Attributes:
        host: The host's name in the fleet.
        message: The result, or what kept the call from having one.
    """

    host: str
    message: ToolResultMessage


class Fleet:
    """Runs a script of calls on each of many hosts; an async context manager and iterator.

    Each call on each host is answered exactly once, whatever the host does, and a host waits for
    others only where there are more hosts than forks. ::

        hosts = {name: SshBackend.connect(name) for name in ("web1", "web2")}
        async with Fleet(hosts, [[ToolCall(id="1", name="ls")]]) as fleet:
            async for answer in fleet:
                print(answer.host, answer.message.text)

    What goes wrong on a host is never raised, it is an answer. A host that cannot be opened answers
    all its calls with the kind "unavailable". A call that finds its host gone before it could begin
    is the last that is tried there; the rest is "not_started". After any other error the script
    goes on. Iteration ends when all hosts are closed. Leaving the block early aborts the rest;
    answers that were not taken by then are dropped.

    Args:
        hosts: By name, what gives a place to act when it is entered: any backend. Each is entered
            once at most.
        script: Batches of calls; a host's next batch starts when its last has ended.
        forks: How many hosts are worked on at a time; 1 or more.
        signal: Ends it early: running calls get the kind "aborted" with the output that they had,
            those of hosts that are still waiting or connecting "not_started".
        make_runner: Gives the runner for a host, hooks and limits included; None for one with the
            seven tools.
        open_timeout_s: Seconds that a host may take to open, after which it is unreachable.
        close_timeout_s: Seconds that a host may take to close; then its closing is cancelled.

    Raises:
        TypeError: The script is not made of batches of `ToolCall`s.
        ValueError: A number is out of range.
    """

    def __init__(
        self,
        hosts: Mapping[str, AbstractAsyncContextManager[CodingPlace]],
        script: Sequence[Sequence[ToolCall]],
        *,
        forks: int = 32,
        signal: AbortSignal | None = None,
        make_runner: MakeRunner | None = None,
        open_timeout_s: float = 120.0,
        close_timeout_s: float = 15.0,
    ) -> None:
        if forks < 1:
            raise ValueError(f"forks is {forks}; it must be 1 or more")
        for name, value in (("open", open_timeout_s), ("close", close_timeout_s)):
            if not value > 0:
                raise ValueError(f"{name}_timeout_s is {value}; it must be above 0")
        self._script = tuple(tuple(batch) for batch in script)
        self._calls = [call for batch in self._script for call in batch]
        for call in self._calls:
            if not isinstance(call, ToolCall):
                raise TypeError(f"{preview(call, max_chars=80)} is no ToolCall in a batch")
        self._hosts = [Host(name, place) for name, place in hosts.items()]
        self._forks = forks
        self._controller = AbortController(signal)
        self._signal = self._controller.signal
        self._make_runner = make_runner or _runner
        self._open_timeout_s = open_timeout_s
        self._close_timeout_s = close_timeout_s
        self._stack = AsyncExitStack()
        self._receive: MemoryObjectReceiveStream[HostMessage] | None = None

    @property
    def statuses(self) -> list[HostStatus]:
        """How things are on each host now, in the order of the hosts."""
        return [host.status() for host in self._hosts]

    async def __aenter__(self) -> Self:
        if self._receive is not None:
            raise RuntimeError("a fleet runs its script once; make another one")
        # One answer of each host may wait to be taken: a slow reader holds up no fork at once.
        send, self._receive = anyio.create_memory_object_stream[HostMessage](len(self._hosts))
        group = await self._stack.enter_async_context(anyio.create_task_group())
        post = loop_post()
        self._stack.callback(self._signal.subscribe(lambda: post(self._stop_connecting)))
        hosts = iter(self._hosts)
        with send:
            for _ in range(min(self._forks, len(self._hosts))):
                group.start_soon(self._work, hosts, send.clone())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        assert self._receive is not None
        self._receive.close()  # no host waits for a reader any more
        self._controller.abort("the fleet was left")
        try:
            return await self._stack.__aexit__(kind, error, traceback)
        except BaseExceptionGroup as group:
            pass_interrupt(group)
            if error is not None and list(leaves(group)) == list(leaves(error)):
                return False  # the body's own error goes on as it was, not in a group
            raise

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> HostMessage:
        if self._receive is None:
            raise RuntimeError("the fleet is not open; use it in `async with`")
        try:
            return await self._receive.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            raise StopAsyncIteration from None

    def _stop_connecting(self) -> None:
        for host in self._hosts:
            if host.state == "connecting" and host.scope is not None:
                host.scope.cancel()

    async def _work(
        self, hosts: Iterator[Host], answers: MemoryObjectSendStream[HostMessage]
    ) -> None:
        """Be one fork: take hosts until there are no more."""
        with answers:
            for host in hosts:
                if not self._signal.is_set():
                    await self._visit(host, answers)
                await self._answer_rest(host, answers)

    async def _visit(self, host: Host, answers: MemoryObjectSendStream[HostMessage]) -> None:
        # One scope for all: a backend may keep scopes of its own open from entry to exit, so none
        # of ours may end in between.
        with anyio.CancelScope() as host.scope:
            try:
                await self._run_script(host, host.scope, answers)
            except BaseException as error:
                pass_interrupt(error)
                if is_cancellation(error):
                    if cancellation_requested():
                        raise
                    if not is_trio():
                        await forget_stray_cancellation()
                self._ended_early(host, error_text(error))
        if host.scope.cancelled_caught:
            self._ended_early(host, None)

    async def _run_script(
        self, host: Host, scope: anyio.CancelScope, answers: MemoryObjectSendStream[HostMessage]
    ) -> None:
        place = host.connect()
        scope.deadline = anyio.current_time() + self._open_timeout_s
        async with place as opened:
            scope.deadline = math.inf
            await anyio.lowlevel.checkpoint_if_cancelled()
            host.state = "running"
            async with self._make_runner(host.name, opened, host.listen) as runner:
                for batch in self._script:
                    host.begun += len(batch)
                    for message in await runner.run(batch, self._signal):
                        await self._answer(host, message, answers)
                    if host.is_gone:
                        break
                await self._answer_rest(host, answers)  # now: closing may take its time
                scope.deadline = anyio.current_time() + self._close_timeout_s

    def _ended_early(self, host: Host, reason: str | None) -> None:
        """Note why a visit ended early; None if the scope was cancelled, which only we do."""
        if host.ended is not None:
            late = f"it took over {self._close_timeout_s:g} s; something may be left there"
            host.trouble = f"closing: {reason or late}"
        elif host.state == "running":
            host.rest = (reason or "cancelled", "internal")
        elif reason is None and self._signal.is_set():
            host.rest = (f"not started: {self._signal.reason} while connecting", "not_started")
        else:
            late = f"not started: the host was not open after {self._open_timeout_s:g} s"
            host.rest = (reason or late, "unavailable")

    async def _answer_rest(self, host: Host, answers: MemoryObjectSendStream[HostMessage]) -> None:
        """Answer the calls that have no result; this comes to a final state, once."""
        if host.ended is not None:
            return
        if host.is_gone:
            host.rest = ("not started: the host was gone for a call before", "not_started")
        text, kind = host.rest or (f"not started: {self._signal.reason}", "not_started")
        for number in range(host.answered, len(self._calls)):
            begun = number < host.begun
            told = f"{text}; the call may or may not have run" if begun else text
            message = result_message(self._calls[number], error_result(told, kind), 0.0)
            await self._answer(host, message, answers)
        host.end(stopped=self._signal.is_set())

    async def _answer(
        self,
        host: Host,
        message: ToolResultMessage,
        answers: MemoryObjectSendStream[HostMessage],
    ) -> None:
        host.count(message)
        with contextlib.suppress(anyio.BrokenResourceError):  # once the block was left
            await answers.send(HostMessage(host.name, message))


def _runner(_: str, place: CodingPlace, listener: Listener) -> ToolRunner:
    return ToolRunner(coding_tools(place), listeners=[listener])
