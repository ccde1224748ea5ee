"""One connection and one session serve all; what happens where a host has no Python."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import anyio
import pytest

from backends.ssh import SshBackend
from tests.backends.ssh.lone_shell import without_python
from tests.backends.ssh.proxy import Wire
from tests.sshd import Sshd

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.anyio


async def test_any_number_of_operations_over_one_session(
    server: Callable[..., Sshd], tmp_path: Path
) -> None:
    made = server("MaxSessions 1\n")
    async with Wire(made.port) as wire:
        made.know(wire.port)
        config = made.config(port=wire.port)
        async with SshBackend.connect("box", config=config, cwd=str(tmp_path)) as backend:

            async def use(number: int) -> None:
                path = f"{tmp_path}/{number}"
                for _ in range(3):
                    await backend.write_file(path, b"%d" % number * 50_000)
                    output: list[bytes] = []
                    await backend.exec(f"cat {path}", cwd="/", on_data=output.append)
                    assert b"".join(output) == await backend.read_file(path)

            async with anyio.create_task_group() as tasks:
                for number in range(16):
                    tasks.start_soon(use, number)
            assert (await backend.describe())["ssh"]["sessions"] == 1
        assert wire.accepted == 1


async def test_a_large_file_passes_both_ways(sshd: Sshd, tmp_path: Path) -> None:
    content = os.urandom(1 << 20) * 12
    async with SshBackend.connect("box", config=sshd.config()) as backend:
        await backend.write_file(f"{tmp_path}/large", content)
        assert await backend.read_file(f"{tmp_path}/large") == content


async def test_nothing_is_left_after_closing(sshd: Sshd) -> None:
    before = asyncio.all_tasks()
    mark = f"8{os.getpid()}.25"
    async with SshBackend.connect("box", config=sshd.config()) as backend:
        await backend.exec(f"setsid sleep {mark} & sleep {mark} &", cwd="/", on_data=lambda _: None)
    listing = await anyio.run_process(["sh", "-c", f"pgrep -f 'slee[p] {mark}'"], check=False)
    assert listing.stdout == b""
    assert asyncio.all_tasks() == before


async def test_a_program_whose_start_is_cancelled_leaves_no_session(
    server: Callable[..., Sshd],
) -> None:
    """At any moment of it; the server would count a session that nobody closes."""
    made = server("MaxSessions 2\n")
    async with Wire(made.port) as wire:
        known = made.know(wire.port, name="known_wire")
        config = made.config(port=wire.port)
        async with SshBackend.connect("box", config=config, known_hosts=str(known)) as backend:
            wire.delay_s = 0.01
            for step in range(8):
                with anyio.move_on_after(0.01 * step):
                    channel = await backend.open_program(["sleep", "20"])
                    await channel.close()
                await anyio.sleep(0.1)
            channel = await backend.open_program(["echo", "x"])
            assert await channel.receive() == b"x\n"
            await channel.close()
            assert (await backend.describe())["ssh"]["sessions"] == 1


@pytest.mark.parametrize("limit", ["", "MaxSessions 1\n"])
async def test_a_host_without_python_is_used_through_its_shell(
    limit: str, server: Callable[..., Sshd], tmp_path: Path
) -> None:
    """With further connections where the server limits the sessions of one."""
    made = server(limit + without_python(tmp_path / "bin"))
    work = made.folder / "work"
    work.mkdir()
    async with SshBackend.connect("box", config=made.config(), cwd=str(work)) as backend:
        assert backend.facts is not None
        await backend.write_file(f"{work}/a", b"text\n")

        async def use() -> None:
            output: list[bytes] = []
            await backend.exec(f"sleep 0.2; cat {work}/a", cwd="/", on_data=output.append)
            assert b"".join(output) == b"text\n"

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(use)
        assert await backend.read_file(f"{work}/a") == b"text\n"
