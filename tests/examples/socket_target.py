"""A plugin of pytest that adds the example's backend to the targets of the conformance suite.

`REMOTEHANDS_TEST_TARGETS=socket pytest -p tests.examples.socket_target tests/conformance`
"""

from __future__ import annotations

import itertools
import os
import socketserver
import subprocess
import sys
import threading
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

_numbers = itertools.count(1)


def pytest_configure() -> None:
    """Add the target, once pytest has seen which modules have assertions to rewrite."""
    from backends.local.env import child_environment
    from backends.remote import bootstrap
    from examples.socket_backend import SocketBackend
    from tests.conformance.places import Place
    from tests.conformance.seeders import HostSeeder
    from tests.conformance.targets import TARGETS, Target

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            fd, env = self.request.fileno(), child_environment(os.environ, inherit=False)
            argv = bootstrap.argv(sys.executable)
            subprocess.run(argv, stdin=fd, stdout=fd, cwd="/", env=env, check=False)

    @asynccontextmanager
    async def open_place(scratch: Path, **options: Any) -> AsyncIterator[Place]:
        workspace = scratch / "workspace"
        workspace.mkdir(exist_ok=True)
        # Not in the scratch folder: a socket's path has 107 bytes at most.
        socket = f"/tmp/remotehands-{os.getpid()}-{next(_numbers)}.sock"
        with _served(socket, Connection):
            kind = {"cwd": options.get("root", str(workspace)), **options}
            async with SocketBackend(socket, **kind) as backend:
                yield Place(backend, backend.cwd, HostSeeder(), str(scratch / "home"))

    TARGETS["socket"] = Target(
        open=open_place, loops=("asyncio", "trio"), lacks=TARGETS["engine"].lacks
    )


@contextmanager
def _served(socket: str, connection: type[socketserver.BaseRequestHandler]) -> Iterator[None]:
    """Be the machine: serve each connection in a thread; end when all of them have ended."""
    with socketserver.ThreadingUnixStreamServer(socket, connection) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.02,))
        serving.start()
        try:
            yield
        finally:
            server.shutdown()
            serving.join()
            os.unlink(socket)
