"""One call through the five steps: whatever goes wrong, one message comes back."""

from __future__ import annotations

import asyncio
import functools
import json
import sys
import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

import operations
from toolkit import (
    AgentTool,
    AgentToolResult,
    Block,
    ReplaceArguments,
    TextContent,
    ToolCall,
    ToolFailure,
    ToolResultMessage,
    ToolResultOverride,
    run_tool_calls,
)

pytestmark = pytest.mark.anyio


class Edit(BaseModel):
    old_text: str


class Arguments(BaseModel):
    path: str = "f"
    offset: int | None = None
    edits: list[Edit] = []


async def echo(tool_call_id, params, signal, on_update):
    return AgentToolResult.text(f"{params.path} {params.offset}")


def tool(execute=echo, name="act", **options) -> AgentTool[Any]:
    return AgentTool(
        name=name, label=name, description=name, parameters=Arguments, execute=execute, **options
    )


def raising(error: BaseException):
    async def execute(tool_call_id, params, signal, on_update):
        raise error

    return execute


def returning(value: Any):
    async def execute(tool_call_id, params, signal, on_update):
        return value

    return execute


async def run_one(execute=echo, arguments: Any = None, **options) -> ToolResultMessage:
    [message] = await run_tool_calls(
        [ToolCall(id="c1", name="act", arguments=arguments)], [tool(execute)], **options
    )
    assert message.tool_call_id == "c1"
    json.loads(message.to_json())
    return message


async def test_a_call_that_works_becomes_its_result():
    """The id and the name are the call's, the rest is the tool's."""
    result = AgentToolResult(
        [TextContent(text="done")], {"lines": 1}, structured_content={"exit": 0}
    )
    message = await run_one(returning(result))
    assert (message.text, message.details, message.structured_content) == (
        "done",
        {"lines": 1},
        {"exit": 0},
    )
    assert (message.is_error, message.error_kind, message.tool_name) == (False, None, "act")
    assert message.timestamp > 1_600_000_000_000
    assert message.duration_ms >= 0


# Step 0 and 1


async def test_an_unknown_tool_is_named_with_the_closest_and_all_others():
    """A model can correct its spelling."""
    calls = [ToolCall(id="1", name="Reed", arguments={})]
    tools = [tool(name="read"), tool(name="write")]
    [message] = await run_tool_calls(calls, tools)
    assert (message.error_kind, message.tool_name) == ("unknown_tool", "Reed")
    assert "'Reed'; did you mean 'read'? (tools: read, write)" in message.text
    [message] = await run_tool_calls(calls, [])
    assert "tools: none" in message.text


async def test_preparing_gets_a_copy_and_may_change_it():
    """The caller's arguments stay as they are."""
    raw = {"path": "a", "edits": [{"old_text": "x"}]}

    def prepare(arguments):
        arguments["edits"].append({"oldText": "y"})
        return {**arguments, "offset": "7"}

    seen = []

    async def execute(tool_call_id, params, signal, on_update):
        seen.append(params)
        return AgentToolResult.text("")

    calls = [ToolCall(id="1", name="act", arguments=raw)]
    [message] = await run_tool_calls(calls, [tool(execute, prepare_arguments=prepare)])
    assert not message.is_error
    assert seen == [Arguments(path="a", offset=7, edits=[Edit(old_text="x"), Edit(old_text="y")])]
    assert raw == {"path": "a", "edits": [{"old_text": "x"}]}


@pytest.mark.parametrize("error", [ValueError("odd"), SystemExit(1), RecursionError()])
async def test_preparing_may_raise(error):
    """Then the arguments are wrong, and the tool does not run."""

    def prepare(arguments):
        raise error

    calls = [ToolCall(id="1", name="act", arguments={"path": "a"})]
    ran = []
    [message] = await run_tool_calls(
        calls, [tool(returning(ran.append(1) or None), prepare_arguments=prepare)]
    )
    assert message.error_kind == "invalid_arguments"
    assert type(error).__name__ in message.text


@pytest.mark.parametrize("prepared", [None, "text", 5, [1]])
async def test_preparing_must_give_back_an_object(prepared):
    """A forgotten return is told as such."""
    calls = [ToolCall(id="1", name="act", arguments={"path": "a"})]
    [message] = await run_tool_calls(calls, [tool(prepare_arguments=lambda _: prepared)])
    assert message.error_kind == "invalid_arguments"
    assert "must be an object" in message.text


async def test_repaired_arguments_are_said_to_be():
    """To the model in words, to programs in details; also when they are refused afterwards."""
    message = await run_one(arguments="{path: 'g'}")
    assert message.content[0].text == "g None"
    assert message.details == {"arguments_repaired": True}
    assert "were repaired" in message.content[1].text
    refused = await run_one(arguments="{path: 5}")
    assert refused.is_error
    assert refused.details == {"arguments_repaired": True}


# Step 2


async def test_wrong_arguments_are_listed_and_shown():
    """`path: problem` for each, then what was received."""
    message = await run_one(arguments={"path": 12345, "offset": "abc"})
    assert message.error_kind == "invalid_arguments"
    assert "\n  path: must be a string, not 12345\n  offset: " in message.text
    assert 'received: {"path": 12345, "offset": "abc"}' in message.text


async def test_huge_arguments_are_shown_cut():
    """An error about ten megabytes is no ten megabytes."""
    message = await run_one(arguments={"path": "f", "nope": "x" * 10_000_000})
    assert len(message.text) < 2500


# Step 3


async def block(context):
    return Block("not on my watch", terminate=True)


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (False, "does not allow"),
        (Block(), "does not allow"),
        (Block("because"), "because"),
        ("yes", "no decision"),
        (0, "no decision"),
        ({"block": True}, "no decision"),
    ],
)
async def test_hooks_block_plain_or_async(decision, said):
    """Also by a bare False, and by anything that is no decision."""
    ran = []

    async def execute(tool_call_id, params, signal, on_update):
        ran.append(1)

    async def later(context):
        return decision

    for hook in (lambda context: decision, later, functools.partial(later)):
        message = await run_one(execute, before_tool_call=[hook])
        assert (message.error_kind, message.is_error) == ("blocked", True)
        assert said in message.text
    assert not ran


@pytest.mark.parametrize(
    "error", [ValueError("b"), SystemExit(1), GeneratorExit(), asyncio.CancelledError()]
)
async def test_a_before_hook_that_raises_blocks(error):
    """It fails closed, and its words are told."""

    async def hook(context):
        raise error

    message = await run_one(before_tool_call=[hook])
    assert message.error_kind == "blocked"
    assert f"hook raised {type(error).__name__}" in message.text
    if str(error):
        assert str(error) in message.text


async def test_hooks_chain_and_the_first_block_wins():
    """The ones behind it are not asked."""
    asked = []

    def hook(name, decision):
        return lambda context: asked.append(name) or decision

    hooks = [hook("a", None), hook("b", True), hook("c", Block("c!")), hook("d", Block("d!"))]
    message = await run_one(before_tool_call=hooks)
    assert (asked, message.text) == (["a", "b", "c"], "c!")


async def test_a_hook_sees_the_validated_arguments_of_the_call():
    """With defaults filled in, and as a copy of its own."""
    seen = []

    def hook(context):
        seen.append((context.call.id, context.tool.name, context.arguments, context.params))
        context.arguments["path"] = "changed"
        seen.append(context.arguments["path"])

    await run_one(arguments={"offset": "3"}, before_tool_call=[hook])
    expected = {"path": "f", "offset": 3, "edits": []}
    assert seen == [("c1", "act", expected, Arguments(offset=3)), "f"]


async def test_replaced_arguments_are_validated_again():
    """The next hook and the tool see the new ones; wrong ones block."""
    seen = []
    hooks = [
        lambda context: ReplaceArguments({**context.arguments, "path": "g"}),
        lambda context: seen.append(context.params.path),
    ]
    message = await run_one(arguments={"offset": 1}, before_tool_call=hooks)
    assert (message.text, seen) == ("g 1", ["g"])
    by_model = await run_one(before_tool_call=[lambda c: ReplaceArguments(Arguments(path="h"))])
    assert by_model.text == "h None"
    for wrong in ({"path": 5}, {"nope": 1}, {"path": "\ud800"}, None, 5):
        message = await run_one(before_tool_call=[lambda c, w=wrong: ReplaceArguments(w)])
        assert message.error_kind == "blocked"


# Step 4


@pytest.mark.parametrize(
    ("error", "text", "kind"),
    [
        (ValueError("Offset 200 is beyond the end (100 lines)"), None, "failed"),
        (ValueError(), "ValueError", "failed"),
        (ToolFailure("so", kind="changed"), "so", "changed"),
        (operations.PathNotFound("a", "/x", ("b",)), None, "not_found"),
        (SystemExit(3), "SystemExit: 3", "internal"),
        (GeneratorExit(), "GeneratorExit", "internal"),
        (StopIteration("s"), None, None),
        (StopAsyncIteration("s"), None, None),
        (ExceptionGroup("g", [ValueError("only one")]), "only one", "failed"),
        (BaseExceptionGroup("g", [ValueError("a"), SystemExit(2)]), "a\nSystemExit: 2", "failed"),
        (ExceptionGroup("g", [ToolFailure("x", kind="denied")]), "x", "denied"),
    ],
)
async def test_what_a_tool_raises_is_told_exactly(error, text, kind):
    """Nothing is added, nothing is left out."""
    message = await run_one(raising(error))
    assert message.is_error
    if kind is not None:
        assert (message.text, message.error_kind) == (text or str(error), kind)


async def test_a_failure_keeps_what_it_carries():
    """Output that was there before the error, and facts for programs."""
    error = ToolFailure(
        "x",
        kind="timeout",
        details={"a": 1},
        content=[TextContent(text="partial\n"), TextContent(text="timed out")],
        structured_content=[1],
    )
    message = await run_one(raising(error))
    assert message.text == "partial\n\ntimed out"
    assert (message.details, message.structured_content) == ({"a": 1}, [1])


async def test_a_failure_with_details_that_are_not_json_is_still_told():
    """What it says first, then what is wrong with it."""
    message = await run_one(raising(ToolFailure("words", details={"a": object()})))
    assert message.text.startswith("words\n")
    assert message.error_kind == "internal"


class Cycle(dict):
    def __init__(self):
        super().__init__()
        self["me"] = self


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "act returned null instead of a result"),
        ("text", 'act returned "text" instead of a result'),
        ({"content": []}, "instead of a result"),
        (AgentToolResult, "instead of a result"),
        (AgentToolResult("text"), "content is"),
        (AgentToolResult(None), "content is null"),
        (AgentToolResult(["text"]), 'content with "text"'),
        (AgentToolResult([{"type": "text", "text": "x"}]), "TextContent or ImageContent"),
        (AgentToolResult([TextContent.model_construct(text=5)]), "TextContent or ImageContent"),
        (AgentToolResult.text("x", details=[1]), "details that are [1]"),
        (AgentToolResult.text("x", details={"a": {1, 2}}), "details.a: is a set"),
        (AgentToolResult.text("x", details={"a": float("nan")}), "details.a: is nan"),
        (AgentToolResult.text("x", details={1: 2}), "the key 1"),
        (AgentToolResult.text("x", details=Cycle()), "nested deeper"),
        (AgentToolResult.text("x", structured_content=b"x"), "structured_content: is a bytes"),
        (AgentToolResult.text("x", is_error=1), "is_error=1"),
        (AgentToolResult.text("x", terminate="yes"), "terminate="),
        (AgentToolResult.text("x", is_error=True, error_kind="odd"), "error_kind 'odd'"),
    ],
    ids=str,
)
async def test_wrong_return_values_are_told(value, said):
    """The author of the tool sees what to mend."""
    message = await run_one(returning(value))
    assert (message.is_error, message.error_kind) == (True, "internal")
    assert said in message.text


async def test_text_that_is_not_valid_never_gets_out():
    """Lone surrogates are escaped wherever they stand."""
    result = AgentToolResult(
        [TextContent.model_construct(type="text", text="a\udc80")],
        {"k\udc80": ["\udc81"]},
        structured_content="\udc82",
    )
    message = await run_one(returning(result))
    assert message.text == "a\\udc80"
    assert message.details == {"k\\udc80": ["\\udc81"]}
    assert message.structured_content == "\\udc82"
    for error in (ValueError("\udc80"), KeyError("\ud800")):
        (await run_one(raising(error))).to_json().encode()


async def test_details_are_a_copy():
    """A tool that goes on with its own dict changes no message."""
    details: dict[str, Any] = {"list": [1]}
    message = await run_one(returning(AgentToolResult.text("x", details=details)))
    details["list"].append(2)
    assert message.details == {"list": [1]}


async def test_a_tool_may_say_that_it_failed():
    """With a kind of its own, or just so."""
    message = await run_one(returning(AgentToolResult.text("x", is_error=True)))
    assert (message.is_error, message.error_kind) == (True, "failed")
    wrong = AgentToolResult.text("x", is_error=True, error_kind="too_large")
    assert (await run_one(returning(wrong))).error_kind == "too_large"


async def test_a_cancellation_that_nobody_asked_for_is_an_error(anyio_backend_name):
    """It neither ends the batch nor the caller."""

    async def saved_from_a_scope(tool_call_id, params, signal, on_update):
        with anyio.CancelScope() as scope:
            scope.cancel()
            try:
                await anyio.sleep(1)
            except BaseException as error:
                kept = error
                raise
        raise kept

    message = await run_one(saved_from_a_scope)
    assert message.error_kind == "internal"
    assert "nobody asked" in message.text
    if anyio_backend_name == "asyncio":
        message = await run_one(raising(asyncio.CancelledError()))
        assert "nobody asked" in message.text


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("await_it", [True, False])
async def test_a_tool_that_cancels_its_own_task_harms_nobody(await_it):
    """Its siblings, its hooks and the runner go on."""

    async def execute(tool_call_id, params, signal, on_update):
        if params.path == "bad":
            asyncio.current_task().cancel()
        if await_it:
            await anyio.sleep(0.01)
        return AgentToolResult.text("fine")

    async def hook(context):
        await anyio.lowlevel.checkpoint()

    calls = [
        ToolCall(id=str(index), name="act", arguments={"path": path})
        for index, path in enumerate(["good", "bad", "good"])
    ]
    messages = await run_tool_calls(calls, [tool(execute)], after_tool_call=[hook])
    assert [message.text for message in messages][::2] == ["fine", "fine"]
    assert messages[1].is_error


async def test_the_caller_can_go_on_after_strange_tools():
    """No cancellation sticks to the caller's task."""
    await run_one(raising(GeneratorExit()))
    await anyio.sleep(0.01)


async def test_ctrl_c_in_a_tool_passes_to_the_caller():
    """KeyboardInterrupt is nobody's to keep; the other calls are ended first."""
    ended = []

    async def execute(tool_call_id, params, signal, on_update):
        if params.path == "bad":
            raise KeyboardInterrupt
        try:
            await anyio.sleep(60)
        finally:
            ended.append(1)

    calls = [ToolCall(id=path, name="act", arguments={"path": path}) for path in ("x", "bad")]
    with pytest.raises(KeyboardInterrupt):
        await run_tool_calls(calls, [tool(execute)])
    assert ended == [1]


@pytest.mark.parametrize("where", ["before_tool_call", "after_tool_call", "listeners"])
async def test_ctrl_c_passes_from_everywhere(where):
    """From hooks and listeners too."""

    def interrupted(context):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await run_one(**{where: [interrupted]})


async def test_plain_functions_run_in_a_thread():
    """They must not block the event loop."""
    threads = []

    def execute(tool_call_id, params, signal, on_update):
        threads.append(threading.current_thread())
        on_update(AgentToolResult.text("half"))
        return AgentToolResult.text("whole")

    seen = []
    message = await run_one(execute, listeners=[seen.append])
    assert message.text == "whole"
    assert threads[0] is not threading.current_thread()
    types = [event.type for event in seen]
    assert types.index("tool_execution_update") < types.index("tool_execution_end")


async def test_callable_objects_and_partials_are_tools_too():
    """Whatever can be called and awaited."""

    class Act:
        async def __call__(self, tool_call_id, params, signal, on_update):
            return AgentToolResult.text("object")

    assert (await run_one(Act())).text == "object"
    assert (await run_one(functools.partial(echo))).text == "f None"
    assert (await run_one(lambda *given: echo(*given))).text == "f None"


async def test_updates_after_the_end_are_dropped():
    """They would be taken for those of another call."""
    kept = []

    async def execute(tool_call_id, params, signal, on_update):
        kept.append(on_update)
        on_update(AgentToolResult.text("1"))
        on_update(AgentToolResult.text("2"))
        return AgentToolResult.text("done")

    seen = []
    await run_one(execute, listeners=[seen.append])
    kept[0](AgentToolResult.text("late"))
    updates = [e.partial_result.content[0].text for e in seen if e.type == "tool_execution_update"]
    assert updates == ["1", "2"]


@pytest.mark.parametrize("update", [None, "text", AgentToolResult("text")])
async def test_a_wrong_update_is_dropped_and_logged(update, caplog):
    """It is no reason to fail a call that does its work."""

    async def execute(tool_call_id, params, signal, on_update):
        on_update(update)
        return AgentToolResult.text("done")

    seen = []
    message = await run_one(execute, listeners=[seen.append])
    assert message.text == "done"
    assert "tool_execution_update" not in [event.type for event in seen]
    assert "update dropped" in caplog.text


# Step 5


async def test_after_hooks_change_fields_and_leave_the_rest():
    """What an override leaves out stays; None clears."""
    result = AgentToolResult.text("x", details={"a": 1}, structured_content=2)

    async def run_with(**fields):
        hook = lambda context: ToolResultOverride(**fields)  # noqa: E731
        return await run_one(returning(result), after_tool_call=[hook])

    message = await run_with(content=[TextContent(text="y")])
    assert (message.text, message.details, message.structured_content) == ("y", {"a": 1}, 2)
    message = await run_with(details=None, structured_content=None)
    assert (message.text, message.details, message.structured_content) == ("x", None, None)
    message = await run_with(content=None)
    assert message.content == []
    message = await run_with(is_error=True)
    assert (message.is_error, message.error_kind, message.text) == (True, "failed", "x")
    message = await run_with(is_error=True, error_kind="denied")
    assert message.error_kind == "denied"
    assert (await run_with()).details == {"a": 1}


async def test_after_hooks_see_failures_and_chain():
    """Each sees the result as the one before has left it."""
    seen = []

    def first(context):
        seen.append((context.result.is_error, context.result.content[0].text))
        return ToolResultOverride(is_error=False, content=[TextContent(text="mended")])

    async def second(context):
        seen.append((context.result.is_error, context.result.content[0].text))

    message = await run_one(raising(ValueError("broken")), after_tool_call=[first, second])
    assert seen == [(True, "broken"), (False, "mended")]
    assert (message.is_error, message.error_kind, message.text) == (False, None, "mended")


async def test_after_hooks_are_not_asked_about_calls_that_did_not_run():
    """Refused and blocked calls have no result of a tool."""
    seen = []
    await run_one(arguments={"path": 1}, after_tool_call=[seen.append])
    await run_one(before_tool_call=[block], after_tool_call=[seen.append])
    assert not seen


@pytest.mark.parametrize(
    "hook",
    [
        raising(ValueError("x")),
        lambda context: 1 / 0,
        lambda context: "text",
        lambda context: False,
        lambda context: ToolResultOverride(content="text"),
        lambda context: ToolResultOverride(details={"a": object()}),
        lambda context: sys.exit(1),
    ],
)
async def test_a_failing_after_hook_withholds_the_result(hook):
    """A hook that was to redact must not fail open."""
    secret = AgentToolResult.text("secret", details={"s": "secret"}, structured_content="secret")
    message = await run_one(returning(secret), after_tool_call=[hook])
    assert (message.is_error, message.error_kind) == (True, "internal")
    assert "withheld" in message.text
    assert "secret" not in message.to_json()


async def test_the_text_of_a_failing_after_hook_is_not_told():
    """It may quote what the hook was there to hide."""

    def redact(context):
        int(context.result.content[0].text)

    message = await run_one(returning(AgentToolResult.text("pass")), after_tool_call=[redact])
    assert message.text == "the result is withheld: redact raised ValueError"


# Everything at once


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
anything = json_values | st.binary(max_size=3) | st.sets(st.integers()) | st.just(object())


def test_any_arguments_and_any_return_value_make_one_message():
    """Nothing is ever raised, and the message is always JSON in valid text."""

    @settings(max_examples=250, deadline=None)
    @given(
        anything | st.dictionaries(st.sampled_from(["path", "offset", "edits"]), json_values),
        anything,
        anything,
        st.text(st.characters(), max_size=4),
    )
    def check(arguments, returned, details, text):
        for value in (returned, AgentToolResult.text(text, details=details)):
            call = ToolCall(id=text, name="act", arguments=arguments)
            [message] = anyio.run(run_tool_calls, [call], [tool(returning(value))])
            assert ToolResultMessage.model_validate_json(message.to_json().encode()) == message

    check()
