"""Lanes to a target that is gone, that says nothing, or whose shells do not learn of our end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from backends.remote.channel import Channel
from backends.remote.lanes import Lanes
from backends.remote.shell_backend import ShellBackend
from operations import ConnectionLost
from tests.backends.remote.shells import PRESENT, Played, Shells, hello
from tests.end_to_end.processes import marked

pytestmark = pytest.mark.anyio


@pytest.fixture(params=PRESENT)
def shells(request: pytest.FixtureRequest) -> Shells:
    return Shells(request.param)


class Cut:
    """A channel that can end here while the program at its far end goes on."""

    def __init__(self, channel: Channel) -> None:
        self.whole = channel
        self._scope = anyio.CancelScope()
        self._is_cut = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)

    def cut(self) -> None:
        self._is_cut = True
        self._scope.cancel()

    async def receive(self) -> bytes:
        with anyio.CancelScope() as self._scope:
            if not self._is_cut:
                return await self.whole.receive()
        return b""

    async def exit_report(self) -> str:
        return "the wire was cut"

    async def close(self) -> None:
        """Leave the program alone."""


async def test_what_a_cut_lane_has_left_is_ended_when_another_is_opened(shells: Shells) -> None:
    """Not every transport tells a shell that its stdin is over."""
    opened: dict[str, Cut] = {}

    async def opener(argv: Sequence[str]) -> Channel:
        channel = opened[argv[-1]] = Cut(await shells(argv))
        return channel

    marker = f"sleep 97.{os.getpid()}"
    try:
        async with ShellBackend(opener, target="sh:", cwd="/") as backend:

            async def run() -> None:
                with pytest.raises(ConnectionLost, match="the wire was cut"):
                    await backend.exec(f"{marker} & wait", cwd="/", on_data=lambda _: None)

            with anyio.fail_after(20):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(run)
                    while not marked(marker):
                        await anyio.sleep(0.02)
                    names = list(opened)
                    for name in names:
                        opened[name].cut()
                assert await backend.exists("/")
                while any(marked(name) for name in [marker, *names]):
                    await anyio.sleep(0.02)
    finally:
        for channel in opened.values():
            await channel.whole.close()


async def test_a_target_that_says_nothing_is_lost_after_its_lease() -> None:
    async def opener(_argv: Sequence[str]) -> Channel:
        return Played(lambda sent: hello(sent) or b"")

    lanes = Lanes(opener, target="test:", connect_timeout_s=5, lease_s=0.3)
    await lanes.enter()
    try:
        with anyio.fail_after(10):
            with pytest.raises(ConnectionLost, match=r"nothing heard for 0\.3 seconds"):
                async with lanes.lane("files") as lane:
                    await lane.call(b"true", limit=100)
    finally:
        await lanes.close()


async def test_a_long_silent_request_is_not_lost_while_the_target_answers(shells: Shells) -> None:
    lanes = Lanes(shells, target="test:", connect_timeout_s=20, lease_s=1.5)
    await lanes.enter()
    try:
        async with lanes.lane("files") as lane:
            reply = await lane.call(b"sleep 2; echo done", limit=100)
        assert reply.data == b"done\n"
    finally:
        await lanes.close()


async def test_a_command_that_a_close_has_ended_is_lost_not_signalled(shells: Shells) -> None:
    marker = f"sleep 96.{os.getpid()}"
    told: list[str] = []

    async def run(backend: ShellBackend) -> None:
        with pytest.raises(ConnectionLost, match="the backend was closed"):
            await backend.exec(f"{marker} & wait", cwd="/", on_data=lambda _: None)
        told.append("lost")

    with anyio.fail_after(30):
        async with (
            anyio.create_task_group() as tasks,
            ShellBackend(shells, target="sh:", cwd="/") as backend,
        ):
            tasks.start_soon(run, backend)
            while not marked(marker):
                await anyio.sleep(0.02)
    assert told == ["lost"]
    assert not marked(marker)
