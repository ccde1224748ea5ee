"""A channel to a program that an SSH server runs: one session of a connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any

import anyio
import asyncssh

from backends.remote.channel import ChannelClosed
from backends.ssh.faults import why_lost

__all__ = ["SshChannel", "open_session"]

_MOST_READ = 1 << 20
#: Bytes that wait for a reader until asyncssh is told to wait, and to go on.
_HIGH, _LOW = 4 << 20, 1 << 20
_STDERR_BYTES = 4096
_EXIT_WAIT_S = 2.0
#: The engine takes up to 5 s to kill what it started and 3 s to settle files.
_CLOSE_WAIT_S = 9.0


async def open_session(
    connection: asyncssh.SSHClientConnection,
    line: str,
    *,
    program: str,
    explain: Callable[[str], str | None] = lambda _: None,
    on_closed: Callable[[], None] = lambda: None,
) -> SshChannel:
    """Have the server run a line and return the channel to it.

    Args:
        connection: Where.
        line: What the user's login shell is given.
        program: What runs there, for errors.
        explain: Says more about a program's end, given the last line of its stderr.
        on_closed: Called when the server has closed the session.

    Raises:
        asyncssh.ChannelOpenError: The server opens no (further) session.
    """
    session = _Session(on_closed)
    # A task of its own: an opening that is cancelled midway would stay open at the server's.
    opening = asyncio.ensure_future(
        connection.create_session(
            lambda: session,
            line,
            encoding=None,
            request_pty=False,
            x11_forwarding=False,
        )
    )
    try:
        await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_throw_away)
        raise
    return SshChannel(session, program, explain)


def _throw_away(opening: asyncio.Future[Any]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result()[0].abort()


class _Session(asyncssh.SSHClientSession[bytes]):
    """What asyncssh tells of a session, kept until somebody wants it."""

    def __init__(self, on_closed: Callable[[], None]) -> None:
        self.channel: asyncssh.SSHClientChannel[bytes] | None = None
        self.chunks: deque[bytes] = deque()
        self.waiting = 0
        self.errors = b""
        self.ended = False
        self.closed = False
        self.error: Exception | None = None
        self.news = anyio.Event()
        self.may_send = anyio.Event()
        self.may_send.set()
        self._dropping = False
        self._paused = False
        self._on_closed = on_closed

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self.channel = chan

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if datatype is not None:
            self.errors = (self.errors + data)[-_STDERR_BYTES:]
        elif not self._dropping:
            self.chunks.append(data)
            self.waiting += len(data)
            if self.waiting > _HIGH and not self._paused and self.channel is not None:
                self._paused = True
                self.channel.pause_reading()
            self.news.set()

    def eof_received(self) -> bool:
        self.ended = True
        self.news.set()
        return True  # what we send is another matter

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self.error = exc
        self.news.set()
        self.may_send.set()
        self._on_closed()

    def pause_writing(self) -> None:
        self.may_send = anyio.Event()

    def resume_writing(self) -> None:
        self.may_send.set()

    async def change(self) -> None:
        """Wait until something happens; any number of tasks may."""
        if self.news.is_set():
            self.news = anyio.Event()
        await self.news.wait()

    def take(self) -> bytes:
        """Return what has come, at most _MOST_READ of it; b"" for nothing."""
        taken: list[bytes] = []
        size = 0
        while self.chunks and (not taken or size + len(self.chunks[0]) <= _MOST_READ):
            taken.append(self.chunks.popleft())
            size += len(taken[-1])
        self.waiting -= size
        if self._paused and self.waiting < _LOW and self.channel is not None:
            self._paused = False
            self.channel.resume_reading()
        return taken[0] if len(taken) == 1 else b"".join(taken)

    def drop(self) -> None:
        """Want nothing of what has come, or comes; it must not hold up the session's end."""
        self._dropping = True
        while self.take():
            pass
        self.news.set()


class SshChannel:
    """See `Channel`.

    Args:
        session: A session whose program runs.
        program: What runs there, for errors.
        explain: See `open_session`.
    """

    def __init__(
        self, session: _Session, program: str, explain: Callable[[str], str | None]
    ) -> None:
        assert session.channel is not None
        self._session = session
        self._channel = session.channel
        self._program = program
        self._explain = explain
        self._closed = False

    def send_nowait(self, data: bytes | memoryview) -> int:
        """See `Channel`."""
        if self._closed or self._session.closed:
            raise ChannelClosed(self._why())
        if not self._session.may_send.is_set():
            return 0
        try:
            self._channel.write(bytes(data))
        except OSError as error:
            raise ChannelClosed(self._why()) from error
        return len(data)

    async def send(self, data: bytes | memoryview) -> None:
        """See `Channel`."""
        await self._session.may_send.wait()
        self.send_nowait(data)
        await self._session.may_send.wait()

    async def receive(self) -> bytes:
        """See `Channel`."""
        session = self._session
        while not self._closed:
            if data := session.take():
                return data
            if session.closed and session.error is not None:
                raise ChannelClosed(self._why())
            if session.ended or session.closed:
                return b""
            await session.change()
        raise ChannelClosed(self._why())

    async def close(self) -> None:
        """See `Channel`; what goes on after the end of its stdin is ended by its lease."""
        if self._closed:
            return
        self._closed = True
        session = self._session
        session.drop()
        try:
            with contextlib.suppress(OSError):
                self._channel.write_eof()
            with anyio.move_on_after(_CLOSE_WAIT_S):
                while not session.closed:
                    await session.change()
        finally:
            if not session.closed:
                self._channel.abort()

    async def exit_report(self) -> str:
        """See `Channel`."""
        session = self._session
        with anyio.move_on_after(_EXIT_WAIT_S):
            while not session.closed:
                await session.change()
        if session.error is not None:
            return self._why()
        # Who could send nothing any more has not read what was said instead of an answer.
        words = session.errors.strip() or session.take()[-_STDERR_BYTES:]
        last = words.decode("utf-8", "replace").strip().rpartition("\n")[2]
        if (explained := self._explain(last)) is not None:
            return explained
        signal = self._channel.get_exit_signal()
        status = self._channel.get_exit_status()
        if signal is not None:
            ended = f"{self._program} was ended by SIG{signal[0]}"
        elif status is not None:
            ended = f"{self._program} ended with exit status {status}"
        elif session.closed:
            ended = f"{self._program} ended, and the server does not tell how"
        else:
            ended = f"{self._program} closed its output but goes on"
        return f"{ended}: {last}" if last else ended

    def _why(self) -> str:
        error = self._session.error
        return "the channel is closed" if error is None else why_lost(error)
