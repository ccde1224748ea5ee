"""The TCP connection below asyncssh's, which acknowledges at once while that matters."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

__all__ = ["Tcp"]

#: Only Linux has it.
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)


class Tcp:
    """Makes one connection, in the place of a tunnel of asyncssh's.

    Until a session starts on it, which on a jump host is never, OpenSSH's server holds back each
    small piece until the one before is known to have arrived (Nagle's algorithm), and the kernel
    here lets it know 40 ms later, in the hope of something to send along. So each piece is
    acknowledged when it was read: 40 ms less for a login, and as much for each piece of output
    through a jump host. Otherwise that would only cost a system call for each piece.

    Args:
        options: What `loop.create_connection` takes besides.
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._between: _Between | None = None

    async def create_connection(
        self, make: Callable[[], Any], host: str, port: int
    ) -> tuple[asyncio.BaseTransport, Any]:
        """Connect; return the transport and the protocol that `make` has made for it.

        Raises:
            OSError: There is no such connection.
        """
        loop = asyncio.get_running_loop()
        transport, between = await loop.create_connection(
            lambda: _Between(make()), host, port, **self._options
        )
        self._between = between
        return transport, between.protocol

    def relax(self) -> None:
        """Leave it to the kernel when to acknowledge: a session has started."""
        between, self._between = self._between, None
        if between is not None:
            between.step_out()


class _Between(asyncio.Protocol):
    """Hand everything on to asyncssh's connection."""

    def __init__(self, protocol: Any) -> None:
        self.protocol = protocol
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.protocol.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self.protocol.data_received(data)
        if self._transport is not None and not self._transport.is_closing():
            own = self._transport.get_extra_info("socket")
            if _QUICKACK is not None:
                own.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)

    def eof_received(self) -> None:
        self.protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        self.protocol.pause_writing()

    def resume_writing(self) -> None:
        self.protocol.resume_writing()

    def step_out(self) -> None:
        """Have asyncssh's connection hear for itself from now on."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.set_protocol(self.protocol)
