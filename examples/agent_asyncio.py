"""An agent's loop on asyncio: ask the model, run what it wants, show it the results.

`python -m examples.agent_asyncio` has it repair a file in memory; give `run_agent` another backend
and the same lines repair one on another machine.
"""

from __future__ import annotations

import asyncio

from backends.memory import CommandOutput, CommandRun, MemoryBackend
from examples.scripted_model import Reply, ScriptedModel, asks
from toolkit import AbortController, ToolRunner, coding_tools, tool_schemas
from toolkit.toolset import CodingPlace

MAX_TURNS = 20
SCRIPT = [
    Reply("I look at the code and the tests.", [asks("read", path="add.py"), asks("ls")]),
    Reply(
        "The sign is wrong.",
        [asks("edit", path="add.py", edits=[{"old_text": "a - b", "new_text": "a + b"}])],
    ),
    Reply("Now the tests.", [asks("bash", command="python3 -m unittest")]),
    Reply("add.py is repaired, and the tests pass."),
]


async def run_agent(model: ScriptedModel, place: CodingPlace, *, limit_s: float = 600) -> str:
    """Return the model's last words, once it wants nothing run any more.

    Args:
        model: What decides.
        place: Where it acts; any backend that is open.
        limit_s: Seconds until what runs is aborted; the model then sees what there was.
    """
    tools = coding_tools(place)
    abort = AbortController()
    timer = asyncio.get_running_loop().call_later(limit_s, abort.abort, "the time is over")
    try:
        async with ToolRunner(tools) as runner:
            reply = await model.reply([], tool_schemas(tools, "anthropic"))
            for _ in range(MAX_TURNS):
                print(f"model: {reply.text}")
                if not reply.calls:
                    return reply.text
                results = await runner.run(reply.calls, abort.signal)
                for result in results:
                    print(f"  {result.tool_name}: {result.text.splitlines()[0]}")
                reply = await model.reply(results, tool_schemas(tools, "anthropic"))
    finally:
        timer.cancel()
    raise RuntimeError(f"the agent was not done after {MAX_TURNS} turns")


def run_tests(run: CommandRun) -> CommandOutput:
    """Play the tests of the project in memory."""
    passed = "a + b" in run.tree.read_text("add.py")
    return CommandOutput("OK\n" if passed else "FAILED\n", exit_code=0 if passed else 1)


async def main() -> None:
    """Repair a small project in memory."""
    async with MemoryBackend({"add.py": "def add(a, b):\n    return a - b\n"}) as place:
        place.on_command("python3 -m unittest", run_tests)
        await run_agent(ScriptedModel(SCRIPT), place)


if __name__ == "__main__":
    asyncio.run(main())
