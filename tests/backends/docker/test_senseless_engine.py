"""What answers at the address of a Docker engine may be anything."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from backends.docker import DockerBackend
from operations import BackendUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.anyio

ID = "f" * 64
RUNNING = {"Name": "/c", "Id": ID, "Config": {}, "State": {"Status": "running"}}
VERSION = {"ApiVersion": "1.41"}


class Engine(BaseHTTPRequestHandler):
    """Answers by the beginning of what follows the version in the path."""

    protocol_version = "HTTP/1.1"
    answers: dict[str, tuple[int, Any]]

    def do_GET(self) -> None:
        path = "/" + self.path.split("/", 2)[2]
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = [answer for begin, answer in self.answers.items() if path.startswith(begin)]
        status, said = (found or [(200, VERSION) if path == "/version" else (404, {})])[0]
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Location", "http://127.0.0.1:9/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - the name is the standard library's

    def log_message(self, *_args: Any) -> None:
        """Say nothing."""


@contextmanager
def engine(answers: dict[str, tuple[int, Any]]) -> Iterator[str]:
    """Serve and give the address."""
    handler = type("Handler", (Engine,), {"answers": answers})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"tcp://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "answers",
    [
        {"/version": (200, None)},
        {"/version": (200, [1])},
        {"/version": (200, b"<html>a router</html>")},
        {"/version": (200, b"[" * 100_000)},
        {"/version": (302, {})},
        {"/containers/c/json": (200, {})},
        {"/containers/c/json": (200, {**RUNNING, "State": "running"})},
        {"/containers/json": (200, {"c": 1})},
        {"/containers/c/json": (200, RUNNING), f"/containers/{ID}/exec": (201, {})},
        {"/containers/c/json": (500, {"message": "\x1b[2Jx" * 100_000})},
    ],
)
async def test_an_answer_without_sense_is_one_short_error(
    answers: dict[str, tuple[int, Any]],
) -> None:
    """No error of the SDK's or of Python's own gets out, nor what moves a cursor."""
    with engine(answers) as address, pytest.raises(BackendUnavailable) as caught:
        async with DockerBackend.attach("c", engine=address, connect_timeout_s=20):
            pass
    assert len(str(caught.value)) < 2000
    assert str(caught.value).isprintable()
