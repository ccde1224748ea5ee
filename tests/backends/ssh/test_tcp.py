"""The TCP connection below asyncssh's."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import pytest

from backends.ssh import SshBackend
from backends.ssh.tcp import Tcp

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sshd import Sshd

pytestmark = pytest.mark.anyio


class Heard(asyncio.Protocol):
    """Notes what happens to it, and answers nothing."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        self.events.append(data)

    def eof_received(self) -> None:
        self.events.append("eof")

    def connection_lost(self, exc: Exception | None) -> None:
        self.events.append("lost")
        self.ended.set()


@pytest.mark.parametrize("relaxed_after", [0, 1, 2])
async def test_nothing_is_lost_whenever_it_steps_out(relaxed_after: int) -> None:
    more = asyncio.Event()

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for word in (b"one", b"two", b"three"):
            writer.write(word)
            await more.wait()
            more.clear()
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        tcp = Tcp(family=socket.AF_INET)
        _, heard = await tcp.create_connection(Heard, "127.0.0.1", port)
        for number, word in enumerate((b"one", b"two", b"three")):
            if number == relaxed_after:
                tcp.relax()
                tcp.relax()
            while heard.events[-1] != word:
                await asyncio.sleep(0.001)
            more.set()
        await heard.ended.wait()
    assert heard.events == ["made", b"one", b"two", b"three", "eof", "lost"]


async def test_a_connection_that_has_ended_steps_out_too() -> None:
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as s:
        tcp = Tcp()
        port = s.sockets[0].getsockname()[1]
        _, heard = await tcp.create_connection(Heard, "127.0.0.1", port)
        await heard.ended.wait()
        tcp.relax()
    assert heard.events == ["made", "eof", "lost"]


async def test_a_refused_connection_is_an_os_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        with pytest.raises(OSError, match=r"refused|failed"):
            await Tcp().create_connection(Heard, *taken.getsockname())


async def test_the_configured_ends_are_used(server: Callable[..., Sshd]) -> None:
    made = server("LogLevel VERBOSE\n")
    config = made.config("Host *\n  BindAddress 127.0.0.9\n  AddressFamily inet\n")
    async with SshBackend.connect("box", config=config) as backend:
        assert await backend.exists("/")
    assert "Connection from 127.0.0.9 port" in made.log()
