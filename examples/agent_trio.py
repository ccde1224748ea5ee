"""Agents on trio: one for each machine, all at once; when one fails, the nursery ends the others.

`python -m examples.agent_trio`
"""

from __future__ import annotations

import math

import trio

from backends.memory import MemoryBackend
from examples.scripted_model import Reply, ScriptedModel, asks
from toolkit import ToolRunner, coding_tools, tool_schemas
from toolkit.toolset import CodingPlace

SCRIPT = [
    Reply("I look for the old name.", [asks("grep", pattern="colour", literal=True)]),
    Reply(
        "One file has it.",
        [asks("edit", path="theme.toml", edits=[{"old_text": "colour", "new_text": "color"}])],
    ),
    Reply("Renamed."),
]


async def run_agent(name: str, model: ScriptedModel, place: CodingPlace) -> None:
    """Ask the model, run what it wants, show it the results, until it wants nothing more."""
    tools = coding_tools(place)
    schemas = tool_schemas(tools, "openai")
    async with ToolRunner(tools) as runner:
        reply = await model.reply([], schemas)
        while reply.calls:
            reply = await model.reply(await runner.run(reply.calls), schemas)
    print(f"{name}: {reply.text}")


async def main(limit_s: float = math.inf) -> None:
    """Run an agent on each of two machines in memory.

    Args:
        limit_s: Seconds after which all of them are cancelled, with everything that they started.
    """
    places = [MemoryBackend({"theme.toml": f"colour = {name}\n"}) for name in ("'red'", "'blue'")]
    async with places[0], places[1]:
        with trio.move_on_after(limit_s):
            async with trio.open_nursery() as nursery:
                for number, place in enumerate(places):
                    nursery.start_soon(run_agent, f"agent {number}", ScriptedModel(SCRIPT), place)
        for place in places:
            print(place.read_text("theme.toml"), end="")


if __name__ == "__main__":
    trio.run(main)
