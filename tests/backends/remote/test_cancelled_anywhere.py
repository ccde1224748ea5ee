"""Cancellation at every await: nothing of ours is left, and the next operation works."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from backends.local import EngineBackend, LocalBackend
from backends.remote import client
from operations import ExecResult
from tests.backends.remote.hostile import CALLS, HONEST, FarEnds, backend

pytestmark = pytest.mark.anyio

#: More turns of the event loop than any operation takes over a channel in memory.
TURNS = 40


async def cancelled_after(turns: int, call: Any) -> bool:
    """Run something, cancel it after so many turns of the loop; tell whether it was cancelled."""
    ended = False
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            nonlocal ended
            await call()
            ended = True

        tasks.start_soon(run)
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    return not ended


@pytest.mark.parametrize("operation", HONEST)
async def test_an_operation_that_also_connects(operation: str) -> None:
    outcomes = set()
    for turns in range(TURNS):
        far = FarEnds()
        with anyio.fail_after(20):
            async with backend(far) as place:
                outcomes.add(await cancelled_after(turns, lambda p=place: CALLS[operation](p)))
                await CALLS[operation](place)
        assert all(channel.closed for channel in far.opened)
        assert len(far.opened) <= 2  # a connection that was made is kept
    assert outcomes == {True, False}


@pytest.mark.parametrize("operation", HONEST)
async def test_an_operation_on_a_connection(operation: str) -> None:
    far = FarEnds()
    async with backend(far) as place:
        await place.exists("/a")
        for turns in range(TURNS):
            with anyio.fail_after(20):
                await cancelled_after(turns, lambda: CALLS[operation](place))
                await CALLS[operation](place)
    assert len(far.opened) == 1


async def test_entering_and_leaving() -> None:
    outcomes = set()
    for turns in range(TURNS):
        far = FarEnds()
        place = backend(far, connect_on_enter=True)

        async def stay(place: Any = place) -> None:
            async with place:
                await place.exists("/a")

        with anyio.fail_after(20):
            outcomes.add(await cancelled_after(turns, stay))
            assert all(channel.closed for channel in far.opened)
            async with place:
                await place.exists("/a")
        assert all(channel.closed for channel in far.opened)
    assert outcomes == {True, False}


# With a real engine: what the system is asked for is given back.


def held() -> tuple[int, int]:
    """Return how many descriptors and threads this process has."""
    gc.collect()
    return len(os.listdir("/proc/self/fd")), threading.active_count()


def below() -> list[str]:
    """Return the processes that this one has started."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return children.split()


@pytest.mark.parametrize("kind", [EngineBackend, LocalBackend])
async def test_starting_an_engine(kind: type[EngineBackend | LocalBackend]) -> None:
    async with kind() as place:  # worker threads are made, and stay
        await place.exec("true", cwd="/", on_data=len)
    before = held()
    for step in range(25):
        place = kind()
        with anyio.move_on_after(step * 0.008):
            async with place:
                await place.exec("sleep 0.05", cwd="/", on_data=len)
    assert below() == []
    async with kind() as place:
        await place.exec("true", cwd="/", on_data=len)
    fds, threads = held()
    assert fds <= before[0]
    assert threads <= before[1] + 2  # idle worker threads


@pytest.mark.parametrize("kind", [EngineBackend, LocalBackend])
async def test_files_are_settled_and_commands_dead(
    kind: type[EngineBackend | LocalBackend], tmp_path: Path
) -> None:
    marker = f"0.{os.getpid()}7777"
    target = tmp_path / "f"
    old, new = b"o" * 3_000_000, b"n" * 3_000_000
    async with kind() as place:
        for step in range(12):
            target.write_bytes(old)
            with anyio.move_on_after(step * 0.002):
                await place.replace_file(str(target), new)
            assert target.read_bytes() in (old, new)
            assert os.listdir(tmp_path) == ["f"]
            with anyio.move_on_after(step * 0.004):
                await place.exec(f"sleep 600{marker} & sleep 600{marker}", cwd="/", on_data=len)
            assert not running(f"600{marker}")
            with anyio.move_on_after(step * 0.001):
                await place.read_file(str(target))
        result = await place.exec("true", cwd="/", on_data=len)
        assert result.exit_code == 0


def running(word: str) -> bool:
    """Tell whether a process has this word among its arguments."""
    for name in os.listdir("/proc"):
        try:
            words = Path("/proc", name, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words:
            return True
    return False


async def test_a_cancelled_command_leaves_as_soon_as_it_is_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "SETTLE_S", 30.0)
    results: list[ExecResult] = []
    async with EngineBackend() as place:
        with anyio.fail_after(10):
            with anyio.move_on_after(0.2):
                results.append(await place.exec("sleep 600", cwd="/", on_data=len))
    assert results == []
