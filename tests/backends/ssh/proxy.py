"""A wire that can be slow, narrow, cut or silent: a TCP proxy under the test's control."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Self

_PIECE = 1 << 16


class Wire:
    """A proxy on a loopback port.

    Args:
        port: Where it leads.

    Attributes:
        delay_s: How long each piece takes, in either direction.
        bytes_per_s: How much passes in a second, each way; None for all.
        swallows: True while nothing passes and nobody is told, as when a host vanishes.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self.delay_s = 0.0
        self.bytes_per_s: float | None = None
        self.swallows = False
        self.accepted = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._count_at: int | None = None
        self._sent = 0
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._server.wait_closed(), 5)

    def cut(self) -> None:
        """End every connection at once; further ones are let through."""
        for writer in list(self._writers):
            writer.transport.abort()

    def cut_after(self, count: int) -> None:
        """End every connection once that many further bytes have been sent by us."""
        self._count_at = self._sent + count

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        for source, sink, ours in ((reader, far_writer, True), (far_reader, writer, False)):
            task = asyncio.create_task(self._pump(source, sink, ours=ours))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, ours: bool
    ) -> None:
        # What waits its time does not hold up what comes after it.
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        passing = asyncio.create_task(self._pass(queue, sink))
        try:
            with contextlib.suppress(OSError):
                while data := await source.read(_PIECE):
                    self._sent += len(data) if ours else 0
                    due = asyncio.get_running_loop().time() + self.delay_s
                    queue.put_nowait((due, data))
                    if self._count_at is not None and self._sent >= self._count_at:
                        self._count_at = None
                        self.cut()
            queue.put_nowait((0.0, b""))
            await passing
        finally:
            passing.cancel()
            sink.transport.abort()
            self._writers.discard(sink)

    async def _pass(
        self, queue: asyncio.Queue[tuple[float, bytes]], sink: asyncio.StreamWriter
    ) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while True:
                due, data = await queue.get()
                if not data:
                    return
                await asyncio.sleep(max(0.0, due - loop.time()))
                if self.bytes_per_s:
                    await asyncio.sleep(len(data) / self.bytes_per_s)
                if not self.swallows:
                    sink.write(data)
                    await sink.drain()
