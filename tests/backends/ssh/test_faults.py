"""What every tool says, and leaves, when the wire, the server or the engine goes under it."""

from __future__ import annotations

import itertools
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from backends.ssh import SshBackend
from tests.backends.docker.fault_rounds import BROKEN, Hands
from tests.backends.ssh.lone_shell import without_python
from tests.backends.ssh.proxy import Wire
from tests.backends.ssh.waiting import eventually
from tests.sshd import Sshd, runs
from toolkit.runner import ToolRunner
from toolkit.toolset import coding_tools

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]

#: Silence is found after one sign that stays out: 2 s; or after 5 s, by who only then connects.
ALIVE = "Host *\n  ServerAliveInterval 1\n  ServerAliveCountMax 1\n  ConnectTimeout 5\n"
LEASE_S = 3.0
#: A lease, further attempts to connect, and patience for a machine that does much else.
LIMIT_S = 25.0
_numbers = itertools.count(1)


class Host:
    """A server behind a wire, and the power to break either."""

    def __init__(self, server: Sshd, wire: Wire) -> None:
        self.server = server
        self.wire = wire

    async def cut(self) -> None:
        self.wire.cut()

    async def silence(self) -> None:
        self.wire.swallows = True

    async def sound(self) -> None:
        self.wire.swallows = False

    async def kill_server(self) -> None:
        await anyio.to_thread.run_sync(self.server.stop)

    async def start_server(self) -> None:
        await anyio.to_thread.run_sync(self.server.start)

    async def kill_engine(self) -> None:
        os.kill(max(self.server.engines()), 9)

    async def nothing(self) -> None:
        """Mend what needs no mending."""


#: How each fault is made and mended, and what the calls under way may be told then.
FAULTS = {
    "cut": (Host.cut, Host.nothing),
    "silence": (Host.silence, Host.sound),
    "server killed": (Host.kill_server, Host.start_server),
    "engine killed": (Host.kill_engine, Host.nothing),
}
MATRIX = [
    *(("python", name) for name in FAULTS),
    *(("sh alone", name) for name in FAULTS if name != "engine killed"),
]


@asynccontextmanager
async def hands_on(host: Host, folder: Path) -> AsyncIterator[Hands]:
    """Give all tools on the host, in a folder of this machine."""
    known = host.server.know(host.wire.port, name="known_wire")
    config = host.server.config(ALIVE, port=host.wire.port)
    backend = SshBackend.connect(
        "box", config=config, known_hosts=str(known), cwd=str(folder), lease_s=LEASE_S
    )
    async with backend, ToolRunner(coding_tools(backend)) as runner:
        yield Hands(runner, backend, f"76{os.getpid()}.{next(_numbers)}5")


@pytest.mark.parametrize(("far", "fault"), MATRIX)
async def test_a_fault_under_all_tools(
    far: str, fault: str, server: Callable[[str], Sshd], tmp_path: Path
) -> None:
    """Each call is told so in time; nothing is half done, done twice, or left; the next works."""
    strike, mend = FAULTS[fault]
    made = server("" if far == "python" else without_python(tmp_path / "bin"))
    work = tmp_path / "work"
    work.mkdir()
    async with Wire(made.port) as wire:
        host = Host(made, wire)
        async with hands_on(host, work) as hands:
            await hands.prepare()
            await hands.until_struck(lambda: strike(host), LIMIT_S)
            kinds = {tool: message.error_kind for tool, message in hands.ends().items()}
            # Where the way is open again at once, a call that came a moment later has a new one.
            anew = {None} if mend is Host.nothing else set()
            assert set(kinds.values()) <= BROKEN | anew, hands.ends()
            assert kinds["sleep"] == "connection_lost"
            await eventually(lambda: not runs(f"sleep {hands.seconds}"), LIMIT_S)
            await mend(host)
            for tool, message in (await hands.all_at_once()).items():
                assert not message.is_error, (tool, message.text)
            await hands.check_files()
        names = {path.name for path in work.iterdir()}
        if (far, fault) == ("sh alone", "server killed"):
            # Its shells are killed too, and one that was writing cannot take its file away.
            names = {name for name in names if not name.startswith(".remotehands-")}
        assert names == {"read", "edit", "log", "grep", "again", "write", "after"}
        await eventually(lambda: not made.engines())
