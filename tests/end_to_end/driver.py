"""A program of a user: runs commands by the toolkit and does what its parent tells it to.

Usage: driver.py LOOP WAY TARGET. The first line of stdin is a JSON list of commands (they do not
stand in its own command line, which would be counted). It runs them as one batch and prints one
JSON line per event. The second line of stdin makes it do WAY: "stop", "cancel".
"""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
import anyio.to_thread

from backends.targets import open_target
from toolkit.abort import AbortController
from toolkit.calls import ToolCall
from toolkit.runner import ToolRunner
from toolkit.toolset import coding_tools


def tell(**event: Any) -> None:
    """Print one event."""
    print(json.dumps(event), flush=True)


def calls(commands: list[str], timeout: float | None) -> list[ToolCall]:
    """Return one call for each command."""
    limit = {} if timeout is None else {"timeout": timeout}
    return [
        ToolCall(id=f"call-{number}", name="bash", arguments={"command": command, **limit})
        for number, command in enumerate(commands)
    ]


async def run(way: str, target: str, commands: list[str]) -> None:
    """Run the commands, doing `way` when told."""
    controller = AbortController()
    async with open_target(target) as backend:
        tools = coding_tools(backend, cwd=backend.cwd)
        async with ToolRunner(tools, max_concurrency=64) as runner, anyio.create_task_group() as g:
            scope = anyio.CancelScope()

            async def listen() -> None:
                await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
                if way == "stop":
                    controller.abort("told so")
                elif way == "cancel":
                    scope.cancel()

            g.start_soon(listen)
            limit = 15.0 if way == "timeout" else 3000.0
            with scope:
                batch = calls(commands, limit)
                for message in await runner.run(batch, signal=controller.signal):
                    tell(kind=message.error_kind, text=message.text[-300:])
            tell(over=True, cancelled=scope.cancelled_caught)
            [after] = await runner.run(calls(["echo still working"], 30))
            attempts = 1
            if after.is_error:
                [after] = await runner.run(calls(["echo still working"], 30))
                attempts = 2
            tell(after=after.text, attempts=attempts)
            if way == "background":
                await anyio.sleep_forever()
            g.cancel_scope.cancel()
    tell(closed=True)


if __name__ == "__main__":
    told = json.loads(sys.stdin.readline())
    anyio.run(run, sys.argv[2], sys.argv[3], told, backend=sys.argv[1])
