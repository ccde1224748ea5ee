"""A backend in full: a machine that answers on a Unix socket, as a VM or a sidecar does.

The far end runs `backends.remote.bootstrap.argv()` for every connection, with the connection as its
stdin and stdout: a systemd socket with `Accept=yes` does that, or socat, or `serve` in the tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from anyio.abc import UNIXSocketStream

from backends.remote.backend import RemoteBackend
from backends.remote.channel import Channel, ChannelClosed


class SocketBackend(RemoteBackend):
    """A RemoteBackend behind a Unix socket of this machine.

    Args:
        socket: The socket's path.
        cwd: The folder that tools work in, on the target.
        options: `env`, `root`, `lease_s` and the others of `RemoteBackend`.
    """

    def __init__(self, socket: str, *, cwd: str, **options: Any) -> None:
        self._socket = socket
        super().__init__(self._open, target=f"socket:{socket}", cwd=cwd, **options)

    async def _open(self) -> Channel:
        return SocketChannel(await anyio.connect_unix(self._socket))


class SocketChannel:
    """See `Channel`."""

    def __init__(self, stream: UNIXSocketStream) -> None:
        self._stream = stream

    def send_nowait(self, data: bytes | memoryview) -> int:
        """See `Channel`; a stream cannot tell what would go without waiting."""
        return 0

    async def send(self, data: bytes | memoryview) -> None:
        """See `Channel`."""
        with _told():
            await self._stream.send(bytes(data))

    async def receive(self) -> bytes:
        """See `Channel`."""
        with _told():
            try:
                return await self._stream.receive(1 << 18)
            except anyio.EndOfStream:
                return b""

    async def close(self) -> None:
        """See `Channel`."""
        await self._stream.aclose()

    async def exit_report(self) -> str:
        """See `Channel`; how the engine ended does not cross a socket."""
        return "the machine closed the connection"


@contextmanager
def _told() -> Iterator[None]:
    """Tell a stream's errors as a channel's, the only one that `RemoteBackend` knows."""
    try:
        yield
    except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
        raise ChannelClosed(f"{error}" or "the socket was closed") from error
