"""`toolkit tools`: what the tools are, for people, for model APIs, and as a part of a prompt."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from toolkit import SchemaFormat, tool_schemas, tools_prompt
from toolkit.cli.output import Output
from toolkit.cli.targets import open_target
from toolkit.tools import (
    create_bash_tool_definition,
    create_edit_tool_definition,
    create_find_tool_definition,
    create_grep_tool_definition,
    create_ls_tool_definition,
    create_read_tool_definition,
    create_write_tool_definition,
)

if TYPE_CHECKING:
    from toolkit import ToolDefinition

__all__ = ["print_prompt", "print_tools"]

ToolsFormat = Literal["text"] | SchemaFormat


def print_tools(tools_format: ToolsFormat, *, strict: bool) -> int:
    """Print all tools in a format of `tool_schemas`, or as text.

    Returns:
        0, or 1 if standard output fails.
    """
    definitions = _definitions()
    out = Output(utf8=tools_format != "text")
    if tools_format == "text":
        out.line("\n\n".join(_as_text(definition) for definition in definitions))
    else:
        told = tool_schemas(definitions, tools_format, strict=strict)
        out.line(json.dumps(told, ensure_ascii=False, indent=2))
    return out.exit_code(0)


def print_prompt() -> int:
    """Print the section of a system prompt that tells of the tools.

    Returns:
        0, or 1 if standard output fails.
    """
    out = Output(utf8=True)
    out.line(tools_prompt(_definitions()))
    return out.exit_code(0)


def _definitions() -> list[ToolDefinition[Any]]:
    """Return the seven definitions; they act nowhere, so it makes no difference where."""
    place: Any = open_target("memory:")
    return [
        create(place.cwd, operations=place)
        for create in (
            create_read_tool_definition,
            create_write_tool_definition,
            create_edit_tool_definition,
            create_bash_tool_definition,
            create_grep_tool_definition,
            create_find_tool_definition,
            create_ls_tool_definition,
        )
    ]


def _as_text(definition: ToolDefinition[Any]) -> str:
    """Return a tool as a person reads it: what it does, then its arguments."""
    (told,) = tool_schemas([definition])
    parameters = told["parameters"]
    lines = [definition.name, f"  {definition.description}"]
    width = max(map(len, parameters["properties"])) + 2
    for name, schema in parameters["properties"].items():
        shown = name if name in parameters.get("required", ()) else f"[{name}]"
        default = schema.get("default")
        told_default = "" if default in (None, False) else f" Default: {default}."
        kind = schema.get("type", "any")
        lines.append(
            f"  {shown.ljust(width)}  {kind}: {schema.get('description', '')}{told_default}"
        )
    return "\n".join(lines)
