"""The connection that a Docker engine has turned into a byte stream: no thread, no SDK."""

from __future__ import annotations

import contextlib
import socket
import ssl
from typing import Any

import anyio

__all__ = ["Demultiplexer", "HijackedStream", "NotDocker", "StreamClosed"]

_READ = 1 << 18
_HEADER = 8
#: The kinds of docker's frames: what a program writes, and what the engine has to say itself.
STDOUT, STDERR, SYSTEM = 1, 2, 3
#: A TLS library that wants to read before it can write; rare, and the reader holds the socket.
_TLS_PAUSE_S = 0.01


class StreamClosed(Exception):
    """The stream takes or gives no more bytes; the text says what was seen."""


class NotDocker(Exception):
    """What arrives is not framed as docker frames it."""


class HijackedStream:
    """Bytes both ways over the socket below one of the SDK's hijacked responses.

    Driven by the event loop on unix, tcp and TLS sockets alike; an SSL socket that does not block
    tells what it waits for. Only TLS cannot close one half.

    Args:
        stream: What `exec_start(socket=True)` or `attach_socket` returned; ours from now on.
    """

    def __init__(self, stream: Any) -> None:
        # The SDK hands out no socket but a file, or one layer of it, of another kind for each
        # kind of address. The response below is the same for all.
        self._response = stream._response  # noqa: SLF001
        buffered = self._response.raw._fp.fp  # noqa: SLF001
        self._socket: socket.socket = buffered.raw._sock  # noqa: SLF001
        self._socket.settimeout(0)
        self._early = _buffered(buffered)
        self._closed = False

    def send_nowait(self, data: bytes | memoryview) -> int:
        """Send as much as goes without waiting and return how much that was.

        Raises:
            StreamClosed: Nothing can be sent any more.
        """
        if self._closed:
            raise StreamClosed("the connection is closed")
        try:
            return self._socket.send(data)
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return 0
        except OSError as error:
            raise StreamClosed(error.strerror or str(error)) from error

    async def send(self, data: bytes | memoryview) -> None:
        """Send all of `data`; only one task sends at a time.

        Raises:
            StreamClosed: Nothing can be sent any more.
        """
        rest = memoryview(data)
        while True:
            rest = rest[self.send_nowait(rest) :]
            if not rest:
                return
            try:
                await anyio.wait_writable(self._socket)
                if isinstance(self._socket, ssl.SSLSocket):
                    await anyio.sleep(_TLS_PAUSE_S)
            except (anyio.ClosedResourceError, OSError, ValueError) as error:
                raise StreamClosed("the connection is closed") from error

    async def receive(self) -> bytes:
        """Return the next bytes, at most 256 KiB; b"" at their end.

        Raises:
            StreamClosed: The stream was closed or lost.
        """
        if self._early:
            early, self._early = self._early, b""
            return early
        while not self._closed:
            wait = anyio.wait_readable
            try:
                return self._socket.recv(_READ)
            except (BlockingIOError, ssl.SSLWantReadError):
                pass
            except ssl.SSLWantWriteError:
                wait = anyio.wait_writable
            except OSError as error:
                raise StreamClosed(error.strerror or str(error)) from error
            try:
                await wait(self._socket)
            except (anyio.ClosedResourceError, OSError, ValueError) as error:
                raise StreamClosed("the connection is closed") from error
        raise StreamClosed("the connection is closed")

    def close_sending(self) -> None:
        """Tell the program that its stdin is over, where the socket can; never raises."""
        if not self._closed and not isinstance(self._socket, ssl.SSLSocket):
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close both halves and give the SDK's objects back; fine when called twice."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(RuntimeError, OSError):  # no event loop: in a worker thread
            anyio.notify_closing(self._socket)
        self._response.close()
        self._socket.close()


def _buffered(file: Any) -> bytes:
    """Return what the HTTP client has read beyond the head of the response."""
    try:
        waiting = file.peek()
    except ssl.SSLWantReadError:
        return b""
    return bytes(file.read1(len(waiting))) if waiting else b""


class Demultiplexer:
    """Take docker's framing off: eight bytes of kind and size before each piece of output.

    Pieces pass through as they arrive, however large the engine says that they are.
    """

    def __init__(self) -> None:
        self._head = b""
        self._kind = 0
        self._left = 0

    def feed(self, data: bytes) -> list[tuple[int, memoryview]]:
        """Return the pieces in `data`, each with its kind.

        Raises:
            NotDocker: There is no such kind.
        """
        pieces = []
        view = memoryview(data)
        while view:
            if not self._left:
                view = self._take_head(view)
                continue
            piece, view = view[: self._left], view[self._left :]
            self._left -= len(piece)
            pieces.append((self._kind, piece))
        return pieces

    def _take_head(self, view: memoryview) -> memoryview:
        missing = _HEADER - len(self._head)
        self._head += view[:missing]
        if len(self._head) == _HEADER:
            head, self._head = self._head, b""
            self._kind, self._left = head[0], int.from_bytes(head[4:], "big")
            if self._kind > SYSTEM or any(head[1:4]):
                raise NotDocker(f"{head!r} is not the head of a frame of docker's")
        return view[missing:]
