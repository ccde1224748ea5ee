"""A wire that is slow, or takes everything and gives nothing: commands still end there in time."""

from __future__ import annotations

import itertools
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from backends.ssh import SshBackend
from tests.backends.ssh.waiting import eventually
from tests.sshd import runs
from toolkit.abort import AbortController
from toolkit.calls import ToolCall, ToolResultMessage
from toolkit.runner import ToolRunner
from toolkit.toolset import coding_tools

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.backends.ssh.proxy import Wire
    from tests.sshd import Sshd

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

#: How long a kill may take on the host once it is wanted here.
KILL_S = 5.0
QUIET = "sleep {m}"
LOUD = "sh -c 'while :; do echo this is a line of a loud command; done' {m}"
HARD = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep {m} & wait' & wait"
_numbers = itertools.count(1)


class Hand:
    """The bash tool behind a wire."""

    def __init__(self, runner: ToolRunner, backend: SshBackend) -> None:
        self.backend = backend
        self._runner = runner

    async def bash(
        self, command: str, controller: AbortController | None = None, **arguments: Any
    ) -> ToolResultMessage:
        """Run a command; it is told to stop by the controller."""
        call = ToolCall(id="1", name="bash", arguments={"command": command, **arguments})
        signal = None if controller is None else controller.signal
        [message] = await self._runner.run([call], signal=signal)
        return message

    async def until_stopped(self, command: str, wire: Wire, **faults: Any) -> ToolResultMessage:
        """Run a command, spoil the wire once it runs, stop it; return what is then told.

        Fails when a process of it lives longer than a kill may take.
        """
        marker, controller = a_marker(), AbortController()
        told: list[ToolResultMessage] = []

        async def run() -> None:
            told.append(await self.bash(command.replace("{m}", marker), controller))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await eventually(lambda: runs(marker))
            spoil(wire, **faults)
            controller.abort("told so")
            if not faults.get("swallows"):
                await eventually(lambda: not runs(marker), KILL_S)
        return told[0]


def spoil(wire: Wire, **faults: Any) -> None:
    for name, value in faults.items():
        setattr(wire, name, value)


def a_marker() -> str:
    """Return a number of seconds that no other process of the machine sleeps for."""
    return f"75{os.getpid()}.{next(_numbers)}5"


@pytest.fixture
async def hand(sshd: Sshd, wire: Wire, tmp_path: Path) -> AsyncIterator[Hand]:
    """Give the bash tool behind the wire, with a keepalive that finds silence later than a stop."""
    async with a_hand(sshd, wire, tmp_path) as made:
        yield made


@asynccontextmanager
async def a_hand(sshd: Sshd, wire: Wire, folder: Path) -> AsyncIterator[Hand]:
    known = sshd.know(wire.port, name="known_wire")
    config = sshd.config(port=wire.port, name="slow_wire")
    backend = SshBackend.connect("box", config=config, known_hosts=str(known), cwd=str(folder))
    async with backend, ToolRunner(coding_tools(backend)) as runner:
        yield Hand(runner, backend)


SLOW = {"delay_s": 0.3, "bytes_per_s": 50_000.0}


@pytest.mark.parametrize("command", [QUIET, LOUD, HARD], ids=["quiet", "loud", "hard"])
async def test_a_stop_over_a_slow_wire_ends_the_command(
    command: str, hand: Hand, wire: Wire
) -> None:
    """And the end is known: what a loud command has said stands in nobody's way."""
    message = await hand.until_stopped(command, wire, **SLOW)
    assert message.error_kind == "aborted"
    assert "all that it had started was ended" in message.text
    spoil(wire, delay_s=0.0, bytes_per_s=None)
    assert "again" in (await hand.bash("echo again")).text


@pytest.mark.parametrize("command", [QUIET, LOUD], ids=["quiet", "loud"])
async def test_a_timeout_over_a_slow_wire_ends_the_command(
    command: str, hand: Hand, wire: Wire
) -> None:
    marker = a_marker()
    spoil(wire, **SLOW)
    message = await hand.bash(command.replace("{m}", marker), timeout=2)
    assert message.error_kind == "timeout"
    assert "all that it had started was ended" in message.text
    assert not runs(marker)


async def test_what_cannot_be_known_is_said_to_be_unconfirmed(hand: Hand, wire: Wire) -> None:
    """The wire takes the order to stop, and nothing comes back."""
    message = await hand.until_stopped(QUIET, wire, swallows=True)
    assert message.error_kind == "aborted"
    assert "could not be confirmed" in message.text
    wire.swallows = False
    wire.cut()
    await eventually(lambda: not runs(f"sleep 75{os.getpid()}."))
    assert "again" in (await hand.bash("echo again")).text
