"""The hijacked stream, over every kind of connection to an engine."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.docker import DockerBackend
from backends.docker.stream import Demultiplexer, NotDocker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DOCKER = "/var/run/docker.sock"

pieces = st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=300)), max_size=20)


@given(pieces, st.lists(st.integers(1, 50), min_size=1))
def test_frames_come_apart_however_they_arrive(
    frames: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    wire = b"".join(
        bytes([kind, 0, 0, 0]) + len(data).to_bytes(4, "big") + data for kind, data in frames
    )
    found = {1: b"", 2: b""}
    demultiplexer, position, turn = Demultiplexer(), 0, 0
    while position < len(wire):
        size = cuts[turn % len(cuts)]
        for kind, piece in demultiplexer.feed(wire[position : position + size]):
            found[kind] += piece
        position, turn = position + size, turn + 1
    for kind in found:
        assert found[kind] == b"".join(data for k, data in frames if k == kind)


def test_a_frame_that_claims_to_be_huge_keeps_nothing() -> None:
    """What has come passes through at once."""
    demultiplexer = Demultiplexer()
    [(kind, piece)] = demultiplexer.feed(b"\1\0\0\0\xff\xff\xff\xff" + b"x" * 1000)
    assert (kind, bytes(piece)) == (1, b"x" * 1000)


@pytest.mark.parametrize("head", [b"HTTP/1.1", b"\4\0\0\0\0\0\0\1", b"\1\0\1\0\0\0\0\1"])
def test_what_is_no_frame_is_an_error(head: bytes) -> None:
    with pytest.raises(NotDocker):
        Demultiplexer().feed(head)


class Relay:
    """Pass connections on to the engine's socket, with TLS or without."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._closing = False
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        """Stop, and wait until every connection is over."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while not self._closing:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(near,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, near: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.enter_context(near)
            if self._context:
                near = stack.enter_context(self._context.wrap_socket(near, server_side=True))
            far = stack.enter_context(socket.socket(socket.AF_UNIX))
            far.connect(DOCKER)
            ends = {near: far, far: near}
            while ends and not self._closing:
                pending = isinstance(near, ssl.SSLSocket) and near in ends and near.pending()
                ready = [near] if pending else select.select([*ends], [], [], 0.2)[0]
                for end in ready:
                    data = end.recv(65536)
                    if data:
                        ends[end].sendall(data)
                        continue
                    if isinstance(ends[end], ssl.SSLSocket) or isinstance(end, ssl.SSLSocket):
                        return
                    ends.pop(end).shutdown(socket.SHUT_WR)


@pytest.fixture(params=["unix", "tcp", "tls"])
def engine(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    api: object,
) -> Iterator[str]:
    """Give the address of the engine, reached in one of three ways."""
    if request.param == "unix":
        yield f"unix://{DOCKER}"
        return
    context = None
    if request.param == "tls":
        _certificates(tmp_path)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
        monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
        monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path))
    relay = Relay(context)
    yield relay.url
    relay.close()


def _certificates(folder: Path) -> None:
    """Make one certificate that is its own authority, the server's and the client's."""
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -out ca.pem"
    names = ["-keyout", "key.pem", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*make.split(), *names], cwd=folder, check=True, capture_output=True)
    (folder / "cert.pem").write_bytes((folder / "ca.pem").read_bytes())


@pytest.mark.anyio
async def test_every_byte_passes_over_unix_tcp_and_tls(
    engine: str, container: Callable[..., str]
) -> None:
    content = bytes(range(256)) * 20_000
    async with DockerBackend.attach(container(), engine=engine) as backend:
        await backend.write_file("/work/big", content)
        assert await backend.read_file("/work/big") == content
        output: list[bytes] = []
        result = await backend.exec("cat big; echo end >&2", cwd="/work", on_data=output.append)
        assert result.exit_code == 0
        assert b"".join(output) == content + b"end\n"
