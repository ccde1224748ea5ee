"""What tools, hooks and results may do to the runner: nothing that reaches another call."""

from __future__ import annotations

import time
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from backends.memory import MemoryBackend
from toolkit import (
    AgentTool,
    AgentToolResult,
    ImageContent,
    TextContent,
    ToolCall,
    ToolRunner,
    coding_tools,
    run_tool_calls,
)

pytestmark = pytest.mark.anyio


class Arguments(BaseModel):
    path: str = "f"


def tool(execute, name="act") -> AgentTool[Any]:
    return AgentTool(name=name, label="", description="", parameters=Arguments, execute=execute)


async def echo(tool_call_id, params, signal, on_update):
    return AgentToolResult.text(params.path)


class Exits:
    """Ends the process when it is looked at."""

    def __repr__(self) -> str:
        raise SystemExit("repr")

    def __str__(self) -> str:
        raise SystemExit("str")


class ExitingError(Exception):
    def __str__(self) -> str:
        raise SystemExit("str")


class RaisingDict(dict):
    def items(self):
        raise RuntimeError("no items")


UNCHECKED = [
    TextContent.model_construct(text="x", type="image"),
    TextContent.model_construct(text=5),
    TextContent.model_construct(),
    ImageContent.model_construct(data="aa"),
    ImageContent.model_construct(data="aa", mime_type=5),
]


@pytest.mark.parametrize("block", UNCHECKED)
async def test_content_that_went_past_its_own_check_is_a_bad_result(block):
    """model_construct() can make any block; the message could not be built or written."""

    async def execute(tool_call_id, params, signal, on_update):
        return AgentToolResult([block])

    calls = [ToolCall(id="1", name="act"), ToolCall(id="2", name="echo")]
    bad, good = await run_tool_calls(calls, [tool(execute), tool(echo, "echo")])
    assert (bad.error_kind, "instead of TextContent" in bad.text) == ("internal", True)
    assert good.text == "f"
    bad.to_json()


async def test_surrogates_in_an_image_are_escaped():
    """As in text: no lone surrogate gets out."""

    async def execute(tool_call_id, params, signal, on_update):
        return AgentToolResult([ImageContent.model_construct(data="\udc80", mime_type="a/\udc80")])

    [message] = await run_tool_calls([ToolCall(id="1", name="act")], [tool(execute)])
    assert "\\udc80" in message.content[0].data
    message.to_json().encode()


UPDATES = [
    AgentToolResult([Exits()]),
    AgentToolResult([TextContent(text="x")], {"a": Exits()}),
    AgentToolResult([TextContent(text="x")], RaisingDict(a=1)),
    AgentToolResult([TextContent.model_construct()]),
    Exits(),
]


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("threaded", [True, False])
async def test_an_update_that_cannot_be_looked_at_is_dropped(update, threaded):
    """From a thread it is looked at by the event loop, which must not end over it."""

    def in_thread(tool_call_id, params, signal, on_update):
        on_update(update)
        time.sleep(0.01)
        return AgentToolResult.text("done")

    async def on_loop(tool_call_id, params, signal, on_update):
        on_update(update)
        return AgentToolResult.text("done")

    execute = in_thread if threaded else on_loop
    [message] = await run_tool_calls([ToolCall(id="1", name="act")], [tool(execute)])
    assert (message.text, message.is_error) == ("done", False)


@pytest.mark.parametrize("value", [Exits(), AgentToolResult([Exits()])])
async def test_a_result_that_cannot_be_looked_at_is_an_error(value):
    """What it is can still be said by its type."""

    async def execute(tool_call_id, params, signal, on_update):
        return value

    [message] = await run_tool_calls([ToolCall(id="1", name="act")], [tool(execute)])
    assert message.error_kind == "internal"
    assert "(Exits)" in message.text


@pytest.mark.parametrize("error", [ExitingError(), GeneratorExit("g"), StopIteration(1)])
@pytest.mark.parametrize("threaded", [True, False])
async def test_an_error_that_is_hard_to_catch_is_caught(error, threaded):
    """Its text may raise; asyncio may take it for the end of a coroutine."""

    def in_thread(tool_call_id, params, signal, on_update):
        raise error

    async def on_loop(tool_call_id, params, signal, on_update):
        raise error

    execute = in_thread if threaded else on_loop
    [message] = await run_tool_calls([ToolCall(id="1", name="act")], [tool(execute)])
    assert message.is_error


async def open_scope() -> None:
    anyio.CancelScope().__enter__()


async def open_cancelled_scope() -> None:
    anyio.CancelScope().__enter__().cancel()


async def open_task_group() -> None:
    group = anyio.create_task_group()
    await group.__aenter__()
    group.start_soon(anyio.lowlevel.checkpoint)


@pytest.mark.parametrize("leak", [open_scope, open_cancelled_scope, open_task_group])
@pytest.mark.parametrize("step", ["before", "execute", "after"])
async def test_a_scope_left_open_is_an_error_of_that_call_only(leak, step):
    """A tool that opens a connection by hand and keeps it must not end the runner."""

    async def execute(tool_call_id, params, signal, on_update):
        if step == "execute":
            await leak()
        return AgentToolResult.text("done")

    async def hook(context):
        if context.tool.name == "act":
            await leak()

    async with ToolRunner(
        [tool(execute), tool(echo, "echo")],
        before_tool_call=[hook] if step == "before" else [],
        after_tool_call=[hook] if step == "after" else [],
    ) as runner:
        calls = [ToolCall(id="1", name="act"), ToolCall(id="2", name="echo")]
        bad, good = await runner.run(calls)
        assert "left a cancel scope or a task group open" in bad.text
        assert bad.error_kind == ("blocked" if step == "before" else "internal")
        assert good.text == "f"
        assert (await runner.run(calls[1:]))[0].text == "f"


@pytest.mark.parametrize("depth", [1, 3])
async def test_a_tool_may_run_a_batch_in_its_own_runner(depth):
    """However many run already: it must not wait for the place of the tool that waits for it."""
    runner: ToolRunner

    async def nest(tool_call_id, params, signal, on_update):
        name = "nest" if int(tool_call_id) > 1 else "echo"
        number = str(int(tool_call_id) - 1)
        messages = await runner.run([ToolCall(id=number, name=name) for _ in range(2)])
        return AgentToolResult.text(messages[0].text.split("\n")[0])

    tools = [tool(nest, "nest"), tool(echo, "echo")]
    with anyio.fail_after(10):
        async with ToolRunner(tools, max_concurrency=2) as runner:
            calls = [ToolCall(id=str(depth), name="nest") for _ in range(4)]
            messages = await runner.run(calls)
    assert [message.text.split("\n")[0] for message in messages] == ["f"] * 4


@pytest.mark.parametrize("call", [{"id": "1"}, None, ToolCall.model_construct(id=1, name="a")])
async def test_what_is_no_call_is_refused_before_anything_runs(call):
    """It has no id to answer to; the runner goes on."""
    async with ToolRunner([tool(echo)]) as runner:
        with pytest.raises(TypeError, match="is no ToolCall"):
            await runner.run([ToolCall(id="1", name="act"), call])
        assert len(await runner.run([ToolCall(id="1", name="act")])) == 1


CALLS = [
    ("read", {"path": "a"}),
    ("write", {"path": "a", "content": "x"}),
    ("edit", {"path": "a", "edits": [{"old_text": "a", "new_text": "b"}]}),
    ("bash", {"command": "ls"}),
    ("grep", {"pattern": "a"}),
    ("find", {"pattern": "a"}),
    ("ls", {}),
]


@pytest.mark.parametrize(("name", "arguments"), CALLS)
async def test_a_hook_cannot_slip_a_wrong_type_past_validation(name, arguments):
    """Arguments are for looking at; one that sets them blocks the call."""

    def hook(context):
        setattr(context.params, next(iter(type(context.params).model_fields)), 5)

    backend = MemoryBackend({"a": "a"})
    call = ToolCall(id="1", name=name, arguments=arguments)
    [message] = await run_tool_calls([call], coding_tools(backend), before_tool_call=[hook])
    assert message.error_kind == "blocked"
    assert backend.read_text("a") == "a"
