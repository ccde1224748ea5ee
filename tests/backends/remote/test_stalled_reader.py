"""One reader that takes nothing does not hold up the others: a real engine, counted in bytes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from backends.engine import frames
from backends.remote import bootstrap
from backends.remote.arguments import command_request
from backends.remote.pipe import open_pipe
from backends.remote.session import DataReceived, Finished, HelloReceived, NearSession

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from backends.remote.channel import Channel
    from backends.remote.session import Event

pytestmark = pytest.mark.anyio

OTHERS = 50
SIZE = 300_000


class Wire:
    """The protocol with a real engine, without anything that takes output by itself."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.session = NearSession()
        self.greeted = False
        self.received: Counter[int] = Counter()
        self.ended: set[int] = set()

    def ask(self, operation: str, arguments: dict[str, Any], body: bytes | None = None) -> int:
        return self.session.request(operation, arguments, body)

    async def until(self, condition: Callable[[], bool], stalled: int) -> None:
        """Exchange bytes until a condition holds; take the output of all but one request."""
        with anyio.fail_after(60):
            while True:
                while data := self.session.data_to_send(1 << 18):
                    await self._channel.send(data)
                if condition():
                    return
                data = await self._channel.receive()
                assert data, await self._channel.exit_report()
                for event in self.session.receive(data):
                    self._take(event, stalled)

    def _take(self, event: Event, stalled: int) -> None:
        if isinstance(event, HelloReceived):
            self.greeted = True
        elif isinstance(event, DataReceived):
            self.received[event.request_id] += len(event.data)
            if event.request_id != stalled:
                self.session.consume(event.request_id, len(event.data))
        elif isinstance(event, Finished):
            self.ended.add(event.request_id)


async def test_fifty_are_served_while_one_takes_nothing(tmp_path: Path) -> None:
    """It gets what it was credited and no byte more, until it takes some."""
    path = tmp_path / "file"
    await anyio.Path(path).write_bytes(b"x" * SIZE)
    channel = await open_pipe(bootstrap.shell_argv())
    try:
        wire = Wire(channel)
        await channel.send(bootstrap.payload({"lease_s": None}))
        await wire.until(lambda: wire.greeted, 0)
        args, body = command_request("yes", "/", {}, None)
        stalled = wire.ask("exec", args, body)
        await wire.until(lambda: wire.received[stalled] == frames.FIRST_CREDIT, stalled)
        reads = {"path": str(path).encode(), "limit": SIZE, "digest": False}
        # As many again whose command runs beside the one that is stuck.
        args, body = command_request("echo here", "/", {}, None)
        others = [wire.ask("read_file", reads) for _ in range(OTHERS)]
        others += [wire.ask("exec", args, body) for _ in range(OTHERS)]
        await wire.until(lambda: wire.ended >= set(others), stalled)
        assert [wire.received[one] for one in others] == [SIZE] * OTHERS + [5] * OTHERS
        assert wire.received[stalled] == frames.FIRST_CREDIT
        assert stalled not in wire.ended
        wire.session.consume(stalled, frames.FIRST_CREDIT)
        await wire.until(lambda: wire.received[stalled] == 2 * frames.FIRST_CREDIT, stalled)
        wire.session.cancel(stalled)
        await wire.until(lambda: stalled in wire.ended, stalled)
    finally:
        await channel.close()
