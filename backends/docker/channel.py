"""A channel to a program that a Docker engine runs in a container (an exec)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio

from backends.docker.daemon import Daemon
from backends.docker.state import state_of
from backends.docker.stream import (
    STDOUT,
    Demultiplexer,
    HijackedStream,
    NotDocker,
    StreamClosed,
)
from backends.remote.channel import ChannelClosed
from operations import BackendUnavailable

if TYPE_CHECKING:
    from docker import APIClient

__all__ = ["ExecChannel", "open_exec"]

_STDERR_BYTES = 4096
#: The engine takes up to 5 s to kill what it started and 3 s to settle files.
_CLOSE_WAIT_S = 9.0
_EXIT_WAIT_S = 2.0
#: Right after the end of the output docker may not know the exit status yet.
_PAUSE_S = 0.05
_KILLED = 128 + 9


def open_exec(
    api: APIClient, container: str, argv: list[str], *, user: str, env: dict[str, str]
) -> tuple[str, HijackedStream]:
    """Start a program in a container; return the exec's id and its stream.

    Args:
        api: The SDK's client; this asks the Docker engine, so in a thread.
        container: The container's id.
        argv: The program: what becomes the engine, or a shell.
        user: As for `docker exec --user`; "" for the container's own.
        env: Variables on top of the container's own.
    """
    # In "/": a container whose working folder was removed runs nothing there. No terminal: it
    # would change the bytes.
    made = api.exec_create(
        container,
        argv,
        stdin=True,
        user=user,
        environment=env,
        workdir="/",
    )
    exec_id = str(made["Id"])
    return exec_id, HijackedStream(api.exec_start(exec_id, socket=True))


class ExecChannel:
    """See `Channel`.

    Args:
        daemon: Where the container is.
        container: The container's id.
        exec_id: The exec's id.
        stream: The exec's stream.
        target: The target as the user named it, for errors.
        program: What runs there, for errors.
    """

    def __init__(
        self,
        daemon: Daemon,
        container: str,
        exec_id: str,
        stream: HijackedStream,
        *,
        target: str,
        program: str,
    ) -> None:
        self._program = program
        self._daemon = daemon
        #: The container's id.
        self.container = container
        self._exec_id = exec_id
        self._stream = stream
        self._target = target
        self._frames = Demultiplexer()
        self._errors = b""
        self._unanswered_since: float | None = None
        self._broken = ""

    @property
    def silent_s(self) -> float:
        """Seconds since the first thing was sent that nothing has come after."""
        since = self._unanswered_since
        return 0.0 if since is None else time.monotonic() - since

    def vouch(self) -> None:
        """Begin to count anew: the container runs."""
        self._unanswered_since = None

    def break_off(self, why: str) -> None:
        """Have both directions end, for a reason that is a sentence part."""
        self._broken = why
        self._stream.close()

    def send_nowait(self, data: bytes | memoryview) -> int:
        """See `Channel`."""
        self._expect_answer()
        try:
            return self._stream.send_nowait(data)
        except StreamClosed as error:
            raise ChannelClosed(self._broken or str(error)) from error

    async def send(self, data: bytes | memoryview) -> None:
        """See `Channel`."""
        self._expect_answer()
        try:
            await self._stream.send(data)
        except StreamClosed as error:
            raise ChannelClosed(self._broken or str(error)) from error

    def _expect_answer(self) -> None:
        if self._unanswered_since is None:
            self._unanswered_since = time.monotonic()

    async def receive(self) -> bytes:
        """See `Channel`."""
        while True:
            try:
                data = await self._stream.receive()
                self._unanswered_since = None
                if not data:
                    return b""
                pieces = self._frames.feed(data)
            except (StreamClosed, NotDocker) as error:
                raise ChannelClosed(self._broken or str(error)) from error
            output = [piece for kind, piece in pieces if kind <= STDOUT]
            for kind, piece in pieces:
                if kind > STDOUT:
                    self._errors = (self._errors + piece)[-_STDERR_BYTES:]
            if output:
                return b"".join(output)

    async def close(self) -> None:
        """See `Channel`; what goes on after the end of its stdin is ended by its lease."""
        self._stream.close_sending()
        try:
            with anyio.move_on_after(_CLOSE_WAIT_S):
                while await self._stream.receive():
                    pass
        except StreamClosed:
            pass
        finally:
            self._stream.close()

    async def exit_report(self) -> str:
        """See `Channel`; when the container has ended too, that is what is told."""
        try:
            state, status = await self._daemon.run(self._look, self._target, 2 * _EXIT_WAIT_S)
        except BackendUnavailable as error:
            return f"{self._program}'s output ended, and {error.reason}"
        if state:
            return state
        if status is None:
            ended = f"{self._program} closed its output but goes on"
        else:
            ended = f"{self._program} ended with exit status {status}"
        last = self._errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f"{ended}: {last}" if last else ended

    def _look(self, api: APIClient) -> tuple[str | None, int | None]:
        """Return what state the container is in if it does not run, and the exit status."""
        from docker.errors import NotFound

        end = time.monotonic() + _EXIT_WAIT_S
        status: int | None = None
        while True:
            try:
                status = api.exec_inspect(self._exec_id)["ExitCode"]
            except NotFound:  # it goes with its container
                return state_of(api, self.container) or "the container has stopped", None
            state = state_of(api, self.container)
            # Docker sees the programs of a killed container end before it sees the container end.
            certain = status is not None and (status != _KILLED or time.monotonic() > end - 1.5)
            if state or certain or time.monotonic() > end:
                return state, status
            time.sleep(_PAUSE_S)
