"""The cost of the pipeline itself."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
from pydantic import BaseModel

from benchmarks.harness import Figure, compare
from toolkit import AgentTool, AgentToolResult, ToolCall, ToolRunner

BATCH = 100


class Nothing(BaseModel):
    """Arguments of the no-op tool."""

    path: str
    limit: int | None = None


async def rows(*, quick: bool) -> AsyncIterator[Figure]:
    rounds = 20 if quick else 60
    calls = [
        ToolCall(id=str(number), name="noop", arguments={"path": "a", "limit": 3})
        for number in range(BATCH)
    ]

    async def execute(*_: object) -> AgentToolResult:
        return AgentToolResult.text("done")

    async def hook(_: object) -> None:
        return None

    tool = AgentTool(
        name="noop", description="", parameters=Nothing, label="No-op", execute=execute
    )
    seen: list[object] = []
    async with ToolRunner(
        [tool],
        before_tool_call=[hook],
        after_tool_call=[hook],
        listeners=[seen.append],
        max_concurrency=BATCH,
    ) as runner:

        async def ours() -> None:
            seen.clear()
            await runner.run(calls)

        yield await compare(
            "no-op tool through the pipeline, batch of 100, hooks and listener",
            ours,
            _bare_tasks,
            against="task + scope + limiter",
            goal=2.5,
            rounds=rounds,
            per_call=BATCH,
        )
        yield await compare(
            "the same against a StructuredTool",
            ours,
            _langchain(),
            against="LangChain StructuredTool.ainvoke",
            goal=0.5,
            rounds=rounds,
            per_call=BATCH,
        )
        async with _mcp() as call_over_mcp:
            yield await compare(
                "the same against MCP in memory",
                ours,
                call_over_mcp,
                against="MCP call_tool in memory",
                goal=0.5,
                rounds=rounds,
                per_call=BATCH,
            )


async def _bare_tasks() -> None:
    limiter = anyio.CapacityLimiter(BATCH)

    async def task() -> None:
        with anyio.CancelScope():
            async with limiter:
                await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        for _ in range(BATCH):
            tasks.start_soon(task)


def _langchain():
    from langchain_core.tools import StructuredTool

    async def noop(path: str, limit: int | None = None) -> str:
        return "done"

    tool = StructuredTool.from_function(
        coroutine=noop, name="noop", description="noop", args_schema=Nothing
    )

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(BATCH):
                tasks.start_soon(tool.ainvoke, {"path": "a", "limit": 3})

    return run


def _mcp():
    from contextlib import asynccontextmanager

    from mcp.client.client import Client
    from mcp.server.mcpserver import MCPServer

    @asynccontextmanager
    async def connected():
        server = MCPServer("bench")

        @server.tool()
        async def noop(path: str, limit: int | None = None) -> str:
            return "done"

        async with Client(server) as client:

            async def run() -> None:
                for _ in range(BATCH):
                    await client.call_tool("noop", {"path": "a", "limit": 3})

            yield run

    return connected()
