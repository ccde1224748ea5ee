"""The schemas that model APIs get: flat, in each vendor's words, as strict as they want it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from mcp.types import Tool as McpTool
from pydantic import BaseModel

from backends.memory import MemoryBackend
from toolkit import AgentTool, ToolCall, coding_tools, run_tool_calls, tool_schemas
from toolkit.schemas import SCHEMA_FORMATS

TOOLS = coding_tools(MemoryBackend())


def nodes(schema: Any) -> list[dict[str, Any]]:
    """Return a schema's objects, from the outside in."""
    if isinstance(schema, list):
        return [node for item in schema for node in nodes(item)]
    if not isinstance(schema, dict):
        return []
    return [schema, *(node for value in schema.values() for node in nodes(value))]


def strict_parameters(tool: AgentTool[BaseModel]) -> dict[str, Any]:
    (told,) = tool_schemas([tool], strict=True)
    parameters: dict[str, Any] = told["parameters"]
    return parameters


@pytest.mark.parametrize("schema_format", SCHEMA_FORMATS)
@pytest.mark.parametrize("strict", [False, True])
def test_nothing_is_referred_to(schema_format: Any, strict: bool) -> None:
    for node in nodes(tool_schemas(TOOLS, schema_format, strict=strict)):
        assert not node.keys() & {"$ref", "$defs", "title"}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_strict_is_strict_for_openai(tool: AgentTool[BaseModel]) -> None:
    from agents.strict_schema import ensure_strict_json_schema

    schema = strict_parameters(tool)
    assert ensure_strict_json_schema(copy.deepcopy(schema)) == schema


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_strict_is_strict_for_anthropic(tool: AgentTool[BaseModel]) -> None:
    from anthropic import transform_schema

    schema = strict_parameters(tool)
    assert transform_schema(copy.deepcopy(schema)) == schema


@pytest.mark.parametrize("strict", [False, True])
def test_gemini_gets_its_own_dialect(strict: bool) -> None:
    (told,) = tool_schemas(TOOLS, "gemini", strict=strict)
    assert [one["name"] for one in told["functionDeclarations"]] == [tool.name for tool in TOOLS]
    for declaration in told["functionDeclarations"]:
        for node in nodes(declaration["parameters"]):
            if "type" in node and isinstance(node["type"], str):
                assert node["type"] in ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT")
            assert not node.keys() & {"additionalProperties", "exclusiveMinimum", "default"}
            assert {"type": "null"} not in node.get("anyOf", ())


@pytest.mark.parametrize("strict", [False, True])
def test_mcp_takes_them(strict: bool) -> None:
    for told in tool_schemas(TOOLS, "mcp", strict=strict):
        taken = McpTool.model_validate(told)
        assert taken.model_dump(by_alias=True, exclude_none=True) == told


def test_what_may_be_left_out_may_be_null_in_strict_mode() -> None:
    grep = next(tool for tool in TOOLS if tool.name == "grep")
    (loose,) = tool_schemas([grep])
    strict = strict_parameters(grep)
    assert loose["parameters"]["required"] == ["pattern"]
    assert set(strict["required"]) == set(strict["properties"])
    for name, schema in strict["properties"].items():
        assert ({"type": "null"} in schema.get("anyOf", ())) == (name != "pattern")


def test_bounds_and_defaults_are_told_in_words_where_strict_modes_do_not_take_them() -> None:
    bash, grep = (next(one for one in TOOLS if one.name == name) for name in ("bash", "grep"))
    assert "above 0" in strict_parameters(bash)["properties"]["timeout"]["description"]
    assert "100 by default" in strict_parameters(grep)["properties"]["limit"]["description"]


@pytest.mark.anyio
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
async def test_null_means_absent(tool: AgentTool[BaseModel]) -> None:
    required = {
        "path": "a.txt",
        "content": "new",
        "command": "echo hi",
        "pattern": "hi",
        "edits": [{"old_text": "hi", "new_text": "ho", "replace_all": None}],
    }
    schema = tool.describe()["parameters"]
    needed = {name: required[name] for name in schema.get("required", ())}
    nulls = dict.fromkeys(schema["properties"]) | needed
    told = []
    for arguments in (needed, nulls):
        backend = MemoryBackend({"a.txt": "hi\n"})
        backend.on_command("echo hi", "hi\n")
        call = ToolCall(id="1", name=tool.name, arguments=arguments)
        (message,) = await run_tool_calls([call], coding_tools(backend))
        told.append((message.is_error, message.content))
    assert told[0] == told[1]
    assert told[0][0] is False
