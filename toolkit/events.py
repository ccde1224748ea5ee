"""What is told while calls run, and how listeners get it without holding anything up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from toolkit.json_values import NotJson, copy_json, preview

if TYPE_CHECKING:
    from toolkit.calls import ToolResultMessage
    from toolkit.tool import AgentToolResult

__all__ = [
    "Event",
    "Listener",
    "MessageEnd",
    "MessageStart",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolExecutionUpdate",
    "event_to_dict",
]


@dataclass(frozen=True, slots=True)
class ToolExecutionStart:
    """Work on a call begins; `args` are as the model sent them."""

    type: ClassVar[str] = "tool_execution_start"
    tool_call_id: str
    tool_name: str
    args: Any


@dataclass(frozen=True, slots=True)
class ToolExecutionUpdate:
    """A running call shows what it has so far; it replaces what the update before showed."""

    type: ClassVar[str] = "tool_execution_update"
    tool_call_id: str
    tool_name: str
    args: Any
    partial_result: AgentToolResult


@dataclass(frozen=True, slots=True)
class ToolExecutionEnd:
    """Work on a call is over; told the moment that it is, whatever the order of the calls."""

    type: ClassVar[str] = "tool_execution_end"
    tool_call_id: str
    tool_name: str
    result: AgentToolResult
    is_error: bool


@dataclass(frozen=True, slots=True)
class MessageStart:
    """A result message is about to be handed over, in the order of the calls."""

    type: ClassVar[str] = "message_start"
    message: ToolResultMessage


@dataclass(frozen=True, slots=True)
class MessageEnd:
    """A result message has been handed over."""

    type: ClassVar[str] = "message_end"
    message: ToolResultMessage


Event = ToolExecutionStart | ToolExecutionUpdate | ToolExecutionEnd | MessageStart | MessageEnd

#: Called with each event. A plain function is called on the event loop and must be quick; what an
#: async one returns is awaited in a task of its own, so it may take its time.
Listener = Callable[[Event], Awaitable[None] | None]


def event_to_dict(event: Event) -> dict[str, Any]:
    """Return an event as a JSON object with the wire's names.

    Arguments that are not JSON (a model may send anything) are shown as a short text.
    """
    if isinstance(event, MessageStart | MessageEnd):
        return {"type": event.type, "message": event.message.to_dict()}
    told: dict[str, Any] = {
        "type": event.type,
        "toolCallId": event.tool_call_id,
        "toolName": event.tool_name,
    }
    if isinstance(event, ToolExecutionEnd):
        return {**told, "result": _result_to_dict(event.result), "isError": event.is_error}
    told["args"] = _shown_args(event.args)
    if isinstance(event, ToolExecutionUpdate):
        told["partialResult"] = _result_to_dict(event.partial_result)
    return told


def _result_to_dict(result: AgentToolResult) -> dict[str, Any]:
    return {
        "content": [block.to_dict() for block in result.content],
        "details": result.details,
        "isError": result.is_error,
        "errorKind": result.error_kind,
        "structuredContent": result.structured_content,
        "terminate": result.terminate,
    }


def _shown_args(args: Any) -> Any:
    try:
        return copy_json(args, escape=True)
    except (NotJson, RecursionError):
        return preview(args)
