"""The three layers of a tool, and tools from functions."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import threading
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

import toolkit
from toolkit import (
    AgentTool,
    AgentToolResult,
    TextContent,
    Tool,
    ToolCall,
    ToolDefinition,
    run_tool_calls,
    tool_from_function,
    wrap_tool_definition,
)

pytestmark = pytest.mark.anyio


class Arguments(BaseModel):
    """What to read."""

    path: str = Field(description="Where it is.")
    limit: int = 10


async def read(tool_call_id, params, signal, on_update, context):
    on_update(AgentToolResult.text("half"))
    return AgentToolResult.text(f"{tool_call_id} {params.path} {context}")


DEFINITION = ToolDefinition(
    name="read",
    label="Read",
    description="Read a file.",
    parameters=Arguments,
    execute=read,
    execution_mode="sequential",
    prepare_arguments=lambda arguments: {"path": "prepared", **arguments},
)


def test_a_tool_describes_itself():
    """The first layer needs nothing but a name, a text and a model."""
    tool = Tool(name="read", description="Read a file.", parameters=Arguments)
    told = tool.describe()
    assert (told["name"], told["description"]) == ("read", "Read a file.")
    assert told["parameters"]["properties"]["path"]["description"] == "Where it is."
    assert told["parameters"]["required"] == ["path"]


def test_each_layer_is_a_tool_and_a_value():
    """An agent tool can do all that a tool can."""
    wrapped = wrap_tool_definition(DEFINITION)
    assert isinstance(wrapped, AgentTool)
    assert isinstance(wrapped, Tool)
    assert isinstance(DEFINITION, Tool)
    assert not isinstance(DEFINITION, AgentTool)
    with pytest.raises(AttributeError):
        wrapped.name = "other"  # type: ignore[misc]


async def test_a_wrapped_definition_gets_a_context_that_the_pipeline_never_sees():
    """Made anew for each execution."""
    contexts = iter(["first", "second"])
    tool = wrap_tool_definition(DEFINITION, lambda: next(contexts))
    assert tool.execution_mode == "sequential"
    calls = [ToolCall(id="a", name="read"), ToolCall(id="b", name="read", arguments={"path": "p"})]
    messages = await run_tool_calls(calls, [tool])
    assert [message.text for message in messages] == ["a prepared first", "b p second"]


async def test_without_a_factory_the_context_is_none():
    """A definition can be used alone."""
    call = ToolCall(id="a", name="read", arguments={"path": "p"})
    [message] = await run_tool_calls([call], [wrap_tool_definition(DEFINITION)])
    assert message.text == "a p None"


async def test_a_context_factory_that_raises_is_an_error_of_the_call():
    """Like all that execution does."""

    def broken() -> Any:
        raise ValueError("no session")

    tool = wrap_tool_definition(DEFINITION, broken)
    [message] = await run_tool_calls([ToolCall(id="a", name="read", arguments={})], [tool])
    assert message.text == "no session"


async def test_a_definition_may_be_made_of_a_plain_function():
    """It runs in a thread, as a plain tool does."""

    def plain(tool_call_id, params, signal, on_update, context):
        return AgentToolResult.text(str(threading.current_thread() is threading.main_thread()))

    definition = dataclasses.replace(DEFINITION, execute=plain)
    call = ToolCall(id="a", name="read", arguments={})
    [message] = await run_tool_calls([call], [wrap_tool_definition(definition)])
    assert message.text == "False"


def test_describing_a_tool_loads_no_terminal_library():
    """Each layer depends on no more than it needs."""
    root = str(Path(toolkit.__file__).parents[1])
    code = (
        f"import sys; sys.path.append({root!r}); import toolkit; toolkit.ToolDefinition;"
        "print([name for name in ('rich', 'typer', 'curses') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Tools from functions


async def call(function: Any, arguments: Any):
    tool = tool_from_function(function)
    request = ToolCall(id="c", name=tool.name, arguments=arguments)
    [message] = await run_tool_calls([request], [tool])
    return message


async def add(first: int, second: int = 2) -> str:
    """Add two numbers. Slowly.

    It takes its time.

    Args:
        first: The one
            number.
        second (int): The other.

    Returns:
        The sum.
    """
    return str(first + second)


def test_the_schema_comes_from_signature_and_docstring():
    """Names, types, defaults, descriptions."""
    tool = tool_from_function(add)
    told = tool.describe()
    assert told["name"] == "add"
    assert told["description"] == "Add two numbers. Slowly.\n\nIt takes its time."
    first, second = (told["parameters"]["properties"][name] for name in ("first", "second"))
    assert (first["type"], first["description"]) == ("integer", "The one number.")
    assert (second["default"], second["description"]) == (2, "The other.")
    assert told["parameters"]["required"] == ["first"]
    assert tool.label == "Add"


async def test_a_function_is_a_tool_in_one_line():
    """Through the whole pipeline, quirks included."""
    assert (await call(add, {"first": "1"})).text == "3"
    assert (await call(add, {"first": 1, "third": 1})).error_kind == "invalid_arguments"
    renamed = tool_from_function(add, name="plus", description="d", label="L")
    assert (renamed.name, renamed.description, renamed.label) == ("plus", "d", "L")


async def test_a_plain_function_runs_in_a_thread():
    """It must not block the event loop."""

    def where() -> str:
        return str(threading.current_thread() is threading.main_thread())

    assert (await call(where, {})).text == "False"


async def test_what_the_pipeline_knows_is_filled_in_when_asked_for():
    """And hidden from the model."""

    async def act(path: str, signal, on_update, tool_call_id) -> str:
        on_update(AgentToolResult.text("half"))
        return f"{path} {signal.is_set()} {tool_call_id}"

    assert list(tool_from_function(act).describe()["parameters"]["properties"]) == ["path"]
    assert (await call(act, {"path": "p"})).text == "p False c"
    assert (await call(act, {"path": "p", "signal": 1})).error_kind == "invalid_arguments"


class Report(BaseModel):
    lines: int


@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [
        ("text", "text", None),
        (None, "(no output)", None),
        (5, "5", 5),
        ([1, "é"], '[\n  1,\n  "é"\n]', [1, "é"]),
        (Report(lines=1), '{\n  "lines": 1\n}', {"lines": 1}),
        (AgentToolResult([TextContent(text="own")]), "own", None),
    ],
)
async def test_what_a_function_returns_is_shown_and_kept(value, text, structured):
    """Text as text, values as JSON."""

    async def give() -> Any:
        return value

    message = await call(give, None)
    assert (message.text, message.structured_content) == (text, structured)


async def test_a_value_that_is_not_json_is_an_error():
    """Of the call, and in words."""

    async def give() -> Any:
        return {1, 2}

    message = await call(give, None)
    assert message.is_error
    assert "set" in message.text


async def test_annotations_may_say_more():
    """Whatever pydantic understands."""

    async def act(
        count: Annotated[int, Field(ge=1, description="How many.")], json: str = ""
    ) -> str:
        return f"{count}{json}"

    schema = tool_from_function(act).describe()["parameters"]
    assert schema["properties"]["count"]["minimum"] == 1
    assert (await call(act, {"count": 0})).error_kind == "invalid_arguments"
    assert (await call(act, {"count": 1, "json": "x"})).text == "1x"


def test_parameters_without_a_name_are_refused():
    """A model could not fill them in."""
    for function in (lambda *args: None, lambda **named: None, lambda a, /: None):
        with pytest.raises(TypeError, match="cannot be an argument"):
            tool_from_function(function)


async def test_methods_are_functions_too():
    """`self` is not an argument."""

    class Place:
        async def look(self, path: str) -> str:
            return path

    assert (await call(Place().look, {"path": "p"})).text == "p"
