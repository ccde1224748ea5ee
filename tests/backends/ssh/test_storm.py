"""A mixed load over a wire that is cut again and again: nothing twice, lost, half done or left."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from backends.ssh import SshBackend
from operations import BackendUnavailable, ConnectionLost
from tests.backends.ssh.proxy import Wire
from tests.backends.ssh.waiting import eventually
from tests.sshd import Sshd, runs
from toolkit.calls import ToolCall
from toolkit.runner import ToolRunner
from toolkit.toolset import coding_tools

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]

#: How often the wire is cut; a hundred were seen to hold.
CUTS = int(os.environ.get("REMOTEHANDS_TEST_CUTS", "20"))
#: No call may take longer, whatever happens to the wire.
LIMIT_S = 60.0
#: What a call may be told when the wire is cut under it, or cannot be used yet.
BROKEN = {"connection_lost", "unavailable"}


class Worker:
    """Calls of all kinds, one after the other, on files of its own and one log of all.

    Args:
        number: Which one it is.
        runner: Runs the tools.
        folder: Where it works.
        marker: What its commands sleep for, by which they are known.
    """

    def __init__(self, number: int, runner: ToolRunner, folder: Path, marker: str) -> None:
        self.number = number
        self.answers: Counter[str | None] = Counter()
        #: Words that are in the log, and words that may be.
        self.logged: list[str] = []
        self.doubtful: list[str] = []
        #: What the edited file may have by now: one number, and after a loss the next too.
        self.counts = {0}
        self._runner = runner
        self._folder = folder
        self._marker = marker
        self._calls = 0

    async def work(self, *, until: anyio.Event) -> None:
        assert (await self._call("write", path=self._counter, content="n=0;\n" * 5000)) is not None
        while not until.is_set():
            await self._append()
            await self._edit()
            await self._read()

    @property
    def _counter(self) -> str:
        return f"{self._folder}/counter{self.number}"

    async def _append(self) -> None:
        word = f"{self.number}.{self._calls}"
        command = f"echo {word} >> {self._folder}/log; (setsid sleep {self._marker} &); sleep 0.01"
        answer = await self._call("bash", command=command)
        (self.doubtful if answer is None else self.logged).append(word)

    async def _edit(self) -> None:
        now = await self._read()
        if now is None:
            return
        edits = [{"oldText": f"n={now};\n" * 5000, "newText": f"n={now + 1};\n" * 5000}]
        answer = await self._call("edit", path=self._counter, edits=edits)
        self.counts = {now, now + 1} if answer is None else {now + 1}

    async def _read(self) -> int | None:
        """Return the number that the file has, all of which must be the same."""
        answer = await self._call("read", path=self._counter, limit=100)
        if answer is None:
            return None
        [line] = {line for line in answer.splitlines() if line.startswith("n=")}
        now = int(line[2:-1])
        assert now in self.counts
        self.counts = {now}
        return now

    async def _call(self, tool: str, **arguments: Any) -> str | None:
        """Return a call's text, or None when the wire was in its way."""
        self._calls += 1
        call = ToolCall(id=f"{self.number}-{self._calls}", name=tool, arguments=arguments)
        with anyio.fail_after(LIMIT_S):
            [message] = await self._runner.run([call])
        self.answers[message.error_kind] += 1
        assert not message.is_error or message.error_kind in BROKEN, message
        return None if message.is_error else message.text


async def test_cuts_at_any_moment(server: Callable[[], Sshd], tmp_path: Path) -> None:
    rng = random.Random(CUTS)
    made, marker = server(), f"7{os.getpid()}.75"
    over = anyio.Event()
    async with Wire(made.port) as wire:
        known = str(made.know(wire.port, name="known_wire"))
        config = made.config(port=wire.port)
        backend = SshBackend.connect("box", config=config, known_hosts=known, cwd=str(tmp_path))
        async with backend, ToolRunner(coding_tools(backend)) as runner:
            workers = [Worker(number, runner, tmp_path, marker) for number in range(4)]
            async with anyio.create_task_group() as tasks:
                for worker in workers:
                    tasks.start_soon(lambda worker=worker: worker.work(until=over))
                await eventually(lambda: all(worker.logged for worker in workers))
                for _ in range(CUTS):
                    await anyio.sleep(rng.uniform(0.02, 0.8))
                    wire.cut()
                over.set()
            # What the last cut has left is gone while the backend is still there.
            await eventually(lambda: len(made.engines()) <= 1)
            for worker in workers:
                text = await backend.read_file(f"{tmp_path}/counter{worker.number}")
                assert text in {b"n=%d;\n" % count * 5000 for count in worker.counts}
    lines = (tmp_path / "log").read_text().split()
    assert len(lines) == len(set(lines)), "a command ran twice"
    assert set(lines) >= {word for worker in workers for word in worker.logged}
    assert set(lines) <= {word for one in workers for word in [*one.logged, *one.doubtful]}
    answers = sum((worker.answers for worker in workers), Counter[str | None]())
    assert answers["connection_lost"] >= CUTS // 4, answers  # the cuts were felt
    await eventually(lambda: not made.engines() and not runs(f"sleep {marker}"))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"log", *(f"counter{worker.number}" for worker in workers)}


async def test_a_cut_before_anything_is_sent_costs_no_call(
    server: Callable[[], Sshd], tmp_path: Path
) -> None:
    """A connection that is known to be lost is not used: the next call has a new one."""
    made = server()
    async with Wire(made.port) as wire:
        known = str(made.know(wire.port, name="known_wire"))
        config = made.config(port=wire.port)
        async with SshBackend.connect("box", config=config, known_hosts=known) as backend:
            for number in range(3):
                wire.cut()
                await anyio.sleep(0.2)
                try:
                    await backend.write_file(f"{tmp_path}/{number}", b"x")
                except (ConnectionLost, BackendUnavailable) as error:
                    pytest.fail(f"cut {number}: {error}")
