"""Faults that users met in other tool kits on the way from a call to its result, and near ones."""

# ruff: noqa: N802 - a test is named after the report that it stands for

from __future__ import annotations

import copy
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.places import refused, said, text
from toolkit.abort import AbortController
from toolkit.calls import ToolCall
from toolkit.events import ToolExecutionEnd, ToolExecutionUpdate
from toolkit.runner import ToolRunner

if TYPE_CHECKING:
    from tests.conformance.places import Place

pytestmark = pytest.mark.anyio


class AbortWhen:
    """A listener that aborts once this many commands have printed and this many calls are over."""

    def __init__(self, *, printed: int, over: int = 0) -> None:
        self.controller = AbortController()
        self._missing = {"printed": printed, "over": over}
        self._seen: set[tuple[str, str]] = set()

    def __call__(self, event: Any) -> None:
        kinds = {ToolExecutionUpdate: "printed", ToolExecutionEnd: "over"}
        if kind := kinds.get(type(event)):
            self._seen.add((kind, event.tool_call_id))
        counts = Counter(kind for kind, _ in self._seen)
        if all(counts[kind] >= number for kind, number in self._missing.items()):
            self.controller.abort("the user said so")


_PRINT_AND_WAIT = ("bash", {"command": "echo before; sleep 60"})
_WRITE_AND_READ = (("write", {"path": "f", "content": "x"}), ("read", {"path": "g"}))


@pytest.mark.parametrize("execution", ["sequential", "parallel"])
async def test_B05_an_abort_before_the_batch_starts_nothing(place: Place, execution: str) -> None:
    await place.put("g", b"content\n")
    controller = AbortController()
    controller.abort("the user said so")
    messages = await place.batch(
        _PRINT_AND_WAIT, *_WRITE_AND_READ, signal=controller.signal, tool_execution=execution
    )
    assert [message.error_kind for message in messages] == ["not_started"] * 3
    assert not await place.exists("f")


@pytest.mark.needs("commands")
async def test_B05_an_abort_leaves_the_calls_behind_it_alone(place: Place) -> None:
    await place.put("g", b"content\n")
    abort = AbortWhen(printed=1)
    messages = await place.batch(
        _PRINT_AND_WAIT,
        *_WRITE_AND_READ,
        signal=abort.controller.signal,
        tool_execution="sequential",
        listeners=(abort,),
    )
    kinds = [message.error_kind for message in messages]
    assert kinds == ["aborted", "not_started", "not_started"]
    assert not await place.exists("f")


@pytest.mark.needs("commands")
async def test_B05_an_abort_takes_nothing_from_the_calls_that_are_over(place: Place) -> None:
    await place.put("g", b"content\n")
    abort = AbortWhen(printed=1, over=2)
    messages = await place.batch(
        _PRINT_AND_WAIT,
        *_WRITE_AND_READ,
        signal=abort.controller.signal,
        tool_execution="parallel",
        listeners=(abort,),
    )
    assert messages[0].error_kind == "aborted"
    said(messages[1])
    assert "content" in said(messages[2])
    assert await place.get("f") == b"x"


@pytest.mark.needs("commands")
@pytest.mark.parametrize("count", [1, 40])
async def test_B05_calls_beyond_the_limit_are_answered_too(place: Place, count: int) -> None:
    running = min(count, 4)
    abort = AbortWhen(printed=running)
    messages = await place.batch(
        *[_PRINT_AND_WAIT] * count,
        signal=abort.controller.signal,
        max_concurrency=4,
        listeners=(abort,),
    )
    kinds = Counter(message.error_kind for message in messages)
    assert len(messages) == count
    assert kinds["aborted"] == running
    assert kinds["not_started"] == count - running


def _raising(error: BaseException) -> Any:
    def hook(_context: Any) -> None:
        raise error

    return hook


@pytest.mark.parametrize(
    "error",
    [ValueError("b reason"), RuntimeError(), KeyError("b reason"), OSError(5, "b reason")],
    ids=["with text", "without", "key", "os"],
)
async def test_B37_a_before_hook_that_raises_blocks(place: Place, error: Exception) -> None:
    arguments = {"path": "f", "content": "x"}
    [message] = await place.batch(("write", arguments), before_tool_call=(_raising(error),))
    told = refused(message, "blocked")
    assert ("b reason" if error.args else "RuntimeError") in told
    assert await place.names() == []


@pytest.mark.parametrize("error", [ValueError("a reason"), RuntimeError(), TypeError("a reason")])
async def test_B37_an_after_hook_that_raises_is_an_error_message(
    place: Place, error: Exception
) -> None:
    arguments = {"path": "f", "content": "x"}
    [message] = await place.batch(("write", arguments), after_tool_call=(_raising(error),))
    assert type(error).__name__ in refused(message)
    assert await place.get("f") == b"x"


async def test_B37_the_after_hook_is_told_of_failures(place: Place) -> None:
    seen: list[tuple[str, bool]] = []

    def hook(context: Any) -> None:
        seen.append((context.tool.name, context.result.is_error))

    await place.put("g", b"x")
    await place.batch(
        ("read", {"path": "nope"}),
        ("read", {"path": "g"}),
        ("bash", {"command": "exit 3"}),
        after_tool_call=(hook,),
        tool_execution="sequential",
    )
    assert seen == [("read", True), ("read", False), ("bash", True)]


@pytest.mark.needs("commands")
async def test_B37_updates_pass_hooks(place: Place) -> None:
    events: list[Any] = []
    [message] = await place.batch(
        ("bash", {"command": "echo before; sleep 60", "timeout": 1}),
        listeners=(events.append,),
        before_tool_call=(lambda _context: None,),
        after_tool_call=(lambda _context: None,),
    )
    refused(message, "timeout")
    updates = [event for event in events if isinstance(event, ToolExecutionUpdate)]
    assert updates
    assert "before" in str(updates[0])


EDIT = {"oldText": "a", "newText": "b"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "f", "edits": '[{"oldText":"a","newText":"b"}]'},
        {"path": "f", "edits": EDIT},
        {"path": "f", **EDIT},
        {"path": "f", "edits": '{"oldText":"a","newText":"b"}'},
        {"path": "f", "edits": ['{"oldText":"a","newText":"b"}']},
        {"path": "f", "old_text": "a", "new_text": "b"},
        '{"path":"f","edits":[{"old_text":"a","new_text":"b"}]}',
        {"path": "f", "edits": [{**EDIT, "replaceAll": None}]},
        {"path": "f", "edits": [{**EDIT, "comment": "ignored"}]},
        '{"path":"f","edits":"[{\\"oldText\\":\\"a\\",\\"newText\\":\\"b\\"}]"}',
    ],
    ids=["text", "one object", "top level", "text of one", "list of text", "snake case",
         "all as text", "null flag", "unknown key inside", "text in text"],
)  # fmt: skip
async def test_B69_nested_text_is_understood(place: Place, arguments: Any) -> None:
    await place.put("f", b"a\n")
    before = copy.deepcopy(arguments)
    seen: list[Any] = []
    [message] = await place.batch(
        ("edit", arguments), before_tool_call=(lambda context: seen.append(context.params),)
    )
    said(message)
    assert await place.get("f") == b"b\n"
    assert arguments == before
    assert seen[0].edits[0].old_text == "a"


@pytest.mark.parametrize(
    "edits",
    ["not json at all", "[1, 2]", '"text"', 7, [[]], [{"oldText": "a"}], "[" * 5000, None],
)
async def test_B69_nonsense_is_an_argument_error(place: Place, edits: Any) -> None:
    await place.put("f", b"a\n")
    told = refused(await place.run("edit", path="f", edits=edits), "invalid_arguments")
    assert "edits" in told
    assert await place.get("f") == b"a\n"


@pytest.mark.parametrize(
    ("offset", "limit"), [("3", "2"), (3.0, 2), (3, "2"), (" 3 ", 2.0), ("3.0", 2)]
)
async def test_B71_a_number_written_otherwise_is_that_number(
    place: Place, offset: Any, limit: Any
) -> None:
    await place.put("f", "".join(f"line {n}\n" for n in range(1, 10)))
    arguments = {"path": "f", "offset": offset, "limit": limit}
    before = dict(arguments)
    message = await place.call("read", arguments)
    if message.is_error:
        assert offset in (" 3 ", "3.0")
        refused(message, "invalid_arguments")
    else:
        assert text(message).startswith("line 3\nline 4\n")
        assert "line 5" not in text(message)
    assert arguments == before


@pytest.mark.parametrize("offset", ["abc", True, 3.5, [], {}, "", "0x3", "1e400", float("nan")])
async def test_B71_what_is_no_whole_number_is_refused_by_name(place: Place, offset: Any) -> None:
    await place.put("f", b"a\nb\n")
    told = refused(await place.run("read", path="f", offset=offset), "invalid_arguments")
    assert "offset" in told


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"path": "f", "offset": None, "limit": None}),
        ("ls", None),
        ("ls", "{}"),
        ("read", '{"path":"f"}'),
        ("ls", {}),
        ("ls", ""),
        ("ls", {"path": None, "limit": None}),
        ("find", {"pattern": "*", "path": None}),
        ("grep", {"pattern": "x", "ignoreCase": None, "context": None}),
        pytest.param(
            "bash",
            {"command": "echo hi", "timeout": None},
            marks=pytest.mark.needs("commands"),
        ),
    ],
)
async def test_B72_null_stands_for_what_is_left_out(
    place: Place, tool: str, arguments: Any
) -> None:
    await place.put("f", b"x\n")
    said(await place.call(tool, arguments))


@pytest.mark.parametrize(
    ("tool", "arguments", "name"),
    [
        ("read", {"path": None}, "path"),
        ("read", None, "path"),
        ("read", "null", "path"),
        ("write", {"path": "g", "content": None}, "content"),
        ("bash", {"command": None}, "command"),
        ("grep", {}, "pattern"),
        ("edit", '{"path": "f"}', "edits"),
    ],
)
async def test_B72_null_for_what_is_needed_is_refused_by_name(
    place: Place, tool: str, arguments: Any, name: str
) -> None:
    await place.put("f", b"x\n")
    assert name in refused(await place.call(tool, arguments), "invalid_arguments")
    assert await place.names() == ["f"]


@pytest.mark.parametrize("arguments", ["read the file", "[1]", "7", 7, [], ["path"], True, "{"])
async def test_B72_arguments_that_are_no_object_are_refused(place: Place, arguments: Any) -> None:
    refused(await place.call("read", arguments), "invalid_arguments")


@pytest.mark.parametrize("execution", ["sequential", "parallel"])
@pytest.mark.parametrize("name", ["Reed", "raed", "", "read\n", "functions.read", "\u0440ead"])
async def test_B73_an_unknown_tool_is_a_message(place: Place, name: str, execution: str) -> None:
    await place.put("f", b"one\n")
    await place.put("g", b"two\n")
    messages = await place.batch(
        ("read", {"path": "f"}),
        (name, {"path": "f"}),
        ("read", {"path": "g"}),
        tool_execution=execution,
    )
    assert [m.tool_name for m in messages] == ["read", name, "read"]
    assert said(messages[0]).strip() == "one"
    assert said(messages[2]).strip() == "two"
    told = refused(messages[1], "unknown_tool")
    assert all(tool in told for tool in ("read", "write", "bash"))


async def test_B73_two_calls_with_one_id_are_both_answered(place: Place) -> None:
    await place.put("f", b"one\n")
    calls = [ToolCall(id="same", name="read", arguments={"path": "f"})] * 2
    async with ToolRunner(place.tools()) as runner:
        messages = await runner.run(calls)
    assert [message.tool_call_id for message in messages] == ["same", "same"]
