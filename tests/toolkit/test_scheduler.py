"""A batch: who runs when, what an abort does, and always one message for each call."""

from __future__ import annotations

import contextvars
import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from toolkit import (
    AbortController,
    AgentTool,
    AgentToolResult,
    Block,
    ToolCall,
    ToolFailure,
    ToolResultOverride,
    ToolRunner,
    run_tool_calls,
)

pytestmark = pytest.mark.anyio


class Arguments(BaseModel):
    path: str = "f"


def tool(execute, name="act", **options) -> AgentTool[Any]:
    return AgentTool(
        name=name, label=name, description=name, parameters=Arguments, execute=execute, **options
    )


def calls_of(*paths: str, name="act") -> list[ToolCall]:
    return [
        ToolCall(id=str(index), name=name, arguments={"path": path})
        for index, path in enumerate(paths)
    ]


async def echo(tool_call_id, params, signal, on_update):
    await anyio.lowlevel.checkpoint()
    return AgentToolResult.text(params.path)


def named(events) -> list[str]:
    return [
        f"{event.type.removeprefix('tool_execution_')} "
        f"{event.message.tool_call_id if event.type.startswith('message') else event.tool_call_id}"
        for event in events
    ]


class Track:
    """Runs calls that wait for each other, and notes how many run at once."""

    def __init__(self) -> None:
        self.running = self.most = 0
        self.order: list[str] = []

    async def __call__(self, tool_call_id, params, signal, on_update):
        self.order.append(params.path)
        self.running += 1
        self.most = max(self.most, self.running)
        await anyio.sleep(0.01)
        self.running -= 1
        return AgentToolResult.text(params.path)


# Phases and order


async def test_no_calls_make_no_messages():
    """An empty batch is a batch."""
    assert await run_tool_calls([], [tool(echo)]) == []


async def test_messages_are_in_call_order_and_ends_in_order_of_completion():
    """Phase 1 in order, end events live, phase 3 in order."""
    gates = {"0": anyio.Event(), "1": anyio.Event()}

    async def execute(tool_call_id, params, signal, on_update):
        if tool_call_id == "0":
            await gates["1"].wait()
        on_update(AgentToolResult.text("p"))
        gates[tool_call_id].set()
        return AgentToolResult.text(tool_call_id)

    events: list[Any] = []
    messages = await run_tool_calls(calls_of("a", "b"), [tool(execute)], listeners=[events.append])
    assert [message.text for message in messages] == ["0", "1"]
    assert named(events) == [
        "start 0",
        "start 1",
        "update 1",
        "end 1",
        "update 0",
        "end 0",
        "message_start 0",
        "message_end 0",
        "message_start 1",
        "message_end 1",
    ]


async def test_one_sequential_tool_makes_the_whole_batch_sequential():
    """Start, end and message of a call come before the start of the next."""
    track = Track()
    tools = [tool(track), tool(track, "slow", execution_mode="sequential")]
    calls = calls_of("a", "b", "c")
    calls[1] = calls[1].model_copy(update={"name": "slow"})
    events: list[Any] = []
    await run_tool_calls(calls, tools, listeners=[events.append])
    assert (track.most, track.order) == (1, ["a", "b", "c"])
    each = ["start", "end", "message_start", "message_end"]
    assert named(events) == [f"{name} {index}" for index in range(3) for name in each]


async def test_tool_execution_sequential_holds_for_all():
    """Whatever the tools say."""
    track = Track()
    await run_tool_calls(
        calls_of(*"abcd"), [tool(track, execution_mode="parallel")], tool_execution="sequential"
    )
    assert (track.most, track.order) == (1, list("abcd"))


async def test_all_preparations_come_before_all_executions_and_in_order():
    """A before hook may rely on it."""
    seen = []

    async def hook(context):
        await anyio.sleep(0.001)
        seen.append(f"hook {context.params.path}")

    async def execute(tool_call_id, params, signal, on_update):
        seen.append("run")
        return AgentToolResult.text("")

    await run_tool_calls(calls_of("a", "b"), [tool(execute)], before_tool_call=[hook])
    assert seen == ["hook a", "hook b", "run", "run"]


async def test_in_a_sequential_batch_each_call_is_prepared_in_its_turn():
    """A hook sees what the call before has done."""
    seen = []

    async def execute(tool_call_id, params, signal, on_update):
        seen.append(f"run {params.path}")
        return AgentToolResult.text("")

    await run_tool_calls(
        calls_of("a", "b"),
        [tool(execute)],
        before_tool_call=[lambda context: seen.append(f"hook {context.params.path}")],
        tool_execution="sequential",
    )
    assert seen == ["hook a", "run a", "hook b", "run b"]


async def test_calls_start_in_their_order():
    """Also on trio, which shuffles; so two edits of one file are made in order."""
    for limit in (3, 32):
        track = Track()
        paths = [f"{index}" for index in range(20)]
        await run_tool_calls(calls_of(*paths), [tool(track)], max_concurrency=limit)
        assert track.order == paths


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_no_more_than_the_limit_run_at_once(limit):
    """And as many as it allows."""
    track = Track()
    await run_tool_calls(calls_of(*"abcdefghij"), [tool(track)], max_concurrency=limit)
    assert track.most == limit


async def test_the_limit_holds_over_all_batches_of_a_runner():
    """Two batches share it."""
    track = Track()
    runner = ToolRunner([tool(track)], max_concurrency=3)
    async with runner, anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(runner.run, calls_of(*"abcd"))
    assert track.most == 3


async def test_a_refused_call_ends_at_once_and_the_others_run():
    """Three messages, in order, each with its id."""
    calls = [
        ToolCall(id="a", name="act", arguments={"path": "f"}),
        ToolCall(id="b", name="Reed", arguments={}),
        ToolCall(id="c", name="act", arguments={"path": 1}),
        ToolCall(id="d", name="act", arguments={"path": "g"}),
    ]
    for mode in ("parallel", "sequential"):
        messages = await run_tool_calls(calls, [tool(echo)], tool_execution=mode)
        assert [message.tool_call_id for message in messages] == ["a", "b", "c", "d"]
        assert [message.error_kind for message in messages] == [
            None,
            "unknown_tool",
            "invalid_arguments",
            None,
        ]


async def test_two_calls_with_one_id_are_both_answered_and_the_clash_is_told():
    """In text and in details of both."""
    calls = [
        ToolCall(id="x", name="act", arguments={"path": "f"}),
        ToolCall(id="y", name="act"),
        ToolCall(id="x", name="nope"),
    ]
    first, other, second = await run_tool_calls(calls, [tool(echo)])
    assert first.content[0].text == "f"
    for message in (first, second):
        assert message.details == {"duplicate_call_id": True}
        assert "has the id 'x' too" in message.text
    assert other.details is None


async def test_context_variables_of_one_call_are_not_seen_by_another():
    """Also not by one that starts when the first has ended."""
    variable = contextvars.ContextVar("variable", default="unset")
    seen = []

    async def execute(tool_call_id, params, signal, on_update):
        seen.append(variable.get())
        variable.set(params.path)
        return AgentToolResult.text("")

    variable.set("caller")
    await run_tool_calls(calls_of(*"abc"), [tool(execute)], max_concurrency=1)
    assert seen == ["caller"] * 3


async def test_the_loop_ends_only_if_every_result_asks_for_it():
    """`terminate` is a veto the other way round."""

    async def execute(tool_call_id, params, signal, on_update):
        return AgentToolResult.text("", terminate=params.path == "end")

    async with ToolRunner([tool(execute)]) as runner:
        assert (await runner.run_batch(calls_of("end", "end"))).terminate
        assert not (await runner.run_batch(calls_of("end", "go"))).terminate
        assert not (await runner.run_batch([])).terminate
    blocked = ToolRunner([tool(echo)], before_tool_call=[lambda c: Block("x", terminate=True)])
    async with blocked as runner:
        assert (await runner.run_batch(calls_of("a"))).terminate
    undo = ToolResultOverride(terminate=False)
    async with ToolRunner([tool(execute)], after_tool_call=[lambda context: undo]) as runner:
        assert not (await runner.run_batch(calls_of("end"))).terminate


# on_error


async def test_on_error_continue_lets_the_others_run():
    """That is the default."""

    async def execute(tool_call_id, params, signal, on_update):
        if params.path == "bad":
            raise ValueError("bad")
        await anyio.sleep(0.01)
        return AgentToolResult.text("good")

    messages = await run_tool_calls(calls_of("good", "bad", "good"), [tool(execute)])
    assert [message.text for message in messages] == ["good", "bad", "good"]


async def test_on_error_cancel_stops_running_and_waiting_calls():
    """They are told that a sibling failed."""
    ran = []

    async def execute(tool_call_id, params, signal, on_update):
        ran.append(params.path)
        if params.path == "bad":
            await anyio.sleep(0.01)
            raise ValueError("bad")
        on_update(AgentToolResult.text("some output"))
        await signal.wait()
        raise ToolFailure("stopped early")

    messages = await run_tool_calls(
        calls_of("x", "bad", "y"), [tool(execute)], on_error="cancel", max_concurrency=2
    )
    assert [message.error_kind for message in messages] == [
        "sibling_failed",
        "failed",
        "sibling_failed",
    ]
    assert ran == ["x", "bad"]
    assert messages[0].text == "stopped early"
    assert "'1' (act) failed" in messages[2].text


async def test_on_error_cancel_counts_refused_calls():
    """Nothing runs then, since preparing comes first."""
    ran = []

    async def execute(tool_call_id, params, signal, on_update):
        ran.append(1)
        return AgentToolResult.text("")

    calls = [*calls_of("a"), ToolCall(id="u", name="nope"), *calls_of("b")]
    messages = await run_tool_calls(calls, [tool(execute)], on_error="cancel")
    kinds = [message.error_kind for message in messages]
    assert kinds == ["sibling_failed", "unknown_tool", "sibling_failed"]
    assert not ran


async def test_on_error_cancel_in_a_sequential_batch_leaves_the_finished_ones():
    """What was done is done."""

    async def execute(tool_call_id, params, signal, on_update):
        if params.path == "bad":
            raise ValueError("bad")
        return AgentToolResult.text("good")

    messages = await run_tool_calls(
        calls_of("a", "bad", "b"), [tool(execute)], on_error="cancel", tool_execution="sequential"
    )
    assert [message.error_kind for message in messages] == [None, "failed", "sibling_failed"]


# Abort


def aborting(after_started: int):
    """Return a controller, and a tool that sets it off once so many calls run."""
    controller = AbortController()
    started = []

    async def execute(tool_call_id, params, signal, on_update):
        started.append(tool_call_id)
        on_update(AgentToolResult.text(f"output of {tool_call_id}"))
        if len(started) == after_started:
            controller.abort("the user pressed Escape")
        await signal.wait()
        raise ToolFailure(f"stopped {tool_call_id}")

    return controller, execute, started


async def test_abort_of_a_sequential_batch_gives_every_call_its_message():
    """The first was running, the others have no effect."""
    controller, execute, started = aborting(1)
    messages = await run_tool_calls(
        calls_of(*"abc"), [tool(execute)], signal=controller.signal, tool_execution="sequential"
    )
    assert [message.tool_call_id for message in messages] == ["0", "1", "2"]
    kinds = [message.error_kind for message in messages]
    assert kinds == ["aborted", "not_started", "not_started"]
    assert messages[0].text == "stopped 0"
    assert "the user pressed Escape" in messages[1].text
    assert started == ["0"]


async def test_abort_of_a_parallel_batch():
    """Those that wait for a place are not started."""
    controller, execute, started = aborting(2)
    messages = await run_tool_calls(
        calls_of(*"abcd"), [tool(execute)], signal=controller.signal, max_concurrency=2
    )
    kinds = [message.error_kind for message in messages]
    assert kinds == ["aborted", "aborted", "not_started", "not_started"]
    assert sorted(started) == ["0", "1"]


async def test_a_batch_with_a_signal_that_is_set_starts_nothing():
    """No hook is asked either."""
    controller = AbortController()
    controller.abort()
    asked: list[Any] = []
    events: list[Any] = []
    messages = await run_tool_calls(
        calls_of("a", "b"),
        [tool(echo)],
        signal=controller.signal,
        before_tool_call=[asked.append],
        listeners=[events.append],
    )
    assert [message.error_kind for message in messages] == ["not_started"] * 2
    assert not asked
    assert named(events) == [
        "message_start 0",
        "message_end 0",
        "message_start 1",
        "message_end 1",
    ]


async def test_a_tool_that_returns_on_abort_keeps_its_output():
    """It is marked as aborted, and what it had is shown."""
    controller = AbortController()

    async def execute(tool_call_id, params, signal, on_update):
        controller.abort("enough")
        await signal.wait()
        return AgentToolResult.text("half of it", details={"lines": 1})

    [message] = await run_tool_calls(calls_of("a"), [tool(execute)], signal=controller.signal)
    assert (message.error_kind, message.details) == ("aborted", {"lines": 1})
    assert message.content[0].text == "half of it"
    assert "enough" in message.content[1].text


async def test_an_error_with_a_kind_of_its_own_keeps_it():
    """That the file was not there is still true after an abort."""
    controller = AbortController()

    async def execute(tool_call_id, params, signal, on_update):
        controller.abort()
        raise FileNotFoundError("no such file")

    [message] = await run_tool_calls(calls_of("a"), [tool(execute)], signal=controller.signal)
    assert (message.error_kind, message.text) == ("not_found", "no such file")


async def test_a_tool_that_ignores_an_abort_is_cancelled_after_the_grace():
    """What it had shown is in its message; hooks see that too."""
    controller = AbortController()
    cleaned, seen = [], []

    async def execute(tool_call_id, params, signal, on_update):
        on_update(AgentToolResult.text("first lines", details={"n": 1}))
        controller.abort("enough")
        try:
            await anyio.sleep(60)
        finally:
            cleaned.append(1)

    async def after(context):
        await anyio.sleep(0.001)
        seen.append(context.result.error_kind)

    with anyio.fail_after(20):
        [message] = await run_tool_calls(
            calls_of("a"),
            [tool(execute)],
            signal=controller.signal,
            grace_s=0.05,
            after_tool_call=[after],
        )
    assert (message.error_kind, message.details) == ("aborted", {"n": 1})
    assert message.content[0].text == "first lines"
    assert "enough; act was cancelled" in message.text
    assert (cleaned, seen) == ([1], ["aborted"])


async def test_a_tool_that_swallows_its_cancellation_is_left_behind_and_named():
    """The batch answers, later batches run, the runner waits for it when it closes."""
    controller, release, ended = AbortController(), anyio.Event(), []
    late = []

    async def stubborn(tool_call_id, params, signal, on_update):
        on_update(AgentToolResult.text("so far"))
        controller.abort("enough")
        with anyio.CancelScope(shield=True):
            await release.wait()
        on_update(AgentToolResult.text("late"))
        ended.append(1)
        return AgentToolResult.text("late result")

    events: list[Any] = []
    runner = ToolRunner(
        [tool(stubborn, "stubborn"), tool(echo)],
        grace_s=0.05,
        listeners=[events.append],
        max_concurrency=1,
        after_tool_call=[lambda context: late.append(context.result.content[0].text)],
    )
    with anyio.fail_after(30):
        async with runner:
            batch = [*calls_of("a", name="stubborn"), ToolCall(id="w", name="act")]
            messages = await runner.run(batch, controller.signal)
            assert [message.error_kind for message in messages] == ["aborted", "not_started"]
            assert messages[0].content[0].text == "so far"
            assert "stubborn did not stop" in messages[0].text
            told = len(events)
            # Its place is free again.
            [message] = await runner.run(calls_of("b"))
            assert message.text == "b"
            assert not ended
            release.set()
    assert ended == [1]
    assert not any("late" in str(event) for event in events[told:])
    assert late == ["so far", "b"]


async def test_a_plain_function_that_blocks_is_left_behind_and_named():
    """A thread cannot be interrupted."""
    controller, release = AbortController(), threading.Event()

    def execute(tool_call_id, params, signal, on_update):
        controller.abort("enough")
        release.wait(30)
        return AgentToolResult.text("late")

    with anyio.fail_after(30):
        async with ToolRunner([tool(execute)], grace_s=0.05) as runner:
            [message] = await runner.run(calls_of("a"), controller.signal)
            assert message.error_kind == "aborted"
            assert "act did not stop" in message.text
            release.set()


@pytest.mark.parametrize("shield", [False, True])
async def test_a_before_hook_that_hangs_does_not_hold_an_abort_up(shield):
    """Its call was not started, and never will be."""
    controller, release, ran = AbortController(), anyio.Event(), []

    async def hook(context):
        controller.abort("enough")
        with anyio.CancelScope(shield=shield):
            await release.wait()

    async def execute(tool_call_id, params, signal, on_update):
        ran.append(1)
        return AgentToolResult.text("")

    with anyio.fail_after(30):
        async with ToolRunner([tool(execute)], grace_s=0.05, before_tool_call=[hook]) as runner:
            messages = await runner.run(calls_of("a", "b"), controller.signal)
            assert [message.error_kind for message in messages] == ["not_started"] * 2
            release.set()
    assert not ran


@pytest.mark.parametrize("shield", [False, True])
async def test_an_after_hook_that_hangs_does_not_hold_an_abort_up(shield):
    """The result is withheld: the hook might have redacted it."""
    controller, release = AbortController(), anyio.Event()

    async def hook(context):
        controller.abort("enough")
        with anyio.CancelScope(shield=shield):
            await release.wait()

    with anyio.fail_after(30):
        async with ToolRunner([tool(echo)], grace_s=0.05, after_tool_call=[hook]) as runner:
            [message] = await runner.run(calls_of("secret"), controller.signal)
            assert message.is_error
            assert "withheld" in message.text
            assert "secret" not in message.to_json()
            release.set()


# The caller's own cancellation


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
async def test_the_caller_s_cancellation_waits_for_cleaning_up_and_goes_on(mode):
    """A shielded clean-up is finished before the caller is gone."""
    cleaned, ran = [], []

    async def execute(tool_call_id, params, signal, on_update):
        ran.append(params.path)
        try:
            await anyio.sleep(60)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.05)
            cleaned.append(signal.is_set())

    with anyio.fail_after(20), anyio.move_on_after(0.1) as scope:
        await run_tool_calls(calls_of("a", "b"), [tool(execute)], tool_execution=mode)
    assert scope.cancelled_caught
    assert ran == (["a", "b"] if mode == "parallel" else ["a"])
    assert cleaned == [True] * len(ran)


async def test_a_cancelled_batch_leaves_its_runner_usable():
    """Other batches of the runner are not touched."""
    started = anyio.Event()

    async def execute(tool_call_id, params, signal, on_update):
        if params.path == "hang":
            started.set()
            await anyio.sleep(60)
        return AgentToolResult.text(params.path)

    async with ToolRunner([tool(execute)], max_concurrency=1) as runner:
        async with anyio.create_task_group() as group:
            group.start_soon(runner.run, calls_of("hang", "never"))
            await started.wait()
            group.cancel_scope.cancel()
        with anyio.fail_after(10):
            [message] = await runner.run(calls_of("next"))
    assert message.text == "next"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_native_cancellation_and_timeouts_of_asyncio_get_out():
    """`task.cancel()` and `asyncio.timeout()` do what they always do."""
    import asyncio

    cleaned = []

    async def execute(tool_call_id, params, signal, on_update):
        try:
            await asyncio.sleep(60)
        finally:
            with anyio.CancelScope(shield=True):
                await asyncio.sleep(0.01)
            cleaned.append(1)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await run_tool_calls(calls_of("a"), [tool(execute)])
    task = asyncio.create_task(run_tool_calls(calls_of("a", "b"), [tool(execute)]))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(cleaned) == 3
