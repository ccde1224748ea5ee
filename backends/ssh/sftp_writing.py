"""The operations over SFTP that write: whole files, all or nothing, and folders."""

from __future__ import annotations

import errno
import hashlib
import os
import posixpath
import secrets
import stat
from contextlib import suppress

import anyio
import anyio.to_thread
import asyncssh

from backends.engine.faults import Fault
from backends.engine.place import MAX_LINKS
from backends.remote.arguments import wire_path
from backends.remote.shell_turns import Turns
from backends.ssh.sftp_core import SftpCore
from backends.ssh.sftp_faults import is_directory, statuses
from backends.ssh.sftp_file import SftpFile
from backends.ssh.sftp_files import check_regular, read_whole
from backends.ssh.sftp_session import SftpSession
from backends.ssh.sftp_status import Status
from operations import ConnectionLost, FileVersion, OperationUnsupported, WriteResult

__all__ = ["SftpWriting"]

_CLEAN_S = 5.0
#: Names among which the file is looked up for its hard links.
_MOST_NAMES = 500
_NEW = asyncssh.FXF_WRITE | asyncssh.FXF_CREAT | asyncssh.FXF_EXCL


class SftpWriting:
    """Write files and make folders.

    Extended attributes and access control lists are not kept; nor are hard links where the server
    does not list their number, or the folder has over 500 names. A server that cannot rename over
    a file (posix-rename@openssh.com) has it written in place. The lock of `expected` is one of
    this backend: a writer that is not ours is seen up to the look just before the rename.
    `durable` syncs the file, but SFTP cannot sync its name. A temporary file that a loss has left
    is removed with the next session.

    Args:
        core: The sessions.
    """

    def __init__(self, core: SftpCore) -> None:
        self._core = core
        self._turns = Turns()

    async def replace_file(
        self,
        path: str,
        content: bytes,
        *,
        make_parents: bool = False,
        expected: FileVersion | None = None,
        durable: bool = False,
    ) -> WriteResult:
        """See `ReplaceOperations`; a cancelled call waits up to 5 s until the file is settled."""
        at = await self._core.absolute(path)
        given = wire_path(path)

        async def work() -> WriteResult:
            turn = self._turns.alone() if expected else self._turns.together()
            async with turn, self._core.errors_about(path) as session:
                if at.endswith(b"/"):
                    raise await is_directory(session, given, at)
                digest = None if expected is None else expected.digest
                replacement = _Replacement(session, self._core.left, given, digest)
                await replacement.find(at)
                return await replacement.run(content, make_parents, durable=durable)

        return await self._core.settled(work)

    async def make_directory(self, path: str) -> None:
        """See `WriteOperations`."""
        at = await self._core.absolute(path)

        async def work() -> None:
            async with self._core.errors_about(path) as session:
                await _make_folders(session, at)

        await self._core.settled(work)


class _Replacement:
    """One file about to be replaced.

    Args:
        session: Where.
        left: Gets the temporary file's path if it cannot be removed.
        given: The path as the operation received it.
        digest: What the file must still hold; None for whatever it holds.
    """

    def __init__(
        self, session: SftpSession, left: set[bytes], given: bytes, digest: bytes | None
    ) -> None:
        self._session = session
        self._left = left
        self._given = given
        self._digest = digest
        self._at = b""
        self._first: Status | None = None

    async def find(self, at: bytes) -> None:
        """Follow the links that the path ends in, by hand: a dangling one gets its target."""
        for _ in range(MAX_LINKS):
            try:
                self._first = await self._session.lstat(at)
            except FileNotFoundError:
                self._first = None
            if self._first is None or not stat.S_ISLNK(self._first.mode):
                break
            # The kernel there may refuse links that others have put into a shared folder.
            with suppress(FileNotFoundError):
                await self._session.stat(at)
            try:
                text = await self._session.readlink(at)
            except OSError as error:
                if error.errno in (errno.EINVAL, errno.ENOENT):  # it is no link any more
                    continue
                raise
            at = posixpath.join(posixpath.dirname(at), text)
        else:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if self._first is not None:
            await check_regular(self._session, self._given, at, self._first)
        folder, name = posixpath.split(at)
        if name in (b"", b".", b".."):
            raise await is_directory(self._session, self._given, at)
        # Links above that are changed meanwhile must not lead the rename elsewhere.
        with suppress(OSError):
            folder = await self._session.realpath(folder)
        self._at = posixpath.join(folder, name)

    async def run(self, content: bytes, make_parents: bool, *, durable: bool) -> WriteResult:  # noqa: FBT001
        """Write the content beside the file, then put it in place."""
        if self._first is None and self._digest is not None:
            raise Fault("changed", self._given)
        if self._first is not None:
            # A rename would not ask whether the file may be written.
            (await self._session.open(self._at, asyncssh.FXF_WRITE)).forget()
            if await self._has_other_names():
                return await self._overwrite(content, "hard_links", durable=durable)
        folder = posixpath.dirname(self._at)
        temporary = posixpath.join(folder, b".remotehands-" + secrets.token_hex(8).encode())
        # What replaces a private file must be private from its first byte on.
        mode = None if self._first is None else 0o600
        # Noted before it may be there: a loss can come between.
        self._left.add(temporary)
        try:
            try:
                file = await self._create(temporary, mode, folder, make_parents=make_parents)
            except OSError as error:
                self._left.discard(temporary)
                if self._first is None or error.errno == errno.ENOSPC:
                    raise
                return await self._overwrite(content, "folder_not_writable", durable=durable)
            try:
                return await self._fill(file, temporary, content, durable=durable)
            finally:
                file.forget()
        finally:
            if temporary in self._left:
                await self._remove(temporary)

    async def _has_other_names(self) -> bool:
        """Look for the number of links where alone it is told, in the folder's listing."""
        folder, name = posixpath.split(self._at)
        try:
            told = (await self._session.names(folder, _MOST_NAMES)).get(name)
        except OSError:  # it may not be listed, or has too many names
            return False
        return told is not None and (told.links or 1) > 1

    async def _create(
        self, temporary: bytes, mode: int | None, folder: bytes, *, make_parents: bool
    ) -> SftpFile:
        try:
            return await self._session.open(temporary, _NEW, mode)
        except FileNotFoundError:
            if not make_parents or self._first is not None:
                raise
        await _make_folders(self._session, folder)
        return await self._session.open(temporary, _NEW, mode)

    async def _fill(
        self, file: SftpFile, temporary: bytes, content: bytes, *, durable: bool
    ) -> WriteResult:
        await self._write(file, content)
        if not await self._keep_attributes(file):
            return await self._overwrite(content, "owner", durable=durable)
        if durable:
            await _sync(file)
        await file.close()
        await self._check_content()
        return await self._put_in_place(temporary, content, durable=durable)

    async def _write(self, file: SftpFile, content: bytes | memoryview, offset: int = 0) -> None:
        try:
            await file.write(content, offset)
        except OSError as error:
            # Asked while what was written still takes the room.
            told = await self._session.free_bytes(posixpath.dirname(self._at))
            if error.errno == errno.EIO and told is not None and told[0] < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
            raise

    async def _keep_attributes(self, file: SftpFile) -> bool:
        """Give the new file the old one's mode and owner; return whether it has them."""
        if self._first is None:
            return True
        mine = await file.status()
        wanted = (self._first.uid, self._first.gid)
        if None not in wanted and wanted != (mine.uid, mine.gid):
            try:
                await file.set_owner(*wanted)  # type: ignore[arg-type]
            except OSError:
                return False
        await file.set_mode(stat.S_IMODE(self._first.mode))
        return True

    async def _check_content(self) -> None:
        if self._digest is None:
            return
        try:
            status = await self._session.lstat(self._at)
        except FileNotFoundError:
            raise Fault("changed", self._given) from None
        if not stat.S_ISREG(status.mode):
            raise Fault("changed", self._given)
        file = await self._session.open(self._at, asyncssh.FXF_READ)
        try:
            content = await read_whole(file, self._given, status.size)
        finally:
            file.forget()
        digest = await anyio.to_thread.run_sync(lambda: hashlib.sha256(content).digest())
        if digest != self._digest:
            raise Fault("changed", self._given)

    async def _put_in_place(
        self, temporary: bytes, content: bytes, *, durable: bool
    ) -> WriteResult:
        created = self._first is None
        try:
            await self._session.replace(temporary, self._at)
        except OSError as error:
            if error.errno == errno.ENOTSUP:
                return await self._swap(temporary, content, durable=durable)
            if created:
                raise
            reason = "folder_not_writable" if error.errno == errno.EACCES else "mount_point"
            return await self._overwrite(content, reason, durable=durable)
        self._left.discard(temporary)
        return WriteResult(created=created)

    async def _swap(self, temporary: bytes, content: bytes, *, durable: bool) -> WriteResult:
        """Do without a rename that replaces: one to a free name, or write in place."""
        if self._first is not None:
            return await self._overwrite(content, None, durable=durable)
        await self._session.rename(temporary, self._at)
        self._left.discard(temporary)
        return WriteResult(created=True)

    async def _overwrite(self, content: bytes, reason: str | None, *, durable: bool) -> WriteResult:
        """Write into the file itself, after room for what it grows by has been taken."""
        assert self._first is not None
        await self._check_content()
        file = await self._session.open(self._at, asyncssh.FXF_WRITE)
        try:
            old = (await file.status()).size or 0
            if len(content) > old:
                try:
                    await self._write(file, memoryview(content)[old:], old)
                except OSError:
                    await file.set_size(old)
                    raise
            await file.write(memoryview(content)[:old])
            if len(content) < old:
                await file.set_size(len(content))
            if durable:
                await _sync(file)
            await file.close()
        finally:
            file.forget()
        return WriteResult(created=False, atomic=False, reason=reason)

    async def _remove(self, temporary: bytes) -> None:
        with anyio.move_on_after(_CLEAN_S), suppress(ConnectionLost):
            with suppress(OSError):
                await self._session.remove(temporary)
            self._left.discard(temporary)


async def _sync(file: SftpFile) -> None:
    try:
        await file.sync()
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        reason = "this SFTP server has no fsync@openssh.com, so nothing says what is on its disk"
        raise OperationUnsupported("a durable write", reason) from None


async def _make_folders(session: SftpSession, at: bytes) -> None:
    """Make the folder at an absolute path and those above it."""
    at = at.rstrip(b"/") or b"/"
    cuts = [index for index, byte in enumerate(at) if byte == ord("/") and index] + [len(at)]
    folders = [at[:cut] for cut in cuts]
    found = await statuses(session, folders)
    for folder, status in zip(folders, found, strict=True):
        if not isinstance(status, OSError):
            if not stat.S_ISDIR(status.mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            continue
        if not isinstance(status, FileNotFoundError):
            raise status
        try:
            await session.mkdir(folder)
        except OSError as error:
            if error.errno not in (errno.EIO, errno.EEXIST):
                raise
            # Somebody else made it, or it is a broken symlink, or there is no room.
            try:
                await session.lstat(folder)
            except FileNotFoundError:
                raise error from None
            if not stat.S_ISDIR((await session.stat(folder)).mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
