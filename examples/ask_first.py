"""A hook that asks a person before anything is written or run.

`python -m examples.ask_first` shows each call and waits for y (yes), a (always, for this tool) or
anything else (no). Looking is not asked about.
"""

from __future__ import annotations

import json

import anyio
import anyio.to_thread

from backends.memory import MemoryBackend
from examples.scripted_model import asks
from toolkit import BeforeToolCall, Block, ToolRunner, coding_tools

LOOKING = frozenset({"read", "grep", "find", "ls"})


class AskFirst:
    """A before hook; one object for as long as "always" shall count."""

    def __init__(self) -> None:
        self._always: set[str] = set()
        self._one_at_a_time = anyio.Lock()  # a batch prepares in order, but batches may overlap

    async def __call__(self, context: BeforeToolCall) -> Block | None:
        """Let the call go on (None) or block it; a hook that raises blocks too."""
        tool = context.tool.name
        if tool in LOOKING:
            return None
        async with self._one_at_a_time:
            if tool in self._always:
                return None
            # As JSON, so that no control character of a model's reaches the terminal.
            question = f"{tool} {json.dumps(context.arguments)} [y/a/n] "
            answer = await anyio.to_thread.run_sync(input, question, abandon_on_cancel=True)
            if answer == "a":
                self._always.add(tool)
        return None if answer in ("y", "a") else Block("the user said no; ask what is wanted")


async def main() -> None:
    """Ask about a few calls in memory."""
    async with MemoryBackend({"notes.txt": "old\n"}) as place:
        calls = [
            asks("read", path="notes.txt"),
            asks("write", path="notes.txt", content="new\n"),
            asks("bash", command="rm notes.txt"),
        ]
        async with ToolRunner(coding_tools(place), before_tool_call=[AskFirst()]) as runner:
            for message in await runner.run(calls):
                print(f"{message.tool_name}: {message.error_kind or 'done'}")


if __name__ == "__main__":
    anyio.run(main)
