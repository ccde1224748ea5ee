"""A channel over the pipes of a child process."""

from __future__ import annotations

import os
import sys

import anyio
import pytest

from backends.remote.channel import ChannelClosed
from backends.remote.pipe import open_pipe

pytestmark = pytest.mark.anyio

MUCH = 2_000_000


async def test_a_program_that_says_much_on_stderr_is_not_held_up() -> None:
    """A pipe holds 64 KiB; a program whose stderr nobody reads would wait for ever."""
    script = f"import os; os.write(2, b'x' * {MUCH}); os.write(1, b'out'); os.write(2, b'\\nlast')"
    channel = await open_pipe([sys.executable, "-c", script])
    try:
        with anyio.fail_after(20):
            assert await channel.receive() == b"out"
            assert await channel.receive() == b""
            assert await channel.exit_report() == "the engine ended with exit status 0: last"
    finally:
        await channel.close()


async def test_a_closed_stderr_does_not_keep_the_loop_busy() -> None:
    script = "import os; os.close(2); os.read(0, 1); os.write(1, b'out')"
    channel = await open_pipe([sys.executable, "-c", script])
    try:
        with anyio.move_on_after(0.3):
            await channel.receive()
        spent = os.times().user
        with anyio.move_on_after(0.5):
            await channel.receive()
        assert os.times().user - spent < 0.4
        await channel.send(b"x")
        with anyio.fail_after(20):
            assert await channel.receive() == b"out"
    finally:
        await channel.close()


async def test_closing_ends_who_waits_for_output() -> None:
    channel = await open_pipe([sys.executable, "-c", "input()"])
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                with pytest.raises(ChannelClosed):
                    await channel.receive()

            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await channel.close()
