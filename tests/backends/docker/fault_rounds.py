"""All five kinds of call over and over, until something happens to the place they act on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from toolkit.calls import ToolCall, ToolResultMessage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from toolkit.runner import ToolRunner

#: What a broken place may be called: the call was under way, or could not be made.
BROKEN = {"connection_lost", "unavailable"}
_ROUNDS_BEFORE = 3
#: The content of `write`, so large that a half of it would be seen.
_SIZE = 50_000


@dataclass
class Rounds:
    """Calls of one tool, one after the other.

    Attributes:
        done: How many have succeeded.
        last: The answer of the one that did not.
    """

    done: int = 0
    last: ToolResultMessage | None = None


@dataclass
class Hands:
    """The five tools on one backend, and what they have left in its workspace.

    Args:
        runner: Runs the tools.
        backend: What they act on.
        seconds: What the command that goes on sleeps for, by which it is known.
    """

    runner: ToolRunner
    backend: Any
    seconds: str = "987"
    rounds: dict[str, Rounds] = field(default_factory=dict)
    _ids: int = 0

    async def call(self, tool: str, **arguments: Any) -> ToolResultMessage:
        """Run one call."""
        self._ids += 1
        call = ToolCall(id=f"{self._ids}", name=tool, arguments=arguments)
        [message] = await self.runner.run([call])
        return message

    async def prepare(self) -> None:
        """Write the files that the tools work on."""
        contents = {
            "read": "same\n",
            "edit": "n=0;\n",
            "log": "",
            "grep/a": "needle\n",
            "again": "x",
        }
        for name, content in contents.items():
            message = await self.call("write", path=name, content=content)
            assert not message.is_error, message.text

    async def one(self, tool: str, number: int) -> ToolResultMessage:
        """Run the tool's call number `number`, and check what a success says."""
        if tool == "read":
            message = await self.call("read", path="read")
            assert message.is_error or message.text.startswith("same"), message.text
        elif tool == "write":
            message = await self.call("write", path="write", content=written(number))
        elif tool == "edit":
            change = {"oldText": f"n={number};", "newText": f"n={number + 1};"}
            message = await self.call("edit", path="edit", edits=[change])
        elif tool == "bash":
            message = await self.call("bash", command=f"echo {number} >> log", timeout=60)
        else:
            message = await self.call("grep", pattern="needle", path="grep")
            assert message.is_error or "a:1" in message.text, message.text
        return message

    async def until_struck(self, strike: Callable[[], Awaitable[Any]], limit_s: float) -> None:
        """Run calls of all tools, and a command that goes on; strike; wait for all to end.

        A tool ends with its first failure, or the first success after a strike that leaves the
        place usable.
        """
        self.rounds = {tool: Rounds() for tool in ("read", "write", "edit", "bash", "grep")}
        self.rounds["sleep"] = Rounds(done=_ROUNDS_BEFORE)
        busy, struck = anyio.Event(), anyio.Event()

        async def repeat(tool: str, rounds: Rounds) -> None:
            while rounds.last is None:
                late = struck.is_set()
                message = await self.one(tool, rounds.done)
                rounds.done += not message.is_error
                if late or message.is_error:
                    rounds.last = message
                if all(one.done >= _ROUNDS_BEFORE for one in self.rounds.values()):
                    busy.set()

        async def sleep() -> None:
            command = f"trap '' TERM; setsid sleep {self.seconds} & sleep {self.seconds}; wait"
            self.rounds["sleep"].last = await self.call("bash", command=command, timeout=900)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for tool, rounds in list(self.rounds.items()):
                    if tool == "sleep":
                        tasks.start_soon(sleep)
                    else:
                        tasks.start_soon(repeat, tool, rounds)
                await busy.wait()
                await strike()
                struck.set()
                # From here on nothing may take longer than its limit.
                tasks.start_soon(self._watch, limit_s)

    async def _watch(self, limit_s: float) -> None:
        with anyio.move_on_after(limit_s):
            while waiting := [tool for tool, one in self.rounds.items() if one.last is None]:
                await anyio.sleep(0.02)
            return
        raise AssertionError(f"after {limit_s:g} s there is no answer to {waiting}")

    def ends(self) -> dict[str, ToolResultMessage]:
        """Return the answer that each tool ended with."""
        return {tool: rounds.last for tool, rounds in self.rounds.items() if rounds.last}

    async def all_at_once(self) -> dict[str, ToolResultMessage]:
        """Run one further call of each tool, all together, on files of their own."""
        self._ids += 1
        calls: dict[str, dict[str, Any]] = {
            "read": {"path": "read"},
            "write": {"path": "after", "content": "after"},
            "edit": {"path": "again", "edits": [{"oldText": "x", "newText": "xx"}]},
            "bash": {"command": "echo after"},
            "grep": {"pattern": "needle", "path": "grep"},
        }
        batch = [
            ToolCall(id=f"{self._ids}-{name}", name=name, arguments=arguments)
            for name, arguments in calls.items()
        ]
        return dict(zip(calls, await self.runner.run(batch), strict=True))

    async def check_files(self) -> None:
        """Assert that each file is what the last success made of it, or the call that failed."""
        rounds = self.rounds
        content = await self._content("write")
        assert content in {written(rounds["write"].done - 1), written(rounds["write"].done)}
        content = await self._content("edit")
        assert content in {f"n={rounds['edit'].done};\n", f"n={rounds['edit'].done + 1};\n"}
        log = (await self._content("log")).split()
        made = rounds["bash"].done
        # Each command that succeeded has run once, the one that failed at most once.
        assert log in ([str(n) for n in range(made)], [str(n) for n in range(made + 1)])

    async def _content(self, name: str) -> str:
        return str((await self.backend.read_file(f"{self.backend.cwd}/{name}")).decode())


def written(number: int) -> str:
    """Return what call number `number` of write leaves."""
    return f"{number:06d}\n" * (_SIZE // 7)
