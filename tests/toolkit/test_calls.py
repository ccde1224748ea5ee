"""Messages cross the wire as JSON with the wire's names."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from toolkit.calls import ImageContent, TextContent, ToolCall, ToolResultMessage


def test_a_call_is_read_from_the_wire_as_models_send_it():
    """The sources' own example is accepted, `type` included."""
    text = '{"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a.ts"}}'
    call = ToolCall.model_validate_json(text)
    assert (call.id, call.name, call.arguments) == ("c1", "read", {"path": "a.ts"})


@pytest.mark.parametrize("arguments", [None, "{}", "nonsense", [1], 7, {"a": float("nan")}])
def test_arguments_may_be_any_nonsense(arguments):
    """A call with strange arguments is still a call, which gets an answer."""
    assert ToolCall(id="1", name="read", arguments=arguments).arguments is arguments


def test_the_caller_s_own_arguments_are_kept_as_they_are():
    """No copy is made on the way in."""
    arguments = {"path": ["x"]}
    assert ToolCall(id="1", name="n", arguments=arguments).arguments is arguments


def test_messages_go_out_with_camel_case_names():
    """Attributes are snake_case, JSON names are the sources'."""
    message = ToolResultMessage(
        tool_call_id="c1",
        tool_name="read",
        content=[TextContent(text="é"), ImageContent(data="AA==", mime_type="image/png")],
        details={"some_key": 1},
        is_error=True,
        error_kind="not_found",
        timestamp=5,
        duration_ms=1.5,
    )
    assert json.loads(message.to_json()) == {
        "role": "toolResult",
        "toolCallId": "c1",
        "toolName": "read",
        "content": [
            {"type": "text", "text": "é"},
            {"type": "image", "data": "AA==", "mimeType": "image/png"},
        ],
        "details": {"some_key": 1},
        "isError": True,
        "errorKind": "not_found",
        "structuredContent": None,
        "timestamp": 5,
        "durationMs": 1.5,
    }


def test_a_message_survives_the_wire():
    """What goes out can be read back, by alias or by name."""
    message = ToolResultMessage(
        tool_call_id="c", tool_name="t", content=[TextContent(text="x")], timestamp=1
    )
    assert ToolResultMessage.model_validate_json(message.to_json()) == message
    assert ToolResultMessage.model_validate(message.model_dump()) == message


def test_lone_surrogates_never_get_out():
    """They are shown as escapes instead, in every text of every value."""
    assert TextContent(text="a\udc80b").text == "a\\udc80b"
    call = ToolCall(id="\ud800", name="\udfff")
    assert (call.id, call.name) == ("\\ud800", "\\udfff")


def test_messages_cannot_be_changed():
    """A message that was handed over is a value."""
    with pytest.raises(ValidationError):
        TextContent(text="a").text = "b"  # type: ignore[misc]


def test_text_joins_the_text_blocks_only():
    """Images have no part in it."""
    blocks = [TextContent(text="a"), ImageContent(data="", mime_type="m"), TextContent(text="b")]
    message = ToolResultMessage(tool_call_id="c", tool_name="t", content=blocks, timestamp=1)
    assert message.text == "a\nb"
