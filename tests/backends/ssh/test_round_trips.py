"""How often a call waits for the far end: counted by what crosses the channel, not by time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from backends.engine import frames
from backends.ssh import SshBackend
from tests.sshd import Sshd
from toolkit.calls import ToolCall
from toolkit.runner import ToolRunner
from toolkit.toolset import coding_tools

if TYPE_CHECKING:
    from pathlib import Path

    from backends.remote.channel import Channel

pytestmark = pytest.mark.anyio


class Counted:
    """A channel that counts the requests and the answers to them that cross it.

    Nothing within a request waits for the other end: a body has credit for its first 4 MiB.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._ours, self._theirs = frames.FrameReader(), frames.FrameReader()
        self._started = False
        self._hello: bytes | None = b""
        self.requests = 0
        self.answers = 0

    def send_nowait(self, data: bytes | memoryview) -> int:
        sent = self._channel.send_nowait(data)
        self._note(bytes(data[:sent]))
        return sent

    async def send(self, data: bytes | memoryview) -> None:
        await self._channel.send(data)
        self._note(bytes(data))

    def _note(self, data: bytes) -> None:
        if self._started:
            self.requests += [kind for kind, _, _ in self._ours.feed(data)].count(frames.REQUEST)
        self._started = True  # what comes first is the engine's source

    async def receive(self) -> bytes:
        data = news = await self._channel.receive()
        if self._hello is not None:
            _, mark, news = (self._hello + data).partition(frames.HELLO_MARK)
            self._hello = None if mark else self._hello + data
        for kind, _, _ in self._theirs.feed(news):
            self.answers += kind in (frames.RESULT, frames.FAULT)
        return data

    async def close(self) -> None:
        await self._channel.close()

    async def exit_report(self) -> str:
        return await self._channel.exit_report()


class CountedBackend(SshBackend):
    """An SshBackend that counts."""

    counted: Counted

    async def _open_program(self, *args: Any) -> Channel:
        self.counted = Counted(await super()._open_program(*args))
        return self.counted


MANY = 1000
#: Tool, arguments, how many requests.
CALLS: list[tuple[str, dict[str, Any], int]] = [
    ("read", {"path": "small.txt"}, 1),
    ("read", {"path": "large.txt", "offset": 15_000, "limit": 100}, 1),
    ("read", {"path": "missing.txt"}, 1),
    ("write", {"path": "small.txt", "content": "old\n"}, 1),
    ("write", {"path": "new/folder/file.txt", "content": "x" * 1_000_000}, 1),
    ("bash", {"command": "true"}, 1),
    ("bash", {"command": "seq 100000"}, 1),
    ("ls", {"path": "many"}, 1),
    ("find", {"path": "many", "pattern": "**/*", "limit": MANY}, 1),
    ("grep", {"path": ".", "pattern": "old"}, 1),
    ("grep", {"path": "many", "pattern": "needle", "limit": 500}, 1),
    ("edit", {"path": "small.txt", "edits": [{"oldText": "old", "newText": "new"}]}, 2),
]


async def test_a_call_is_one_request_and_an_edit_two(sshd: Sshd, tmp_path: Path) -> None:
    """The first call of each tool as well as a later one."""
    (tmp_path / "small.txt").write_text("old\n")
    (tmp_path / "large.txt").write_text("".join(f"line {number}\n" for number in range(20_000)))
    (tmp_path / "many").mkdir()
    for number in range(MANY):
        (tmp_path / "many" / str(number)).write_text("needle\n")
    backend = CountedBackend.connect("box", config=sshd.config(), cwd=str(tmp_path))
    assert isinstance(backend, CountedBackend)
    async with backend, ToolRunner(coding_tools(backend)) as runner:
        counted = backend.counted
        for name, arguments, wanted in CALLS:
            before = counted.requests, counted.answers
            [message] = await runner.run([ToolCall(id="1", name=name, arguments=arguments)])
            assert message.is_error == ("missing" in str(arguments)), message.text
            made = counted.requests - before[0], counted.answers - before[1]
            assert made == (wanted, wanted), (name, arguments)
