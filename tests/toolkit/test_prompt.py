"""The part of a system prompt that tells of the tools."""

from __future__ import annotations

from pydantic import BaseModel

from toolkit import AgentToolResult, ToolDefinition, tools_prompt


class Nothing(BaseModel):
    pass


async def execute(tool_call_id, params, signal, on_update, context):
    return AgentToolResult.text("")


def definition(name: str, **options) -> ToolDefinition:
    return ToolDefinition(
        name=name,
        label=name,
        description=f"Does {name}. And more.",
        parameters=Nothing,
        execute=execute,
        **options,
    )


def test_snippets_are_listed_and_each_guideline_stands_once():
    """In the order of the tools."""
    text = tools_prompt(
        [
            definition("read", prompt_snippet="Read\nfiles", prompt_guidelines=["Look first."]),
            definition("edit", prompt_guidelines=["Look first.", "Change little."]),
        ]
    )
    assert text == (
        "Available tools:\n- read: Read files\n- edit: Does edit\n\n"
        "Guidelines:\n- Look first.\n- Change little."
    )


def test_without_guidelines_there_is_no_heading_for_them():
    """And without tools there is no section."""
    assert tools_prompt([definition("ls")]) == "Available tools:\n- ls: Does ls"
    assert tools_prompt([]) == ""
