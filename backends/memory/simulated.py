"""Commands in memory by a simulated shell: `ls | grep x > y` without a machine.

The shell is the package just-bash (extra `shell`): an interpreter of bash's language in Python with
eighty programs of its own. It is alpha and no bash; `docs/memory.md` lists what differs (awk,
for one), and a test compares the two line by line.

Each command gets a process of its own that has nothing but this module's answers. The interpreter
works on text of unknown origin, and in a thread Python could neither end it (in a loop, or deep in
a regular expression) nor bound its memory. It asks for each file operation, and those are done
here, on the event loop: each is one moment, and none comes after the command's end.
"""

from __future__ import annotations

import importlib.util
import math
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import anyio.to_thread

import backends
from backends.engine.frames import WireError
from backends.memory.access import to_bytes
from backends.memory.core import TARGET
from backends.memory.simulated_files import SimulatedFiles
from backends.memory.simulated_wire import Blocks, block
from backends.remote.channel import ChannelClosed
from backends.remote.pipe import PipeChannel
from operations import BackendUnavailable, ExecResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backends.memory.commands import CommandRun
    from backends.memory.nodes import User
    from backends.memory.tree import Tree

__all__ = ["SimulatedShell"]

#: The whole environment of a shell's process; what a command gets goes another way.
_ENVIRONMENT = {"TZ": "UTC"}


class SimulatedShell:
    """A command's handler that runs it; see `CommandOperations.on_command`.

    Args:
        tree: The files.
        user: Whom commands act as.

    Raises:
        ImportError: just-bash is not installed.
    """

    def __init__(self, tree: Tree, user: User) -> None:
        self._tree = tree
        self._user = user
        self._argv = _argv()

    async def __call__(self, run: CommandRun) -> ExecResult:
        """Run a command to its end; cancelled, it is killed.

        Raises:
            BackendUnavailable: The shell's process cannot be started.
        """
        with _unavailable():
            theirs, ours = os.pipe()
        with os.fdopen(ours, "wb", 0):  # until we close it or are no more; see `simulated_child`
            with os.fdopen(theirs, "rb", 0), _unavailable():
                # A fork and an exec take too long for the event loop.
                process = await anyio.to_thread.run_sync(_start, self._argv, theirs)
            channel = PipeChannel(process, "the shell's process")
            try:
                return await self._serve(channel, run)
            except (ChannelClosed, WireError) as error:
                run.write(f"bash: the simulated shell broke: {error}\n")
                return ExecResult(ended="lost")
            finally:
                process.kill()
                with anyio.CancelScope(shield=True):
                    await channel.close()

    async def _serve(self, channel: PipeChannel, run: CommandRun) -> ExecResult:
        files, blocks = SimulatedFiles(self._tree, self._user), Blocks()
        env = [[to_bytes(name), to_bytes(value)] for name, value in run.env.items()]
        await channel.send(block([to_bytes(run.command), to_bytes(run.cwd), env, run.stdin]))
        while chunk := await channel.receive():
            await anyio.lowlevel.checkpoint()  # what was cancelled changes nothing any more
            for value in blocks.feed(chunk):
                kind, arguments = _parted(value)
                if kind == "end":
                    return ExecResult(ended="exited", exit_code=_number(arguments) & 255)
                if kind == "output":
                    run.write(_output(arguments))
                    continue
                if kind == "sleep":
                    await run.clock.sleep(_seconds(arguments))
                    answer = ["done", None]
                else:
                    answer = files.answer(kind, arguments)
                await channel.send(block(answer))
        raise ChannelClosed(await channel.exit_report())


def _start(argv: list[str], lifeline: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own file by our own interpreter
        [*argv, str(lifeline)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        cwd="/",
        env=_ENVIRONMENT,
        start_new_session=True,  # a Ctrl-C at our terminal is for us
        pass_fds=[lifeline],
    )


@contextmanager
def _unavailable() -> Iterator[None]:
    """Raise what this machine lacks for a process as `BackendUnavailable`."""
    try:
        yield
    except OSError as error:
        reason = f"there is no process for a simulated shell: {error.strerror}"
        raise BackendUnavailable(TARGET, reason) from error


def _argv() -> list[str]:
    """Return the program; `-I -S`: nothing of the folder that we are in, or of the user, runs."""
    found = importlib.util.find_spec("just_bash")
    if found is None or found.origin is None:
        raise ImportError(
            "the simulated shell needs the package just-bash; "
            "pip install 'remotehands[shell]', or leave out shell='simulated'",
            name="just_bash",
        )
    here = os.path.dirname(os.path.abspath(__file__))
    ours = os.path.dirname(os.path.dirname(os.path.abspath(backends.__file__)))
    theirs = os.path.dirname(os.path.dirname(found.origin))
    script = os.path.join(here, "simulated_child.py")
    return [sys.executable, "-I", "-S", "-B", script, ours, theirs]


def _parted(value: Any) -> tuple[str, list[Any]]:
    match value:
        case [str(kind), *arguments]:
            return kind, arguments
    raise WireError("a block that is neither output nor a request")


def _number(arguments: list[Any]) -> int:
    match arguments:
        case [int(number)]:
            return number
    raise WireError("an end without an exit code")


def _output(arguments: list[Any]) -> bytes:
    match arguments:
        case [bytes(data)]:
            return data
    raise WireError("output that is none")


def _seconds(arguments: list[Any]) -> float:
    match arguments:
        case [float(seconds)] if 0 <= seconds < math.inf:
            return seconds
    raise WireError("a sleep without an end")
