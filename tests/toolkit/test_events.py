"""Events reach listeners in order; nothing that a listener does changes a result."""

from __future__ import annotations

import json
import time
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from toolkit import AgentTool, AgentToolResult, ToolCall, ToolRunner, event_to_dict, run_tool_calls

pytestmark = pytest.mark.anyio


class Arguments(BaseModel):
    path: str = "f"


async def execute(tool_call_id, params, signal, on_update):
    on_update(AgentToolResult.text("1"))
    on_update(AgentToolResult.text("2"))
    return AgentToolResult.text("done", details={"a": 1})


def tool(execute=execute) -> AgentTool[Any]:
    return AgentTool(name="act", label="Act", description="", parameters=Arguments, execute=execute)


CALL = ToolCall(id="c", name="act", arguments={"path": "x"})
TYPES = [
    "tool_execution_start",
    "tool_execution_update",
    "tool_execution_update",
    "tool_execution_end",
    "message_start",
    "message_end",
]


async def test_events_of_a_call_come_in_order_with_the_wire_s_names():
    """As the sources name them."""
    events: list[Any] = []
    [message] = await run_tool_calls([CALL], [tool()], listeners=[events.append])
    told = [json.loads(json.dumps(event_to_dict(event))) for event in events]
    assert [event["type"] for event in told] == TYPES
    call = {"toolCallId": "c", "toolName": "act"}
    empty = {"isError": False, "errorKind": None, "structuredContent": None, "terminate": False}
    assert told[0] == {"type": TYPES[0], **call, "args": {"path": "x"}}
    assert told[1] == {
        "type": TYPES[1],
        **call,
        "args": {"path": "x"},
        "partialResult": {"content": [{"type": "text", "text": "1"}], "details": None, **empty},
    }
    result = {"content": [{"type": "text", "text": "done"}], "details": {"a": 1}, **empty}
    assert told[3] == {"type": TYPES[3], **call, "result": result, "isError": False}
    assert told[5]["message"] == json.loads(message.to_json())


@pytest.mark.parametrize("args", [float("nan"), "\ud800", b"x", [object()], {1: 2}])
async def test_events_are_json_whatever_the_arguments_are(args):
    """A model may send anything."""
    events: list[Any] = []
    call = ToolCall(id="c", name="act", arguments=args)
    await run_tool_calls([call], [tool()], listeners=[events.append])
    for event in events:
        json.dumps(event_to_dict(event), allow_nan=False, ensure_ascii=False).encode()


async def test_a_refused_call_has_a_start_and_an_end():
    """Displays need not know why."""
    events: list[Any] = []
    call = ToolCall(id="c", name="nope")
    await run_tool_calls([call], [tool()], listeners=[events.append])
    assert [event.type for event in events] == [TYPES[0], *TYPES[3:]]
    assert events[1].is_error


async def test_the_end_event_shows_what_the_message_says():
    """After all hooks, and with the notes of the pipeline."""
    events: list[Any] = []
    call = ToolCall(id="c", name="act", arguments="{path: 'x'}")
    [message] = await run_tool_calls([call], [tool()], listeners=[events.append])
    end = next(event for event in events if event.type == "tool_execution_end")
    assert list(end.result.content) == message.content
    assert end.result.details == message.details == {"a": 1, "arguments_repaired": True}


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), GeneratorExit()])
async def test_a_listener_that_raises_is_logged_once_and_detached(error, caplog):
    """The others get everything, the result is the same."""
    calls, events = [], []

    def bad(event):
        calls.append(event)
        raise error

    async def bad_later(event):
        calls.append(event)
        raise error

    for listener in (bad, bad_later):
        calls.clear()
        events.clear()
        caplog.clear()
        [message] = await run_tool_calls([CALL], [tool()], listeners=[listener, events.append])
        assert message.content[0].text == "done"
        assert len(calls) == 1
        assert [event.type for event in events] == TYPES
        assert len(caplog.records) == 1


async def test_an_async_listener_gets_all_events_in_order_before_the_batch_returns():
    """It may take its time within reason."""
    events = []

    async def listener(event):
        await anyio.sleep(0.005)
        events.append(event.type)

    async with ToolRunner([tool()], listeners=[listener]) as runner:
        await runner.run([CALL])
        assert events == TYPES
        await runner.run([CALL])
        assert events == TYPES * 2


async def test_a_lambda_around_an_async_listener_is_awaited_too():
    """What a listener returns decides, not what it looks like."""
    events = []

    async def listener(event):
        events.append(event.type)

    await run_tool_calls([CALL], [tool()], listeners=[lambda event: listener(event)])
    assert events == TYPES


async def test_a_listener_that_hangs_holds_nothing_up(caplog):
    """The batch waits a moment, once; the runner closes."""

    async def hang(event):
        await anyio.sleep(3600)

    began = time.monotonic()
    with anyio.fail_after(20):
        async with ToolRunner([tool()], listeners=[hang]) as runner:
            for _ in range(3):
                [message] = await runner.run([CALL])
                assert message.content[0].text == "done"
    assert time.monotonic() - began < 10
    assert "is slow" in caplog.text


async def test_updates_for_a_slow_listener_are_coalesced():
    """It misses pictures that were replaced, but neither the last one nor the end."""
    release, seen = anyio.Event(), []

    async def slow(event):
        await release.wait()
        seen.append(event)

    async def busy(tool_call_id, params, signal, on_update):
        for index in range(5000):
            on_update(AgentToolResult.text(str(index)))
        release.set()
        return AgentToolResult.text("done")

    await run_tool_calls([CALL], [tool(busy)], listeners=[slow])
    updates = [e.partial_result.content[0].text for e in seen if e.type == TYPES[1]]
    assert len(updates) < 100
    assert updates[-1] == "4999"
    assert [event.type for event in seen][-3:] == TYPES[3:]


async def test_a_listener_that_falls_hopelessly_behind_is_detached(caplog):
    """Memory is bounded."""

    async def hang(event):
        await anyio.sleep(3600)

    async def no_op(tool_call_id, params, signal, on_update):
        return AgentToolResult.text("")

    calls = [ToolCall(id=str(index), name="act") for index in range(100)]
    with anyio.fail_after(60):
        async with ToolRunner([tool(no_op)], listeners=[hang]) as runner:
            for _ in range(27):
                await runner.run(calls)
    assert "events behind" in caplog.text
