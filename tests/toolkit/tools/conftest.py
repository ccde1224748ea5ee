"""One call of one tool through the whole pipeline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from toolkit.calls import ToolCall, ToolResultMessage
from toolkit.runner import run_tool_calls
from toolkit.tool import AgentTool

Run = Callable[..., Awaitable[ToolResultMessage]]


@pytest.fixture
def run() -> Run:
    """Return `await run(tool, **arguments)`, which gives the call's message."""

    async def run(tool: AgentTool[Any], **arguments: Any) -> ToolResultMessage:
        call = ToolCall(id="1", name=tool.name, arguments=arguments)
        (message,) = await run_tool_calls([call], [tool])
        return message

    return run
