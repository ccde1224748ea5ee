"""The operations on files over SFTP that change nothing."""

from __future__ import annotations

import hashlib
import heapq
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
import asyncssh

from backends.engine import reading
from backends.engine.content import image_mime_type
from backends.engine.faults import Fault
from backends.engine.lines import scan_lines
from backends.engine.suggest import name_order
from backends.remote import convert
from backends.remote.arguments import MAX_WHOLE_READ, wire_path
from backends.ssh.in_order import in_order
from backends.ssh.sftp_core import SftpCore
from backends.ssh.sftp_faults import is_directory
from backends.ssh.sftp_file import SftpFile
from backends.ssh.sftp_session import SftpSession
from backends.ssh.sftp_status import Status
from operations import (
    DirectoryListing,
    FileVersion,
    LineWindow,
    Progress,
    VersionedContent,
)

__all__ = ["SftpFiles", "check_regular", "read_whole"]

T = TypeVar("T")

#: Content over this is scanned and hashed in a thread, so that the event loop goes on meanwhile.
_IN_THREAD = 1 << 20
#: How much longer than it says a file may be: one that grows is read to its end, not for ever.
_MOST_GROWTH = 256 << 20
_PROGRESS_S = 0.1
_MANY = 64
_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


class SftpFiles:
    """Read and list; what differs from an engine stands at the methods.

    Args:
        core: The sessions.
    """

    def __init__(self, core: SftpCore) -> None:
        self._core = core

    async def access(self, path: str) -> None:
        """See `ReadOperations`."""
        async with self._opened(path):
            pass

    async def read_file(self, path: str) -> bytes:
        """See `ReadOperations`."""
        async with self._opened(path) as (file, status):
            return await read_whole(file, wire_path(path), status.size)

    async def read_versioned(self, path: str) -> VersionedContent:
        """See `VersionedReadOperations`; SFTP tells no device and inode, so both are 0."""
        content = await self.read_file(path)
        digest = await _in_thread(partial(_sha256, content), len(content))
        return VersionedContent(
            content=content, version=FileVersion(device=0, inode=0, digest=digest)
        )

    async def read_lines(
        self,
        path: str,
        *,
        start: int,
        max_lines: int,
        max_bytes: int,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> LineWindow:
        """See `WindowReadOperations`; all of the file crosses, a few MiB of it at a time."""
        async with self._opened(path) as (file, status):
            size = status.size
            scan = partial(_scan, start=start, max_lines=max_lines, max_bytes=max_bytes)
            if (size or 0) <= _IN_THREAD:
                content = await read_whole(file, wire_path(path), size)
                return await _in_thread(lambda: scan([content], size=size), len(content))
            bounded = _bounded(file.chunks(size), wire_path(path), size or 0)
            chunks = _reported(bounded, size, on_progress)

            def pulled() -> Iterator[bytes]:
                while chunk := anyio.from_thread.run(partial(anext, chunks, b"")):
                    yield chunk

            async with aclosing(bounded), aclosing(chunks):
                return await anyio.to_thread.run_sync(lambda: scan(pulled(), size=size))

    async def detect_image_mime_type(self, path: str) -> str | None:
        """See `ImageDetectingReadOperations`."""
        async with self._opened(path) as (file, _):
            found: str | None = image_mime_type(await file.head(64))
            return found

    @asynccontextmanager
    async def _opened(self, path: str) -> AsyncIterator[tuple[SftpFile, Status]]:
        """Give a regular file that is open for reading, with its status."""
        at = await self._core.absolute(path)
        async with self._core.errors_about(path) as session:
            # To open a FIFO alone would hang the server.
            status = await session.stat(at)
            await check_regular(session, wire_path(path), at, status)
            file = await session.open(at, asyncssh.FXF_READ)
            try:
                yield file, status
            finally:
                file.forget()

    async def list_directory(self, path: str, *, limit: int) -> DirectoryListing:
        """See `LsOperations`."""
        at = await self._core.absolute(path)
        async with self._core.errors_about(path) as session:
            names = await session.names(at)
            first = heapq.nsmallest(limit, names, key=name_order)
            rows = in_order((_row(session, at, name, names[name]) for name in first), _MANY)
            found = [row async for row in rows]
        return convert.directory_listing(found, {"total": len(names)})

    async def exists(self, path: str) -> bool:
        """See `FindOperations`."""
        at = await self._core.absolute(path)
        async with self._core.errors_about(path) as session:
            try:
                await session.stat(at)
            except FileNotFoundError:
                return False
        return True

    async def is_directory(self, path: str) -> bool:
        """See `GrepOperations`."""
        at = await self._core.absolute(path)
        async with self._core.errors_about(path) as session:
            return stat.S_ISDIR((await session.stat(at)).mode)


async def check_regular(session: SftpSession, given: bytes, at: bytes, status: Status) -> None:
    """Raise a Fault unless a status is that of a regular file.

    Args:
        session: Where to look what a folder has.
        given: The path as the operation received it.
        at: The same, absolute.
        status: What is there.
    """
    if stat.S_ISDIR(status.mode):
        raise await is_directory(session, given, at)
    if not stat.S_ISREG(status.mode):
        reading.refuse_irregular(None, given, _Mode(status.mode))


class _Mode:
    """As much of a status as the engine looks at."""

    def __init__(self, st_mode: int) -> None:
        self.st_mode = st_mode


async def read_whole(
    file: SftpFile, given: bytes, size: int | None, limit: int = MAX_WHOLE_READ
) -> bytes:
    """Return all of a file.

    Args:
        file: The file.
        given: Its path as the operation received it.
        size: What the server told of its size.
        limit: Most bytes accepted.

    Raises:
        Fault: "too_large".
    """
    if size is not None and size > limit:
        raise Fault("too_large", given, size, limit)
    parts: list[bytes] = []
    done = 0
    async with aclosing(file.chunks(size)) as chunks:
        async for chunk in chunks:
            parts.append(chunk)
            done += len(chunk)
            if done > limit:
                raise Fault("too_large", given, done, limit)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _bounded(
    chunks: AsyncGenerator[bytes, None], given: bytes, size: int
) -> AsyncGenerator[bytes, None]:
    done = 0
    async with aclosing(chunks):
        async for chunk in chunks:
            done += len(chunk)
            if done > size + _MOST_GROWTH:
                raise Fault("path", given, f"it grows faster than it is read, past {done} bytes")
            yield chunk


async def _reported(
    chunks: AsyncGenerator[bytes, None],
    size: int | None,
    on_progress: Callable[[Progress], None] | None,
) -> AsyncGenerator[bytes, None]:
    done, next_at = 0, anyio.current_time() + _PROGRESS_S
    async for chunk in chunks:
        done += len(chunk)
        if on_progress is not None and anyio.current_time() >= next_at:
            next_at = anyio.current_time() + _PROGRESS_S
            on_progress(Progress(done=done, total=size))
        yield chunk


def _scan(
    chunks: Any, *, start: int, max_lines: int, max_bytes: int, size: int | None
) -> LineWindow:
    found = scan_lines(chunks, start, max_lines, max_bytes, size=size or None)
    return convert.line_window(found, found.pop("data"))


async def _in_thread(work: Callable[[], T], size: int) -> T:
    return await anyio.to_thread.run_sync(work) if size > _IN_THREAD else work()


def _sha256(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


async def _row(session: SftpSession, folder: bytes, name: bytes, told: Status) -> list[object]:
    """Return [name, kind, link target or None, broken], as the engine does."""
    at = folder.rstrip(b"/") + b"/" + name
    mode = told.mode
    try:
        if not mode:
            mode = (await session.lstat(at)).mode
        kind = _KINDS.get(stat.S_IFMT(mode), "other")
        if kind != "symlink":
            return [name, kind, None, False]
        target = await session.readlink(at)
    except OSError:
        return [name, "symlink" if stat.S_ISLNK(mode) else "other", None, False]
    try:
        await session.stat(at)
    except OSError as error:
        return [name, kind, target, isinstance(error, FileNotFoundError)]
    return [name, kind, target, False]
