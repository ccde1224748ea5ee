"""A folder with known content, and the tools on it."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.local import LocalBackend
from toolkit import AbortController, AgentTool, AgentToolResult, coding_tools

__all__ = ["Place", "call_of", "open_place"]


@dataclass(frozen=True, slots=True)
class Place:
    """The local backend on a temporary folder.

    Attributes:
        folder: The folder, which is also the tools' working folder.
        tools: The seven tools by name.
    """

    folder: Path
    tools: dict[str, AgentTool]

    async def call(self, name: str, **arguments: Any) -> AgentToolResult:
        """Run one tool without the pipeline, whose own cost is a row of its own."""
        return await _execute(self.tools[name], arguments)


def call_of(tools: Sequence[AgentTool]) -> Callable[..., Awaitable[AgentToolResult]]:
    """Return the same for tools on any backend; one that fails is no measurement."""
    by_name = {tool.name: tool for tool in tools}

    async def call(name: str, **arguments: Any) -> AgentToolResult:
        result = await _execute(by_name[name], arguments)
        assert not result.is_error, result
        return result

    return call


async def _execute(tool: AgentTool, arguments: dict[str, Any]) -> AgentToolResult:
    params = tool.parameters.model_validate(arguments)
    return await tool.execute("1", params, AbortController().signal, lambda _: None)


@asynccontextmanager
async def open_place(**options: Any) -> AsyncIterator[Place]:
    """Open a temporary folder, and start what the local backend needs."""
    with tempfile.TemporaryDirectory(prefix="remotehands-bench-") as at:
        async with LocalBackend(cwd=at, **options) as backend:
            yield Place(Path(at), {tool.name: tool for tool in coding_tools(backend)})
