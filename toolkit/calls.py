"""The messages that go in and come out: calls, content, results. They cross the wire as JSON."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from toolkit.json_values import valid_text

__all__ = [
    "ERROR_KINDS",
    "Content",
    "ErrorKind",
    "ImageContent",
    "TextContent",
    "ToolCall",
    "ToolResultMessage",
]

ErrorKind = Literal[
    "unknown_tool",
    "invalid_arguments",
    "blocked",
    "failed",
    "not_found",
    "denied",
    "changed",
    "too_large",
    "unsupported",
    "timeout",
    "aborted",
    "not_started",
    "sibling_failed",
    "unavailable",
    "connection_lost",
    "internal",
]
ERROR_KINDS: frozenset[str] = frozenset(get_args(ErrorKind))


def _escape(value: Any) -> Any:
    return valid_text(value) if isinstance(value, str) else value


# pydantic refuses a string with a lone surrogate; on the wire it is shown escaped instead.
_Text = Annotated[str, BeforeValidator(_escape)]

_WIRE = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore")


class _WireModel(BaseModel):
    """Attributes are snake_case, JSON names camelCase; both are accepted as input."""

    model_config = _WIRE

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object as a dict with the wire's names."""
        return self.model_dump(by_alias=True)

    def to_json(self) -> str:
        """Return one line of JSON with the wire's names."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)


class ToolCall(_WireModel):
    """What a model asks for.

    Attributes:
        id: The model's name for this call; its result carries it.
        name: The tool's name.
        arguments: As the model sent them: an object, JSON text, None, or nonsense.
    """

    type: Literal["toolCall"] = "toolCall"
    id: _Text
    name: _Text
    arguments: Any = None


class TextContent(_WireModel):
    """Text for the model."""

    type: Literal["text"] = "text"
    text: _Text


class ImageContent(_WireModel):
    """An image for the model.

    Attributes:
        data: The file's bytes in base64.
        mime_type: As "image/png".
    """

    type: Literal["image"] = "image"
    data: _Text
    mime_type: _Text


Content = Annotated[TextContent | ImageContent, Field(discriminator="type")]


class ToolResultMessage(_WireModel):
    """The one answer to one call, whatever happened.

    Attributes:
        tool_call_id: The id of the call.
        tool_name: The tool's name as the model wrote it.
        content: Blocks for the model, in order.
        details: Facts for programs and displays, a JSON object, or None.
        is_error: True when the call did not do what was asked.
        error_kind: What sort of error; None unless `is_error`.
        structured_content: The result for programs, any JSON value, or None.
        timestamp: When the message was made, in milliseconds since 1970.
        duration_ms: How long the call was worked on, by a monotonic clock; waiting for a free
            place among the running calls does not count.
    """

    role: Literal["toolResult"] = "toolResult"
    tool_call_id: str
    tool_name: str
    content: list[Content]
    details: dict[str, Any] | None = None
    is_error: bool = False
    error_kind: ErrorKind | None = None
    structured_content: Any = None
    timestamp: int
    duration_ms: float = 0.0

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))
