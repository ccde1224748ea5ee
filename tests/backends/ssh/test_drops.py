"""The wire is cut, falls silent, or the server goes: told once, nothing twice, nothing left."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import anyio
import pytest

from backends.ssh import SshBackend
from operations import BackendUnavailable, ConnectionLost
from tests.backends.ssh.proxy import Wire
from tests.backends.ssh.waiting import eventually
from tests.sshd import Sshd, runs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

pytestmark = pytest.mark.anyio

#: Silence is found after one sign that stays out: 2 s.
ALIVE = "Host *\n  ServerAliveInterval 1\n  ServerAliveCountMax 1\n"
LEASE_S = 3.0


@pytest.fixture
async def backend(sshd: Sshd, wire: Wire, tmp_path: Path) -> AsyncIterator[SshBackend]:
    """Give an open backend behind the wire."""
    known = sshd.know(wire.port, name="known_wire")
    config = sshd.config(ALIVE, port=wire.port, name="drops")
    async with SshBackend.connect(
        "box", config=config, known_hosts=str(known), cwd=str(tmp_path), lease_s=LEASE_S
    ) as opened:
        yield opened


async def exec_until(backend: SshBackend, command: str) -> None:
    with anyio.fail_after(60):
        await backend.exec(command, cwd="/", on_data=lambda _: None)


async def exists_for_ever(backend: SshBackend) -> None:
    while True:
        await backend.exists("/")


@pytest.mark.parametrize("how", ["cut", "silence"])
async def test_a_command_under_way_is_lost_once_and_ended(
    how: str, backend: SshBackend, wire: Wire, tmp_path: Path
) -> None:
    mark = f"7{os.getpid()}.{len(how)}5"
    log = tmp_path / "log"

    async def drop() -> None:
        await eventually(lambda: runs(f"sleep {mark}"))
        wire.swallows = how == "silence"
        if how == "cut":
            wire.cut()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(drop)
        with pytest.raises(ConnectionLost, match="may or may not have happened"):
            await exec_until(backend, f"echo once >> {log}; sleep {mark}")
    # Also while the silence lasts: the engine's lease has run out.
    await eventually(lambda: not runs(f"sleep {mark}"))
    wire.swallows = False
    assert await backend.read_file(str(log)) == b"once\n"


async def test_silence_is_told_as_that(backend: SshBackend, wire: Wire) -> None:
    wire.swallows = True
    with pytest.raises(ConnectionLost, match="no sign of itself"):
        await exec_until(backend, "true")


@pytest.mark.parametrize(
    ("how", "says"),
    [("cut", "closed the connection|reset by peer"), ("silence", "no sign of itself")],
)
async def test_files_alone_are_lost_for_the_same_reasons(
    how: str, says: str, server: Callable[..., Sshd]
) -> None:
    made = server("Subsystem sftp internal-sftp\nForceCommand internal-sftp\n")
    async with Wire(made.port) as wire:
        made.know(wire.port)
        config = made.config(ALIVE, port=wire.port)
        async with SshBackend.connect("box", config=config) as files:
            sent, wire.swallows = wire._sent, True

            async def drop() -> None:
                await eventually(lambda: wire._sent > sent)
                if how == "cut":
                    wire.cut()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(drop)
                with pytest.raises(ConnectionLost, match=says):
                    await files.exists("/")
            wire.swallows = False
            assert await files.exists("/")


async def test_a_write_under_way_leaves_the_old_or_the_new_file(
    backend: SshBackend, wire: Wire, tmp_path: Path
) -> None:
    old, new = b"old" * 1000, os.urandom(4 << 20)
    file = tmp_path / "file"
    file.write_bytes(old)
    for share in (0.1, 0.5, 0.9):
        wire.cut_after(int(len(new) * share))
        with pytest.raises(ConnectionLost):
            await backend.write_file(str(file), new)
        assert await backend.read_file(str(file)) == old
    await eventually(lambda: os.listdir(tmp_path) == ["file"])


async def test_a_read_under_way_is_lost(backend: SshBackend, wire: Wire, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(os.urandom(8 << 20))
    wire.bytes_per_s = 4 << 20
    async with anyio.create_task_group() as tasks:

        async def cut() -> None:
            await anyio.sleep(0.5)
            wire.cut()

        tasks.start_soon(cut)
        with pytest.raises(ConnectionLost):
            await backend.read_file(f"{tmp_path}/file")
    wire.bytes_per_s = None
    assert len(await backend.read_file(f"{tmp_path}/file")) == 8 << 20


async def test_a_server_that_is_restarted_is_found_again(server: Callable[..., Sshd]) -> None:
    """The call that comes too early waits for it a little; one that finds nothing says so."""
    made = server()
    async with SshBackend.connect("box", config=made.config()) as backend:
        made.stop()

        async def restart() -> None:
            await anyio.sleep(0.3)
            await anyio.to_thread.run_sync(made.start)

        with pytest.raises(ConnectionLost):
            await exists_for_ever(backend)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(restart)
            assert await backend.exists("/")
        made.stop()
        with anyio.fail_after(30), pytest.raises((ConnectionLost, BackendUnavailable)):
            await exists_for_ever(backend)
        with anyio.fail_after(30), pytest.raises(BackendUnavailable, match="nothing listens"):
            await backend.exists("/")


async def test_an_engine_that_is_killed_is_started_again_on_the_same_connection(
    server: Callable[..., Sshd],
) -> None:
    made = server("MaxSessions 1\n")
    async with Wire(made.port) as wire:
        known = made.know(wire.port, name="known_wire")
        config = made.config(port=wire.port)
        opened = SshBackend.connect("box", config=config, known_hosts=str(known))
        async with opened as backend:
            for _ in range(5):
                engine = max(made.engines())
                with pytest.raises(ConnectionLost, match="SIGKILL"):
                    await exec_until(backend, f"kill -9 {engine}; sleep 20")
                assert await backend.exists("/")
        assert wire.accepted == 1


async def test_closing_over_a_silent_wire_is_bounded(sshd: Sshd, wire: Wire) -> None:
    known = sshd.know(wire.port, name="known_wire")
    config = sshd.config(ALIVE, port=wire.port, name="drops")
    before = asyncio.all_tasks()
    with anyio.fail_after(30):
        async with SshBackend.connect("box", config=config, known_hosts=str(known)):
            wire.swallows = True
    assert len(asyncio.all_tasks() - before) <= 4  # the wire's own
