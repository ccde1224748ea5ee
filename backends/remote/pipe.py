"""A channel over the pipes of a child process on this machine."""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import subprocess
from collections.abc import Mapping, Sequence

import anyio
import anyio.lowlevel
import anyio.to_thread

from backends.remote.channel import ChannelClosed

__all__ = ["PipeChannel", "open_pipe"]

_READ = 1 << 18
_PIPE_SIZE = 1 << 20
_EXIT_WAIT_S = 2.0
#: The engine takes up to 5 s to kill what it started and 3 s to settle files.
_CLOSE_WAIT_S = 9.0
_STDERR_BYTES = 4096
_STDERR_READS = 16


async def open_pipe(
    argv: Sequence[str], *, env: Mapping[str, str] | None = None, program: str = "the engine"
) -> PipeChannel:
    """Start a program in a session of its own, in "/", and return the channel to it.

    Args:
        argv: The program and its arguments.
        env: Its whole environment; None for a copy of ours.
        program: What it is or becomes, for `exit_report`.

    Raises:
        OSError: It cannot be started.
    """
    # Starting takes a millisecond of fork and exec, too long for the event loop.
    process = await anyio.to_thread.run_sync(_start, list(argv), env)
    return PipeChannel(process, program)


def _start(argv: list[str], env: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  # that is what a backend's target means
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        cwd="/",
        env=env,
        # A Ctrl-C at our terminal is for us: what it means for a command is ours to decide.
        start_new_session=True,
    )


class PipeChannel:
    """See `Channel`.

    Args:
        process: A process with unbuffered pipes for stdin, stdout and stderr.
        program: What it is, for errors.
    """

    def __init__(self, process: subprocess.Popen[bytes], program: str = "the engine") -> None:
        self._process = process
        self._program = program
        self._pipes = [pipe for pipe in (process.stdin, process.stdout, process.stderr) if pipe]
        self._in_fd, self._out_fd, self._err_fd = (pipe.fileno() for pipe in self._pipes)
        self._closed = False
        self._errors = b""
        # One descriptor that is ready when either output is: a program that says much on stderr
        # must not wait until somebody reads it, and no task waits for that alone.
        self._outputs = selectors.DefaultSelector()
        self._outputs.register(self._out_fd, selectors.EVENT_READ)
        self._outputs.register(self._err_fd, selectors.EVENT_READ)
        for fd in (self._in_fd, self._out_fd, self._err_fd):
            os.set_blocking(fd, False)
        for fd in (self._in_fd, self._out_fd):
            with contextlib.suppress(OSError, AttributeError):  # refused, or not Linux
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def send_nowait(self, data: bytes | memoryview) -> int:
        """See `Channel`."""
        if self._closed:
            raise ChannelClosed("the channel is closed")
        try:
            return os.write(self._in_fd, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise ChannelClosed(error.strerror or str(error)) from error

    async def send(self, data: bytes | memoryview) -> None:
        """See `Channel`."""
        rest = memoryview(data)
        while True:
            rest = rest[self.send_nowait(rest) :]
            if not rest:
                return
            try:
                await anyio.wait_writable(self._in_fd)
            except anyio.ClosedResourceError as error:
                raise ChannelClosed("the channel is closed") from error

    async def receive(self) -> bytes:
        """See `Channel`."""
        while not self._closed:
            try:
                return os.read(self._out_fd, _READ)
            except BlockingIOError:
                pass
            except OSError as error:
                raise ChannelClosed(error.strerror or str(error)) from error
            try:
                await anyio.wait_readable(self._outputs)
            except anyio.ClosedResourceError as error:
                raise ChannelClosed("the channel is closed") from error
            self._drain_errors()
        raise ChannelClosed("the channel is closed")

    async def close(self) -> None:
        """See `Channel`; a process that goes on long after the end of its stdin is killed."""
        if self._closed:
            return
        self._closed = True
        process = self._process
        for waited_for in (self._pipes[0], self._outputs):
            anyio.notify_closing(waited_for)
        self._outputs.close()
        for pipe in self._pipes[:2]:
            pipe.close()
        try:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)  # or a stopped one would not end by itself
                await self._wait(_CLOSE_WAIT_S)
        finally:
            # Also when the caller's own limit ended the wait: no zombie, whatever happens.
            if process.poll() is None:
                # With what it has started to lead elsewhere; its session is its own.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            self._drain_errors()
            self._pipes[2].close()

    async def exit_report(self) -> str:
        """See `Channel`."""
        if self._process.poll() is None:
            await self._wait(_EXIT_WAIT_S)
        self._drain_errors()
        status = self._process.poll()
        if status is None:
            ended = f"{self._program} closed its output but goes on"
        elif status < 0:
            ended = f"{self._program} was ended by {_signal_name(-status)}"
        else:
            ended = f"{self._program} ended with exit status {status}"
        last = self._errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f"{ended}: {last}" if last else ended

    async def _wait(self, limit_s: float) -> None:
        def wait() -> None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(limit_s)

        # A limiter of its own: the shared one may be used up by the caller's threads.
        await anyio.to_thread.run_sync(
            wait, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
        )

    def _drain_errors(self) -> None:
        if self._pipes[2].closed:
            return
        try:
            for _ in range(_STDERR_READS):
                chunk = os.read(self._err_fd, 65536)
                if not chunk:
                    break
                self._errors = (self._errors + chunk)[-_STDERR_BYTES:]
            else:
                return  # a flood, which is not to hold the event loop
        except OSError:
            return  # nothing more for now
        if not self._closed and self._err_fd in self._outputs.get_map():
            self._outputs.unregister(self._err_fd)  # its end would be ready for ever


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
