"""Shells of this machine that tests run lanes on, and a far end that a test plays itself."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence

import anyio

from backends.remote.channel import Channel, ChannelClosed
from backends.remote.pipe import PipeChannel, open_pipe
from backends.remote.shell_backend import ShellBackend

BUSYBOX = shutil.which("busybox")

#: Each is a whole target: its shell, and where commands are looked for (None: as here).
SHELLS = {
    "sh": (["sh"], None),
    "bash": (["bash", "--posix"], None),
    # With no folder on PATH, it finds its own applets and nothing else.
    "busybox": ([BUSYBOX or "busybox", "sh"], "/nowhere"),
}
PRESENT = [name for name, (argv, _) in SHELLS.items() if shutil.which(argv[0])]


class Shells:
    """Opens lanes on one of SHELLS and remembers their channels."""

    def __init__(self, name: str) -> None:
        self._argv, self._path = SHELLS[name]
        self.opened: list[PipeChannel] = []

    async def __call__(self, argv: Sequence[str]) -> Channel:
        env = {"HOME": "/root", "PATH": self._path or os.environ["PATH"]}
        channel = await open_pipe([*self._argv, *argv[1:]], env=env)
        self.opened.append(channel)
        return channel

    def backend(self, **options: object) -> ShellBackend:
        return ShellBackend(self, **{"target": "sh:", "cwd": "/", **options})  # type: ignore[arg-type]


class Played:
    """A channel whose far end is a function: it gets what was sent, and returns what to print.

    Args:
        answer: Called with each run of bytes; returns bytes, or None for the end of the channel.
    """

    def __init__(self, answer: Callable[[bytes], bytes | None]) -> None:
        self._answer = answer
        self._waiting: list[bytes] = []
        self._news = anyio.Event()
        self._ended = False
        self.sent: list[bytes] = []

    def send_nowait(self, data: bytes | memoryview) -> int:
        if self._ended:
            raise ChannelClosed("played to its end")
        self.sent.append(bytes(data))
        said = None if data == b"exit\n" else self._answer(bytes(data))
        if said is None:
            self._ended = True
        else:
            self._waiting.append(said)
        self._news.set()
        return len(data)

    async def send(self, data: bytes | memoryview) -> None:
        self.send_nowait(data)

    async def receive(self) -> bytes:
        while True:
            while self._waiting:
                if said := self._waiting.pop(0):
                    return said
            if self._ended:
                return b""
            self._news = anyio.Event()
            await self._news.wait()

    def push(self, data: bytes) -> None:
        """Print something that nothing was sent for."""
        self._waiting.append(data)
        self._news.set()

    async def close(self) -> None:
        self._ended = True
        self._news.set()

    async def exit_report(self) -> str:
        return "the shell ended with exit status 9"


HELLO = re.compile(rb"answer ([0-9a-f]+) H")
WORD = re.compile(rb"W=([0-9a-f]+);")


def hello(sent: bytes) -> bytes | None:
    """Return the hello that answers a script, or None when this is no script."""
    found = HELLO.search(sent)
    return b"\x1e%s H 77\n" % found[1] if found else None


def word(sent: bytes) -> bytes:
    """Return the word of a request."""
    found = WORD.search(sent)
    assert found, sent
    return found[1]
