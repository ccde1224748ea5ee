"""One SFTP session: requests that end as an OSError or a ConnectionLost, and never hang."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar, cast

import asyncssh
from asyncssh.packet import PacketDecodeError

from backends.ssh.faults import why_lost
from backends.ssh.sftp_file import SftpFile
from backends.ssh.sftp_status import Listing, Names, Status, TooMany, status_of
from operations import ConnectionLost

__all__ = ["SftpSession", "start_sftp"]

T = TypeVar("T")

#: Most bytes of one request, and the least that a server may ask us to keep to.
_BLOCK, _LEAST_BLOCK = 255 << 10, 4096
#: Most names of one folder.
_MOST_NAMES = 1_000_000
_MOST_TEXT = 200
_LAST_LOOK_S = 0.5
_LONGEST_PATH = 1 << 16
#: What a server's status says in the words of the system. OpenSSH's has only the first few: it
#: says "no such file" for a file in place of a folder too, and "failure" for most else.
_ERRNOS: tuple[tuple[type[asyncssh.SFTPError], int], ...] = (
    (asyncssh.SFTPNoSuchFile, errno.ENOENT),
    (asyncssh.SFTPNoSuchPath, errno.ENOENT),
    (asyncssh.SFTPPermissionDenied, errno.EACCES),
    (asyncssh.SFTPWriteProtect, errno.EROFS),
    (asyncssh.SFTPOpUnsupported, errno.ENOTSUP),
    (asyncssh.SFTPFileAlreadyExists, errno.EEXIST),
    (asyncssh.SFTPNoSpaceOnFilesystem, errno.ENOSPC),
    (asyncssh.SFTPQuotaExceeded, errno.EDQUOT),
    (asyncssh.SFTPNotADirectory, errno.ENOTDIR),
    (asyncssh.SFTPFileIsADirectory, errno.EISDIR),
    (asyncssh.SFTPLinkLoop, errno.ELOOP),
)


async def start_sftp(connection: asyncssh.SSHClientConnection) -> asyncssh.SFTPClient:
    """Start the server's SFTP on a connection.

    Raises:
        asyncssh.Error: There is none.
    """
    # A task of its own: an opening that is cancelled midway would stay open at the server's.
    opening = asyncio.ensure_future(connection.start_sftp_client(path_encoding=None))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_throw_away)
        raise


def _throw_away(opening: asyncio.Future[asyncssh.SFTPClient]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().exit()


class SftpSession:
    """Requests to an SFTP server.

    Every method raises OSError for what the server refuses, and ConnectionLost once the session
    is over. A request that was sent is never taken back: who is cancelled only stops waiting.

    Args:
        client: The session.
        target: The target as the user named it, for errors.
        identity: Who is logged in where; nothing that a server tells says which machine it is.
        silence_s: Seconds without any answer, while one is due, after which it counts as lost.
        abort: Ends the connection.
        on_closed: Called when the server has closed the session.
        why: Returns what has ended the connection; None while there is one.
    """

    def __init__(
        self,
        client: asyncssh.SFTPClient,
        *,
        target: str,
        identity: str,
        silence_s: float,
        abort: Callable[[], None],
        on_closed: Callable[[], None],
        why: Callable[[], Exception | None],
    ) -> None:
        self._client = client
        self._target = target
        self.identity = identity
        self._silence_s = silence_s
        self._abort = abort
        self._on_closed = on_closed
        self._why = why
        self._loop = asyncio.get_running_loop()
        self._heard_at = self._loop.time()
        self._tasks: set[asyncio.Future[Any]] = set()
        self.lost: str | None = None
        self.block = max(_LEAST_BLOCK, min(_BLOCK, client.limits.max_read_len))
        self._write_block = max(_LEAST_BLOCK, min(_BLOCK, client.limits.max_write_len))
        self._keep(self._watch())

    async def _watch(self) -> None:
        await self._client.wait_closed()
        error = self._why()
        ended = "its SFTP server ended" if error is None else why_lost(error)
        self.lost = self.lost or ended
        self._on_closed()

    def lose(self, reason: str) -> ConnectionLost:
        """Give the session up, for it makes no sense any more; return the error that says so."""
        if self.lost is None:
            self.lost = reason
            self._abort()
        return ConnectionLost(self._target, self.lost)

    def garbled(self, says: str) -> ConnectionLost:
        """Give the session up for an answer that no honest server gives."""
        return self.lose(f"the far end broke the protocol: {says}")

    def close(self) -> None:
        """End the session."""
        self.lost = self.lost or "the backend was closed"
        self._client.exit()

    def _keep(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Run something to its end, whoever waits for it."""
        task: asyncio.Future[T] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        self._heard_at = self._loop.time()
        if not task.cancelled():
            task.exception()  # nobody may be left who asks

    async def ask(self, work: Coroutine[Any, Any, T]) -> T:
        """Make a request and wait for its answer."""
        if self.lost is not None:
            work.close()
            raise ConnectionLost(self._target, self.lost)
        began = self._loop.time()
        request = self._keep(work)
        while not request.done():
            wait_s = max(began, self._heard_at) + self._silence_s - self._loop.time()
            # Who was stopped for long has not read yet what came meanwhile.
            await asyncio.wait([request], timeout=max(wait_s, _LAST_LOOK_S))
            if wait_s <= 0 and not request.done() and self._is_silent(began):
                raise self.lose(f"nothing heard from its SFTP for {self._silence_s:g} seconds")
        try:
            return request.result()
        except asyncssh.SFTPError as error:
            raise await self._refused(error) from error
        except asyncio.CancelledError:
            raise ConnectionLost(self._target, self.lost or "the session was ended") from None
        except PacketDecodeError as error:
            raise self.garbled(f"{error}") from error
        except TooMany:
            raise
        except (asyncssh.Error, OSError) as error:
            raise self.lose(why_lost(error)) from error

    def _is_silent(self, began: float) -> bool:
        return max(began, self._heard_at) + self._silence_s <= self._loop.time()

    async def _refused(self, error: asyncssh.SFTPError) -> Exception:
        if isinstance(error, asyncssh.SFTPNoConnection | asyncssh.SFTPConnectionLost):
            return self.lose(why_lost(error))
        said = ascii(error.reason[:_MOST_TEXT])
        if isinstance(error, asyncssh.SFTPBadMessage):
            # The server says so of names that it cannot have, asyncssh of answers that make no
            # sense, after which it is deaf.
            with suppress(asyncssh.SFTPError, TimeoutError):
                await asyncio.wait_for(self._client.realpath(b"/"), self._silence_s)
                return OSError(errno.EINVAL, f"the SFTP server does not understand it: {said}")
            return self.garbled(said)
        for kind, number in _ERRNOS:
            if isinstance(error, kind):
                return OSError(number, os.strerror(number))
        return OSError(errno.EIO, f"the SFTP server refuses it and says no more than {said}")

    # Names -------------------------------------------------------------------------------

    async def stat(self, path: bytes) -> Status:
        """Return the status of what is at a path, through symlinks."""
        return status_of(await self.ask(self._client.stat(path)))

    async def lstat(self, path: bytes) -> Status:
        """Return the status of a path itself."""
        return status_of(await self.ask(self._client.lstat(path)))

    async def readlink(self, path: bytes) -> bytes:
        """Return the text of a symlink."""
        return self._path(await self.ask(self._client.readlink(path)))

    async def realpath(self, path: bytes) -> bytes:
        """Return a path without symlinks; "." is where the session begins."""
        real = self._path(await self.ask(self._client.realpath(path)))
        if not real.startswith(b"/"):
            raise self.garbled("a path that does not begin at the root")
        return real

    def _path(self, told: Any) -> bytes:
        if not isinstance(told, bytes) or not told or b"\0" in told or len(told) > _LONGEST_PATH:
            raise self.garbled("something that is no path")
        return told

    async def names(self, path: bytes, most: int = _MOST_NAMES) -> Names:
        """Return the names in a folder, without "." and "..".

        Raises:
            OSError: EFBIG for more names than `most`; otherwise what the server refused.
        """
        listing = Listing(self._client, path, most, self._heard)
        try:
            found = await self.ask(listing.run())
        except ValueError as error:
            raise self.garbled(f"{error}") from None
        finally:
            listing.wanted = False
        if not found:
            # OpenSSH leaves out what it cannot look at: all, in a folder that may not be entered.
            await self.stat(path.rstrip(b"/") + b"/.")
        return found

    def _heard(self) -> None:
        self._heard_at = self._loop.time()

    async def mkdir(self, path: bytes) -> None:
        """Make a folder, 0777 less the server's umask."""
        await self.ask(self._client.mkdir(path))

    async def remove(self, path: bytes) -> None:
        """Remove a file's name."""
        await self.ask(self._client.remove(path))

    async def replace(self, old: bytes, new: bytes) -> None:
        """Rename, over what is there; ENOTSUP where the server cannot."""
        await self.ask(self._client.posix_rename(old, new))

    async def rename(self, old: bytes, new: bytes) -> None:
        """Rename to a name that is free."""
        await self.ask(self._client.rename(old, new))

    async def free_bytes(self, path: bytes) -> tuple[int, bool] | None:
        """Return (bytes that fit into a file system, whether it is read-only); None if not told."""
        try:
            told = await self.ask(self._client.statvfs(path))
        except OSError:
            return None
        return told.bavail * told.frsize, bool(told.flags & 1)

    # Contents ----------------------------------------------------------------------------

    async def open(self, path: bytes, flags: int, mode: int | None = None) -> SftpFile:
        """Open a file by asyncssh's flags; a new one gets `mode`, None for 0666 less the umask."""
        attrs = asyncssh.SFTPAttrs() if mode is None else asyncssh.SFTPAttrs(permissions=mode)
        opening = asyncio.ensure_future(self.ask(self._open(path, flags, attrs)))
        try:
            return SftpFile(self, await asyncio.shield(opening), self._write_block)
        except asyncio.CancelledError:
            opening.add_done_callback(self._close_unwanted)
            raise

    async def _open(
        self, path: bytes, flags: int, attrs: asyncssh.SFTPAttrs
    ) -> asyncssh.SFTPClientFile:
        # Blocks of our own: asyncssh's ask for one byte after the end, a trip of its own.
        return await self._client.open(path, flags, attrs, encoding=None, block_size=0)

    def _close_unwanted(self, opening: asyncio.Future[asyncssh.SFTPClientFile]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            self.forget(opening.result())

    async def short_file(self, path: bytes, size: int | None, most: int) -> bytes | None:
        """Return all of a short file, in as few trips as may be; None for a longer one.

        Args:
            path: The file.
            size: What was told of its size.
            most: Bytes up to which it counts as short.
        """
        try:
            return await self.ask(self._short_file(path, size, most))
        except ValueError as error:
            raise self.garbled(f"{error}") from None

    async def _short_file(self, path: bytes, size: int | None, most: int) -> bytes | None:
        file = await self._open(path, asyncssh.FXF_READ, asyncssh.SFTPAttrs())
        data = b""
        try:
            while len(data) <= most:
                wanted = min(self.block, most + 1 - len(data))
                piece = cast("bytes", await file.read(wanted, len(data)))
                if len(piece) > wanted:
                    raise ValueError("more bytes than were asked for")
                data += piece
                if not piece or len(data) == size:
                    return data
        finally:
            self.forget(file)
        return None

    def forget(self, file: asyncssh.SFTPClientFile) -> None:
        """Close a file without waiting for it."""
        if self.lost is None:
            self._keep(file.close())
