"""Results on their way to a message: made, checked before anybody relies on them, completed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolkit.calls import (
    ERROR_KINDS,
    ErrorKind,
    ImageContent,
    TextContent,
    ToolCall,
    ToolResultMessage,
)
from toolkit.failures import ToolFailure, error_kind, error_text
from toolkit.json_values import NotJson, copy_json, preview, valid_text
from toolkit.tool import AgentToolResult

__all__ = [
    "BadResult",
    "Notes",
    "checked_result",
    "error_result",
    "failure_result",
    "noted",
    "result_message",
    "stopped_result",
]

#: A key of `details` and the sentence for the model that goes with it.
Notes = Mapping[str, str]


class BadResult(TypeError):
    """A tool or hook gave back what is no result; the text says what and what would be right."""


def checked_result(value: Any, giver: str) -> AgentToolResult:
    """Return a result as a copy that is sure to become a valid message.

    Args:
        value: What was given.
        giver: Who gave it, for the error.

    Raises:
        BadResult: It is no `AgentToolResult`, or a part of it has a wrong type.
    """
    if not isinstance(value, AgentToolResult):
        raise BadResult(f"{giver} returned {preview(value, max_chars=80)} instead of a result")
    return AgentToolResult(
        _content(value.content, giver),
        _details(value.details, giver),
        value.is_error is True or _flag(value.is_error, "is_error", giver),
        _kind(value, giver),
        _json(value.structured_content, "structured_content", giver),
        value.terminate is True or _flag(value.terminate, "terminate", giver),
    )


def error_result(
    text: str, kind: ErrorKind, *, details: dict[str, Any] | None = None, terminate: bool = False
) -> AgentToolResult:
    """Return an error whose content is one text."""
    return AgentToolResult(
        [TextContent(text=text)], details, is_error=True, error_kind=kind, terminate=terminate
    )


def failure_result(error: BaseException) -> AgentToolResult:
    """Return what an exception says as an error, with exactly its text."""
    if isinstance(error, BadResult):
        return error_result(str(error), "internal")
    if not isinstance(error, ToolFailure):
        return error_result(error_text(error), error_kind(error))
    result = AgentToolResult(
        error.content or [TextContent(text=error_text(error))],
        error.details,
        is_error=True,
        error_kind=error.kind,
        structured_content=error.structured_content,
    )
    try:
        return checked_result(result, type(error).__name__)
    except BadResult as bad:
        return error_result(f"{error_text(error)}\n({bad})", "internal")


def stopped_result(result: AgentToolResult, kind: ErrorKind, reason: str) -> AgentToolResult:
    """Return the result of a call that was asked to stop while it ran; its output is kept.

    An error that has its own story to tell (not found, timeout) is left as it is.

    Args:
        result: What the call came to.
        kind: "aborted" or "sibling_failed".
        reason: Why it was asked to stop.
    """
    if result.is_error and result.error_kind not in ("failed", "aborted", "internal"):
        return result
    content = list(result.content)
    if not result.is_error:  # an error has said itself why it ended
        content.append(TextContent(text=f"({reason}; the call was asked to stop)"))
    return replace(result, content=content, is_error=True, error_kind=kind)


def result_message(call: ToolCall, result: AgentToolResult, duration_s: float) -> ToolResultMessage:
    """Return the message to a call."""
    return ToolResultMessage(
        tool_call_id=call.id,
        tool_name=call.name,
        content=list(result.content),
        details=result.details,
        is_error=result.is_error,
        error_kind=result.error_kind,
        structured_content=result.structured_content,
        timestamp=time.time_ns() // 1_000_000,
        duration_ms=round(duration_s * 1000, 3),
    )


def noted(result: AgentToolResult, notes: Notes) -> AgentToolResult:
    """Return a result with notes of the pipeline added: text for the model, marks in details."""
    if not notes:
        return result
    texts = [TextContent(text=text) for text in notes.values()]
    details = {**(result.details or {}), **dict.fromkeys(notes, True)}
    return replace(result, content=[*result.content, *texts], details=details)


def _content(content: Any, giver: str) -> list[TextContent | ImageContent]:
    if not isinstance(content, Sequence) or isinstance(content, str | bytes):
        shown = preview(content, max_chars=80)
        raise BadResult(f"{giver} returned a result whose content is {shown} instead of a list")
    return [_block(block, giver) for block in content]


def _block(block: Any, giver: str) -> TextContent | ImageContent:
    # model_construct() goes past the models' own checks.
    if isinstance(block, TextContent) and _holds(block, "text", "text"):
        text = valid_text(block.text)
        return block if text is block.text else TextContent(text=text)
    if isinstance(block, ImageContent) and _holds(block, "image", "data", "mime_type"):
        if block.data.isascii() and block.mime_type.isascii():
            return block
        return ImageContent(data=block.data, mime_type=block.mime_type)
    shown = preview(block, max_chars=80)
    raise BadResult(f"{giver} returned content with {shown} instead of TextContent or ImageContent")


def _holds(block: TextContent | ImageContent, kind: str, *names: str) -> bool:
    return block.type == kind and all(type(getattr(block, name, None)) is str for name in names)


def _details(details: Any, giver: str) -> dict[str, Any] | None:
    if details is None:
        return None
    if not isinstance(details, dict):
        shown = preview(details, max_chars=80)
        raise BadResult(f"{giver} returned details that are {shown} instead of a dict or None")
    copied: dict[str, Any] = _json(details, "details", giver)
    return copied


def _json(value: Any, path: str, giver: str) -> Any:
    if value is None:
        return None
    try:
        return copy_json(value, path=path, escape=True)
    except NotJson as error:
        raise BadResult(f"{giver} returned a result that is not JSON: {error}") from None


def _flag(value: Any, name: str, giver: str) -> bool:
    if value is False:
        return False
    raise BadResult(f"{giver} returned {name}={preview(value, max_chars=80)} instead of a boolean")


def _kind(result: AgentToolResult, giver: str) -> ErrorKind | None:
    if not result.is_error:
        return None
    if result.error_kind is None:
        return "failed"
    if not isinstance(result.error_kind, str) or result.error_kind not in ERROR_KINDS:
        raise BadResult(f"{giver} returned the unknown error_kind {result.error_kind!r}")
    return result.error_kind
