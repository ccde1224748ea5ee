"""The far end of a folder's way: a tar as a program on the target, over a channel of its own."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol, runtime_checkable

import anyio

from backends.remote.channel import Channel, ChannelClosed
from backends.workspace.archive import NotAnArchive
from backends.workspace.complaints import FULL, error_about, sockets
from backends.workspace.scripts import PUT, TAKE, argv_of
from operations import ConnectionLost, OperationUnsupported

__all__ = ["Feed", "Pieces", "Prepare", "ProgramEnd", "Programs"]

#: A transfer during which nothing moves for so long counts as lost, and so does one that brings
#: next to nothing meanwhile: what trickles would never end.
_IDLE_S = 60.0
_LEAST_BYTES = 16 << 10
_CLOSE_S = 12.0
_REPORT_S = 5.0
_MAX_SAID = 8192
_MAX_NOISE = 1 << 16
_LACKS = {1: "there is no tar", 2: "neither dd nor head takes an exact number of bytes"}

#: Returns the next piece of what `Packer` writes; None at its end.
Pieces = Callable[[], Awaitable[bytes | None]]
#: Takes the next bytes of a tar; returns None until its end, then the bytes behind it.
Feed = Callable[[bytes], Awaitable[bytes | None]]
Prepare = Callable[[], Awaitable[None]]


@runtime_checkable
class Programs(Protocol):
    """A place that runs programs."""

    async def open_program(self, argv: Sequence[str]) -> Channel:
        """See `RemoteBackend`."""
        ...


class ProgramEnd:
    """A folder on a target, reached by a program.

    Args:
        backend: The place.
        folder: The folder, for errors.
        path: Its absolute path.
    """

    def __init__(self, backend: Programs, folder: str, path: bytes) -> None:
        self._backend = backend
        self._folder = folder
        self._path = path

    async def put(self, prepare: Prepare, pieces: Pieces) -> None:
        """Unpack what was packed there.

        Args:
            prepare: Called once it is sure that there is a tar program.
            pieces: See `Pieces`.

        Raises:
            OperationUnsupported: The target has no tar.
            StorageFull: The target has no room.
            PathError: Something cannot be made there.
            ConnectionLost: The connection ended meanwhile.
        """
        async with self._opened(PUT) as talk:
            await prepare()
            await talk.send(b"go\n")
            status, said = await talk.exchange(pieces)
        if status != 0:
            raise error_about(self._folder, status, said)

    async def take(self, prepare: Prepare, feed: Feed) -> list[str]:
        """Pack the folder.

        Args:
            prepare: As for `put`.
            feed: See `Feed`.

        Returns:
            A line for each name that the tar left out.

        Raises:
            OperationUnsupported: The target has no tar.
            PathDenied: Something there may not be read.
            FileChanged: Something changed while it was read.
            ConnectionLost: The connection ended meanwhile.
        """
        async with self._opened(TAKE) as talk:
            await prepare()
            await talk.send(b"go\n")
            status, said = await talk.drain(feed)
        if status != 0:
            raise error_about(self._folder, status, said)
        return sockets(said)

    @asynccontextmanager
    async def _opened(self, script: str) -> AsyncIterator[_Talk]:
        word = secrets.token_hex(10)
        channel = await self._backend.open_program(argv_of(script, word, self._path))
        try:
            talk = _Talk(channel, word, self._folder)
            await talk.begin()
            yield talk
        except BaseException:
            # TLS closes no half: the script would wait for us as long as we for it.
            with contextlib.suppress(ChannelClosed):
                channel.send_nowait(b"stop\n")
            raise
        finally:
            with anyio.move_on_after(_CLOSE_S, shield=True):
                await channel.close()


class _Talk:
    """What is said over the channel, between the script's marks."""

    def __init__(self, channel: Channel, word: str, folder: str) -> None:
        self._channel = channel
        self._marks = re.compile(b"\n%s ([NRTX]) ([0-9]{1,3})\n" % word.encode())
        self._folder = folder
        self._early = b""
        self._patience_s = _IDLE_S
        self._came = 0

    async def begin(self) -> None:
        """Wait until the script is ready."""
        await self.send(b"ready\n")
        seen = b""
        while (found := self._marks.search(seen)) is None:
            data = await self._receive()
            if not data:
                raise await self._lost()
            seen += data
            if len(seen) > _MAX_NOISE:
                raise ConnectionLost(self._folder, "the target floods the channel")
        if found[1] != b"R":
            reason = _LACKS.get(int(found[2]), "the target lacks what it takes")
            raise OperationUnsupported("copying a folder", reason)
        self._early = seen[found.end() :]

    async def send(self, data: bytes) -> None:
        """Send a short line."""
        try:
            await self._channel.send(data)
        except ChannelClosed:
            raise await self._lost() from None

    # Towards the target -------------------------------------------------------------------

    async def exchange(self, pieces: Pieces) -> tuple[int, bytes]:
        """Send pieces while listening; return the tar's exit status and what it printed."""
        failure: Exception | None = None
        said = bytearray(self._early)
        found = None

        async def send_all() -> None:
            nonlocal failure
            try:
                while (piece := await pieces()) is not None:
                    await self._channel.send(b"%d\n" % len(piece))
                    if piece:
                        await self._channel.send(piece)
                    watch.deadline = anyio.current_time() + _IDLE_S
                await self._channel.send(b"0\n")
            except ChannelClosed:
                pass  # how the program ended says more
            except Exception as error:  # raised again below, out of the group
                failure = error
                watch.cancel()

        async with anyio.create_task_group() as tasks:
            watch = tasks.cancel_scope
            watch.deadline = anyio.current_time() + _IDLE_S
            tasks.start_soon(send_all)
            # A tar that has met a full disk goes on to the end, in vain.
            while not (found := self._marks.search(said)) and not any(w in said for w in FULL):
                data = await self._heard()
                if not data:
                    break
                watch.deadline = anyio.current_time() + _IDLE_S
                said += data
                del said[_MAX_SAID:-_MAX_SAID]
            watch.cancel()
        if failure is not None:
            raise failure
        if found is not None:
            return int(found[2]), bytes(said[: found.start()])
        if any(words in said for words in FULL):
            return 2, bytes(said)
        raise await self._lost()

    async def _heard(self) -> bytes:
        with contextlib.suppress(ChannelClosed):
            return await self._channel.receive()
        return b""

    # From the target ----------------------------------------------------------------------

    async def drain(self, feed: Feed) -> tuple[int, bytes]:
        """Hand on what comes; return the tar's exit status and what it complained about."""
        broken: NotAnArchive | None = None
        rest, tail, data = None, b"", self._early
        while rest is None and broken is None:
            tail = (tail + data)[-_MAX_SAID:]
            try:
                rest = await feed(data)
            except NotAnArchive as error:
                broken = error  # or the tar has died, which what comes next tells
            if rest is None and broken is None:
                data = await self._receive()
                if not data:
                    break
        status, said = await self._trailer(tail if rest is None else rest, broken)
        if status == 0 and rest is None:
            raise broken or NotAnArchive("the target's tar ends midway")
        return status, said

    async def _trailer(self, seen: bytes, broken: NotAnArchive | None) -> tuple[int, bytes]:
        """Return what the script says behind the tar."""
        padding = 0
        marks = list(self._marks.finditer(seen))
        while not any(mark[1] == b"X" for mark in marks):
            data = await self._receive()
            if not data:
                break
            padding += len(data)
            seen = (seen + data).lstrip(b"\0")
            if padding > _MAX_NOISE:
                raise broken or NotAnArchive("the target's tar goes on behind its end")
            marks = list(self._marks.finditer(seen))
        if [mark[1] for mark in marks[-2:]] != [b"T", b"X"]:
            raise broken or await self._lost()
        said, _, status = seen[marks[-2].end() : marks[-1].start()].rpartition(b"\n")
        return (int(status) if status.isdigit() and len(status) < 4 else 1), said

    async def _receive(self) -> bytes:
        began = anyio.current_time()
        try:
            with anyio.fail_after(self._patience_s):
                data = await self._channel.receive()
        except ChannelClosed:
            raise await self._lost() from None
        except TimeoutError:
            raise ConnectionLost(self._folder, self._silence()) from None
        self._came += len(data)
        # Only what we wait counts: our own disk may be slow.
        self._patience_s -= anyio.current_time() - began
        if self._came >= _LEAST_BYTES:
            self._came, self._patience_s = 0, _IDLE_S
        return data

    def _silence(self) -> str:
        heard = f"only {self._came} bytes were" if self._came else "nothing was"
        return f"{heard} heard for {_IDLE_S:g} seconds"

    async def _lost(self) -> ConnectionLost:
        with anyio.move_on_after(_REPORT_S):
            report = await self._channel.exit_report()
            return ConnectionLost(self._folder, report.replace("the program", "its tar", 1))
        return ConnectionLost(self._folder, self._silence())
