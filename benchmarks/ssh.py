"""A host's files and commands over SSH: against a fresh `ssh` for each, one that is shared, and a
channel of asyncssh's for each; at home, and 50 ms away.

Starts an sshd of its own on a loopback port; gives no rows where none is installed.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import asyncssh

from backends.ssh import SshBackend
from benchmarks.harness import Figure, compare, program, single
from benchmarks.link import link
from benchmarks.memory import resident_mb
from benchmarks.place import call_of
from benchmarks.search import FILES, fill
from tests.sshd import Sshd
from toolkit import coding_tools

ROUND_TRIP_S = 0.05
IN_A_ROW = 10
MANY = 30
#: An empty home: what start-up files of a login shell take is this machine's, not SSH's.
SERVER = "Subsystem sftp internal-sftp\nMaxStartups 100\nSetEnv HOME={home}\n"


@dataclass(frozen=True, slots=True)
class Host:
    """A server of our own.

    Attributes:
        server: Its process and files.
        config: A configuration that leads to it by any name.
        folder: An empty folder there.
    """

    server: Sshd
    config: str
    folder: Path

    @asynccontextmanager
    async def tools(self, port: int | None = None) -> AsyncIterator[tuple[SshBackend, Any]]:
        """Connect, through another port where one is given; give the backend and its tools."""
        config = self.config
        if port is not None:
            known = f"UserKnownHostsFile {self.server.know(port, name='known_far')}"
            config = self.server.config(known, port=port, name="far")
        backend = SshBackend.connect("host", config=config, cwd=str(self.folder))
        async with backend:
            yield backend, call_of(coding_tools(backend))

    def connect(self) -> Any:
        """Return what connects by asyncssh alone."""
        folder = self.server.folder
        return asyncssh.connect(
            "127.0.0.1",
            self.server.port,
            username=self.server.user,
            client_keys=[str(folder / "key")],
            known_hosts=str(folder / "known_hosts"),
            agent_path=None,
            config=None,
        )

    def ssh(self, *argv: str) -> list[str]:
        """Return the command line of a program of OpenSSH's."""
        return [argv[0], "-F", self.config, *argv[1:]]


async def rows(*, quick: bool) -> AsyncIterator[Figure]:
    if shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin") is None:
        print("no host: sshd is not installed", file=sys.stderr)
        return
    rounds = 5 if quick else 15
    with _host() as host:
        async for figure in _small(host, rounds):
            yield figure
        async for figure in _large(host, rounds):
            yield figure
        async for figure in _far(host, rounds):
            yield figure
        yield await _first_result(host, rounds)
        yield await single(
            "memory of ours for each more idle connection",
            lambda: _memory_of_one_more(host),
            goal=3,
            unit="MB",
        )


async def _small(host: Host, rounds: int) -> AsyncIterator[Figure]:
    path = f"{host.folder}/small.txt"
    async with host.tools() as (_, call), host.connect() as connection, _master(host) as shared:
        await call("write", path=path, content="x" * 1023 + "\n")
        for name, tool, arguments, line, goals in (
            ("bash true", "bash", {"command": "true"}, "true", (1 / 50, 1, 1 / 2)),
            ("read 1 KB", "read", {"path": path}, f"cat {path}", (1 / 100, 1, 1 / 4)),
        ):
            for against, reference, goal in zip(
                ("fresh ssh", "ssh with ControlMaster", "asyncssh channel"),
                (
                    program(*host.ssh("ssh", "host", line)),
                    program(*shared, line),
                    lambda line=line: connection.run(line, check=True),
                ),
                goals,
                strict=True,
            ):
                yield await compare(
                    f"{name} over SSH",
                    lambda tool=tool, arguments=arguments: call(tool, **arguments),
                    reference,
                    against=against,
                    goal=goal,
                    rounds=rounds,
                    ours_in_a_row=IN_A_ROW,
                )


async def _large(host: Host, rounds: int) -> AsyncIterator[Figure]:
    path = host.folder / "ten"
    path.write_bytes(bytes(range(250)) * 40_000)
    copy = str(host.folder / "copy")
    async with host.tools() as (backend, _):
        yield await compare(
            "read 10 MB over SSH",
            lambda: backend.read_file(str(path)),
            program(*host.ssh("scp", "-q", f"host:{path}", copy)),
            against="scp",
            goal=1,
            rounds=rounds,
        )
        data = path.read_bytes()
        yield await compare(
            "write 10 MB over SSH",
            lambda: backend.write_file(str(path), data),
            program(*host.ssh("scp", "-q", copy, f"host:{path}")),
            against="scp",
            goal=1,
            rounds=rounds,
        )


async def _far(host: Host, rounds: int) -> AsyncIterator[Figure]:
    """Give rows of a link with a delay, where a round trip is what a byte takes there and back."""
    fill(host.folder / "tree")
    (host.folder / "few").mkdir()
    shutil.copy(host.folder / "small.txt", host.folder / "few")
    async with (
        _echo() as echo_port,
        AsyncExitStack() as stack,
    ):
        ports = [
            stack.enter_context(link(port, ROUND_TRIP_S)) for port in (host.server.port, echo_port)
        ]
        backend, call = await stack.enter_async_context(host.tools(ports[0]))
        stream = await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", ports[1]))

        async def echo() -> None:
            await stream.send(b"x")
            await stream.receive()

        await call("write", path="edited.txt", content="a\n")
        edits = itertools.cycle(
            [[{"old_text": "a", "new_text": "b"}], [{"old_text": "b", "new_text": "a"}]]
        )
        for name, work, trips in (
            ("read 1 KB", lambda: call("read", path="small.txt"), 1.1),
            ("write 1 KB", lambda: call("write", path="written.txt", content="x" * 1024), 1.1),
            ("bash true", lambda: call("bash", command="true"), 1.1),
            ("ls", lambda: call("ls", path="few"), 1.1),
            ("find", lambda: call("find", pattern="*.txt", path="few"), 1.1),
            ("grep", lambda: call("grep", pattern="xx", path="few"), 1.1),
            ("edit", lambda: call("edit", path="edited.txt", edits=next(edits)), 2.1),
        ):
            yield await compare(
                f"{name}, 50 ms away",
                work,
                echo,
                against="a byte there and back",
                goal=trips,
                rounds=rounds,
            )
        yield await single(
            "read 10 MB, 50 ms away",
            lambda: _seconds(lambda: backend.read_file(f"{host.folder}/ten")),
            goal=10 / 25,
            rounds=rounds,
        )
        find_all = {"pattern": "**/*.txt", "path": "tree", "limit": FILES}
        yield await single(
            "find over 5,000 files, 50 ms away",
            lambda: _seconds(lambda: call("find", **find_all)),
            goal=0.25,
            rounds=rounds,
        )


async def _first_result(host: Host, rounds: int) -> Figure:
    async with AsyncExitStack() as stack:  # what closing takes is not a part of it

        async def ours() -> None:
            _, call = await stack.enter_async_context(host.tools())
            await call("read", path="small.txt")

        async def bare() -> None:
            await stack.enter_async_context(host.connect())

        return await compare(
            "connect to first result over SSH",
            ours,
            bare,
            against="asyncssh's connect",
            goal=1.3,
            allowance_s=0.15,
            rounds=rounds,
        )


async def _seconds(work: Callable[[], Awaitable[object]]) -> float:
    started = anyio.current_time()
    await work()
    return anyio.current_time() - started


@contextmanager
def _host() -> Iterator[Host]:
    with tempfile.TemporaryDirectory(prefix="remotehands-bench-") as at:
        home, folder = Path(at, "home"), Path(at, "work")
        home.mkdir()
        folder.mkdir()
        server = Sshd(SERVER.format(home=home))
        try:
            server.start()
            yield Host(server, server.config(), folder)
        finally:
            server.remove()


@asynccontextmanager
async def _master(host: Host) -> AsyncIterator[list[str]]:
    """Start a connection that others share; give the command line that runs something over it."""
    socket = host.folder.parent / "shared"
    shared = host.ssh("ssh", "-S", str(socket))
    with subprocess.Popen([*shared, "-M", "-N", "host"], stdin=subprocess.DEVNULL) as master:
        try:
            while not socket.exists():
                await anyio.sleep(0.01)
            yield [*shared, "host"]
        finally:
            master.terminate()


@asynccontextmanager
async def _echo() -> AsyncIterator[int]:
    """Serve what sends back what comes; give its port."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def _memory_of_one_more(host: Host) -> float:
    argv = [sys.executable, "-m", "benchmarks.ssh", host.config, str(host.folder)]
    done = await anyio.to_thread.run_sync(
        lambda: subprocess.run(argv, check=True, capture_output=True, text=True)
    )
    return float(done.stdout)


async def _measure(config: str, folder: str) -> None:
    backends = [SshBackend.connect("host", config=config, cwd=folder) for _ in range(MANY + 1)]
    for number, backend in enumerate(backends):
        await backend.__aenter__()
        await backend.read_file(f"{folder}/small.txt")
        if not number:
            before = resident_mb(field="VmRSS")
    print((resident_mb(field="VmRSS") - before) / MANY)
    for backend in reversed(backends):
        await backend.__aexit__(None, None, None)


if __name__ == "__main__":
    anyio.run(_measure, *sys.argv[1:])
