"""What hooks are shown and may say."""

from __future__ import annotations

import dataclasses
import functools

import pytest
from pydantic import BaseModel

from toolkit import (
    AbortController,
    AfterToolCall,
    AgentTool,
    AgentToolResult,
    BeforeToolCall,
    TextContent,
    ToolCall,
    ToolResultOverride,
)
from toolkit.hooks import UNCHANGED, hook_name


class Arguments(BaseModel):
    path: str
    limit: int = 3


async def execute(tool_call_id, params, signal, on_update):
    return AgentToolResult.text("")


TOOL = AgentTool(name="act", label="Act", description="", parameters=Arguments, execute=execute)
CALL = ToolCall(id="1", name="act", arguments={"path": "a"})


def contexts():
    signal = AbortController().signal
    yield BeforeToolCall(CALL, TOOL, Arguments(path="a"), signal)
    yield AfterToolCall(CALL, TOOL, Arguments(path="a"), signal, AgentToolResult.text("x"))


def test_contexts_are_values():
    """A hook cannot change what the next one sees."""
    for context in contexts():
        with pytest.raises(dataclasses.FrozenInstanceError):
            context.call = None


def test_arguments_are_a_new_object_each_time():
    """With defaults filled in."""
    for context in contexts():
        context.arguments["path"] = "b"
        assert context.arguments == {"path": "a", "limit": 3}


def test_an_empty_override_changes_nothing():
    """What is left out stays."""
    result = AgentToolResult(
        [TextContent(text="x")],
        {"a": 1},
        is_error=True,
        error_kind="denied",
        structured_content=1,
        terminate=True,
    )
    assert ToolResultOverride().apply(result) == result


@pytest.mark.parametrize(
    ("field", "cleared"), [("content", []), ("details", None), ("structured_content", None)]
)
def test_none_clears_a_field_and_only_that(field, cleared):
    """None is a value, not an omission."""
    result = AgentToolResult.text("x", details={"a": 1}, structured_content=1)
    changed = ToolResultOverride(**{field: None}).apply(result)
    assert getattr(changed, field) == cleared
    assert dataclasses.replace(changed, **{field: getattr(result, field)}) == result


def test_every_field_of_a_result_can_be_overridden():
    """A new field of a result is not forgotten here."""
    names = {field.name for field in dataclasses.fields(AgentToolResult)}
    assert {field.name for field in dataclasses.fields(ToolResultOverride)} == names
    defaults = [field.default for field in dataclasses.fields(ToolResultOverride)]
    assert all(default is UNCHANGED for default in defaults)


def test_hooks_have_names_for_messages():
    """Functions by their own, others by their type."""

    class Policy:
        def __call__(self, context):
            return None

    assert hook_name(contexts) == "contexts"
    assert hook_name(Policy()) == "Policy"
    assert hook_name(functools.partial(contexts)) == "partial"
