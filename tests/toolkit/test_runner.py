"""The runner: its options, its life, and the one-shot form."""

from __future__ import annotations

import inspect
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from toolkit import AgentTool, AgentToolResult, ToolCall, ToolRunner, run_tool_calls

pytestmark = pytest.mark.anyio


class Arguments(BaseModel):
    path: str = "f"


async def echo(tool_call_id, params, signal, on_update):
    return AgentToolResult.text(params.path)


def tool(execute=echo, name="act") -> AgentTool[Any]:
    return AgentTool(name=name, label="", description="", parameters=Arguments, execute=execute)


CALL = ToolCall(id="c", name="act")


def test_two_tools_with_one_name_are_refused():
    """A call could mean either."""
    with pytest.raises(ValueError, match="two tools have the name 'act'"):
        ToolRunner([tool(), tool()])


@pytest.mark.parametrize(
    "options", [{"max_concurrency": 0}, {"grace_s": -1}, {"grace_s": float("nan")}]
)
def test_numbers_out_of_range_are_refused(options):
    """At creation, not in the middle of a batch."""
    with pytest.raises(ValueError, match="it must be"):
        ToolRunner([tool()], **options)


async def test_a_runner_that_is_not_open_says_so():
    """Before and after."""
    runner = ToolRunner([tool()])
    with pytest.raises(RuntimeError, match="async with"):
        await runner.run([CALL])
    async with runner:
        await runner.run([CALL])
    with pytest.raises(RuntimeError, match="async with"):
        await runner.run([CALL])


async def test_a_runner_can_be_opened_again():
    """It keeps nothing from its first life."""
    runner = ToolRunner([tool()])
    for _ in range(2):
        async with runner:
            assert (await runner.run([CALL]))[0].text == "f"


async def test_an_error_of_the_body_is_not_put_into_a_group():
    """`except ValueError` around a runner works."""
    with pytest.raises(ValueError, match="mine"):  # noqa: PT012
        async with ToolRunner([tool()]) as runner:
            await runner.run([CALL])
            raise ValueError("mine")
    group = ExceptionGroup("mine", [ValueError("a")])
    with pytest.raises(ExceptionGroup) as caught:
        async with ToolRunner([tool()]):
            raise group
    assert caught.value is group


async def test_several_batches_run_at_once():
    """From several tasks."""
    both = anyio.Event()
    started = []

    async def meet(tool_call_id, params, signal, on_update):
        started.append(1)
        if len(started) == 2:
            both.set()
        await both.wait()
        return AgentToolResult.text("met")

    with anyio.fail_after(10):
        async with ToolRunner([tool(meet)]) as runner, anyio.create_task_group() as group:
            group.start_soon(runner.run, [CALL])
            group.start_soon(runner.run, [CALL])


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
async def test_a_batch_whose_runner_is_torn_down_is_still_answered(mode):
    """Every call has its message, in whatever task the batch was asked for."""
    started, answers = anyio.Event(), []

    async def hang(tool_call_id, params, signal, on_update):
        started.set()
        await anyio.sleep(3600)

    calls = [ToolCall(id=str(index), name="act") for index in range(3)]
    options = {"tool_execution": mode, "max_concurrency": 1}

    async def ask(runner):
        answers.extend(await runner.run(calls))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            with pytest.raises(ValueError, match="torn down"):  # noqa: PT012
                async with ToolRunner([tool(hang)], **options) as runner:
                    group.start_soon(ask, runner)
                    await started.wait()
                    raise ValueError("torn down")
    assert [message.tool_call_id for message in answers] == ["0", "1", "2"]
    kinds = [message.error_kind for message in answers]
    assert kinds == ["aborted", "not_started", "not_started"]


def test_the_one_shot_form_takes_every_option_of_the_runner():
    """An option cannot be forgotten there."""
    one_shot = set(inspect.signature(run_tool_calls).parameters) - {"calls", "signal"}
    assert one_shot == set(inspect.signature(ToolRunner).parameters)


async def test_nothing_is_left_after_a_runner_has_closed():
    """No task waits for anything any more."""
    before = len(anyio.get_running_tasks())
    async with ToolRunner([tool()], listeners=[lambda event: None]) as runner:
        await runner.run([CALL] * 5)
    assert len(anyio.get_running_tasks()) == before


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_eager_task_factory_changes_nothing(anyio_backend):
    """Calls that end before their task was ever scheduled are answered in order."""
    import asyncio

    factory = getattr(asyncio, "eager_task_factory", None)
    if factory is None:
        pytest.skip("asyncio has eager tasks from Python 3.12 on")
    asyncio.get_running_loop().set_task_factory(factory)
    calls = [ToolCall(id=str(n), name="act", arguments={"path": str(n)}) for n in range(9)]
    messages = await run_tool_calls(calls, [tool()], max_concurrency=2)
    assert [message.text for message in messages] == [str(n) for n in range(9)]
