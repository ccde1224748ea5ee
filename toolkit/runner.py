"""The public way to run calls: a runner with its tools, hooks, listeners and limits."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import anyio

from toolkit.batch import BatchResult, Environment, OnError
from toolkit.calls import ToolCall
from toolkit.cancellation import ScopeWatch
from toolkit.failures import leaves, pass_interrupt
from toolkit.json_values import preview
from toolkit.listeners import Listeners
from toolkit.pipeline import Pipeline
from toolkit.scheduler import is_sequential, run_batch
from toolkit.slots import Slots
from toolkit.wakeups import is_trio, loop_post

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from toolkit.abort import AbortSignal
    from toolkit.calls import ToolResultMessage
    from toolkit.events import Listener
    from toolkit.hooks import AfterToolCallHook, BeforeToolCallHook
    from toolkit.tool import AgentTool, ExecutionMode

__all__ = ["ToolRunner", "run_tool_calls"]


class ToolRunner:
    """Runs batches of calls; an async context manager that owns the tasks they run in.

    A batch always answers. A tool that swallows even its cancellation is named in its message and
    left to the runner, which does not close before it has ended.

    Args:
        tools: The tools that calls may name.
        before_tool_call: Hooks that may block a call or replace its arguments, asked in order.
        after_tool_call: Hooks that may change a result, asked in order.
        listeners: Functions that get all events.
        max_concurrency: How many calls run at once, over all batches; 1 or more. A batch that a
            tool runs in the same runner has a limit of its own, or it would wait for its tool.
        grace_s: Seconds that a call has to end after an abort before it is cancelled, and again
            before it is left behind.
        tool_execution: "sequential" makes every batch sequential.
        on_error: "cancel" stops the other calls of a batch when one fails.

    Raises:
        ValueError: Two tools have one name, or a number is out of range.
    """

    def __init__(
        self,
        tools: Iterable[AgentTool[Any]],
        *,
        before_tool_call: Iterable[BeforeToolCallHook] = (),
        after_tool_call: Iterable[AfterToolCallHook] = (),
        listeners: Iterable[Listener] = (),
        max_concurrency: int = 32,
        grace_s: float = 5.0,
        tool_execution: ExecutionMode = "parallel",
        on_error: OnError = "continue",
    ) -> None:
        if max_concurrency < 1:
            raise ValueError(f"max_concurrency is {max_concurrency}; it must be 1 or more")
        if not grace_s >= 0:
            raise ValueError(f"grace_s is {grace_s}; it must be 0 or more")
        self._pipeline = Pipeline(
            tools=_by_name(tools),
            before_tool_call=tuple(before_tool_call),
            after_tool_call=tuple(after_tool_call),
        )
        self._listeners = tuple(listeners)
        self._max_concurrency = max_concurrency
        self._grace_s = grace_s
        self._sequential = tool_execution == "sequential"
        self._on_error: OnError = on_error
        self._environment: Environment | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        group = await self._stack.enter_async_context(anyio.create_task_group())
        listeners = Listeners(self._listeners, group.start_soon)
        self._stack.push_async_callback(listeners.close)
        trio = is_trio()
        self._environment = Environment(
            pipeline=self._pipeline,
            listeners=listeners,
            slots=Slots(self._max_concurrency, one_by_one=trio),
            spawn=group.start_soon,
            post=loop_post(),
            trio=trio,
            scopes=ScopeWatch(trio=trio),
            grace_s=self._grace_s,
            on_error=self._on_error,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self._environment = None
        try:
            return await self._stack.__aexit__(kind, error, traceback)
        except BaseExceptionGroup as group:
            pass_interrupt(group)
            if error is not None and list(leaves(group)) == list(leaves(error)):
                return False  # the body's own error goes on as it was, not in a group
            raise

    async def run(
        self, calls: Sequence[ToolCall], signal: AbortSignal | None = None
    ) -> list[ToolResultMessage]:
        """Run one batch; as `run_batch`, without the rest of its result."""
        return list((await self.run_batch(calls, signal)).messages)

    async def run_batch(
        self, calls: Sequence[ToolCall], signal: AbortSignal | None = None
    ) -> BatchResult:
        """Run one batch of calls and return one message for each, in their order.

        Several batches may run at once, and a tool may run one of its own. Whatever tools, hooks
        and listeners do becomes part of the messages; only the caller's own cancellation (after its
        calls have ended, or their grace is over) and KeyboardInterrupt are raised.

        Args:
            calls: As the model made them.
            signal: Ends the batch early: running calls get the kind "aborted" with the output that
                they had, the others "not_started".

        Raises:
            RuntimeError: The runner is not open.
            TypeError: One of `calls` is no `ToolCall`; nothing was run.
        """
        if self._environment is None:
            raise RuntimeError("the runner is not open; use it in `async with`")
        calls = tuple(calls)
        for call in calls:
            if not (isinstance(call, ToolCall) and type(call.id) is type(call.name) is str):
                raise TypeError(f"{preview(call, max_chars=80)} is no ToolCall")
        slots = self._environment.slots.for_this_caller()
        environment = replace(self._environment, slots=slots)
        sequential = self._sequential or is_sequential(calls, self._pipeline)
        return await run_batch(calls, environment, sequential=sequential, signal=signal)


async def run_tool_calls(
    calls: Sequence[ToolCall],
    tools: Iterable[AgentTool[Any]],
    *,
    signal: AbortSignal | None = None,
    before_tool_call: Iterable[BeforeToolCallHook] = (),
    after_tool_call: Iterable[AfterToolCallHook] = (),
    listeners: Iterable[Listener] = (),
    max_concurrency: int = 32,
    grace_s: float = 5.0,
    tool_execution: ExecutionMode = "parallel",
    on_error: OnError = "continue",
) -> list[ToolResultMessage]:
    """Run one batch in a runner of its own; see `ToolRunner` for everything.

    It returns when the runner has closed, hence after a tool that ignores everything has ended.
    """
    async with ToolRunner(
        tools,
        before_tool_call=before_tool_call,
        after_tool_call=after_tool_call,
        listeners=listeners,
        max_concurrency=max_concurrency,
        grace_s=grace_s,
        tool_execution=tool_execution,
        on_error=on_error,
    ) as runner:
        return await runner.run(calls, signal)


def _by_name(tools: Iterable[AgentTool[Any]]) -> dict[str, AgentTool[Any]]:
    named: dict[str, AgentTool[Any]] = {}
    for tool in tools:
        if tool.name in named:
            raise ValueError(f"two tools have the name {tool.name!r}")
        named[tool.name] = tool
    return named
