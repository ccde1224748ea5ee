"""Tools for a coding agent, run through a controlled pipeline on any machine.

Names are loaded when they are first used, so that `import toolkit` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import operations

#: Lets `backends` and tests tell this package from another project's `toolkit` folder.
REMOTEHANDS_PACKAGE = "toolkit"

if getattr(operations, "REMOTEHANDS_PACKAGE", None) != "operations":
    _found = getattr(operations, "__file__", None) or list(operations.__path__)
    raise ImportError(
        f"the package 'operations' that Python finds is {_found}, not the one that belongs to "
        f"{__file__}; take the other one off sys.path, or put it behind"
    )

if TYPE_CHECKING:
    from toolkit.abort import AbortController, AbortSignal
    from toolkit.batch import BatchResult
    from toolkit.calls import (
        ErrorKind,
        ImageContent,
        TextContent,
        ToolCall,
        ToolResultMessage,
    )
    from toolkit.events import (
        Event,
        Listener,
        MessageEnd,
        MessageStart,
        ToolExecutionEnd,
        ToolExecutionStart,
        ToolExecutionUpdate,
        event_to_dict,
    )
    from toolkit.failures import ToolFailure
    from toolkit.fleet import Fleet, HostMessage, HostStatus
    from toolkit.function_tool import tool_from_function
    from toolkit.hooks import (
        AfterToolCall,
        BeforeToolCall,
        Block,
        ReplaceArguments,
        ToolResultOverride,
    )
    from toolkit.prompt import tools_prompt
    from toolkit.runner import ToolRunner, run_tool_calls
    from toolkit.schemas import SchemaFormat, tool_schemas
    from toolkit.tool import (
        AgentTool,
        AgentToolResult,
        OnUpdate,
        Tool,
        ToolDefinition,
        wrap_tool_definition,
    )
    from toolkit.tools import (
        create_bash_tool,
        create_bash_tool_definition,
        create_edit_tool,
        create_edit_tool_definition,
        create_find_tool,
        create_find_tool_definition,
        create_grep_tool,
        create_grep_tool_definition,
        create_ls_tool,
        create_ls_tool_definition,
        create_read_tool,
        create_read_tool_definition,
        create_write_tool,
        create_write_tool_definition,
    )
    from toolkit.toolset import coding_tools, read_only_tools

_HOMES = {
    "abort": ("AbortController", "AbortSignal"),
    "batch": ("BatchResult",),
    "calls": ("ErrorKind", "ImageContent", "TextContent", "ToolCall", "ToolResultMessage"),
    "events": (
        "Event",
        "Listener",
        "MessageEnd",
        "MessageStart",
        "ToolExecutionEnd",
        "ToolExecutionStart",
        "ToolExecutionUpdate",
        "event_to_dict",
    ),
    "failures": ("ToolFailure",),
    "fleet": ("Fleet", "HostMessage", "HostStatus"),
    "function_tool": ("tool_from_function",),
    "hooks": ("AfterToolCall", "BeforeToolCall", "Block", "ReplaceArguments", "ToolResultOverride"),
    "prompt": ("tools_prompt",),
    "runner": ("ToolRunner", "run_tool_calls"),
    "schemas": ("SchemaFormat", "tool_schemas"),
    "tool": (
        "AgentTool",
        "AgentToolResult",
        "OnUpdate",
        "Tool",
        "ToolDefinition",
        "wrap_tool_definition",
    ),
    "tools": tuple(
        f"create_{name}_{layer}"
        for name in ("bash", "edit", "find", "grep", "ls", "read", "write")
        for layer in ("tool", "tool_definition")
    ),
    "toolset": ("coding_tools", "read_only_tools"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AbortController",
    "AbortSignal",
    "AfterToolCall",
    "AgentTool",
    "AgentToolResult",
    "BatchResult",
    "BeforeToolCall",
    "Block",
    "ErrorKind",
    "Event",
    "Fleet",
    "HostMessage",
    "HostStatus",
    "ImageContent",
    "Listener",
    "MessageEnd",
    "MessageStart",
    "OnUpdate",
    "ReplaceArguments",
    "SchemaFormat",
    "TextContent",
    "Tool",
    "ToolCall",
    "ToolDefinition",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolExecutionUpdate",
    "ToolFailure",
    "ToolResultMessage",
    "ToolResultOverride",
    "ToolRunner",
    "coding_tools",
    "create_bash_tool",
    "create_bash_tool_definition",
    "create_edit_tool",
    "create_edit_tool_definition",
    "create_find_tool",
    "create_find_tool_definition",
    "create_grep_tool",
    "create_grep_tool_definition",
    "create_ls_tool",
    "create_ls_tool_definition",
    "create_read_tool",
    "create_read_tool_definition",
    "create_write_tool",
    "create_write_tool_definition",
    "event_to_dict",
    "read_only_tools",
    "run_tool_calls",
    "tool_from_function",
    "tool_schemas",
    "tools_prompt",
    "wrap_tool_definition",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
