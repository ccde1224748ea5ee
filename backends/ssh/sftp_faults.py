"""What an SFTP server refuses becomes the engine's Fault about a path, after a look around.

OpenSSH's server has one word for a missing file, a file in place of a folder and a loop of links,
so what it was is found out by looking.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence

from backends.engine.faults import Fault, fault_from_os_error
from backends.engine.place import MAX_LINKS
from backends.engine.suggest import MAX_CLOSEST, MAX_HELD, closest, name_order
from backends.remote.arguments import wire_path
from backends.ssh.in_order import in_order
from backends.ssh.sftp_session import SftpSession
from backends.ssh.sftp_status import Names, Status

__all__ = ["fault_about", "is_directory", "statuses"]

_LONGEST_NAME = 255
_MANY = 16
#: Names among which the closest are looked for.
_MOST_SCANNED = 20_000
_SAYS = {
    errno.ELOOP: "too many levels of symbolic links",
    errno.ENAMETOOLONG: "the name is too long for the target's file system",
}


async def fault_about(session: SftpSession, path: str, home: str, error: OSError) -> Fault:
    """Return the fault for an OSError, filled with what a look around tells.

    Args:
        session: Where to look.
        path: The path as the operation received it.
        home: What "~" stands for.
        error: What was raised.
    """
    given = wire_path(path)
    look = _Look(session, home.encode("utf-8", "surrogateescape"))
    if error.errno in _SAYS:
        return Fault("path", given, _SAYS[error.errno])
    if any(len(name) > _LONGEST_NAME for name in given.split(b"/")):
        return Fault("path", given, _SAYS[errno.ENAMETOOLONG])
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return await look.missing(given)
    if error.errno == errno.EISDIR:
        return await is_directory(session, given, look.absolute(given))
    if error.errno == errno.EIO:
        return await look.failure(given, error)
    return _fault(error.errno, given, error.strerror)


async def is_directory(session: SftpSession, given: bytes, at: bytes) -> Fault:
    """Return the fault for a folder where a file is wanted, with its first names.

    Args:
        session: Where to look.
        given: The path as the operation received it.
        at: The same, absolute.
    """
    try:
        names = await session.names(at)
    except OSError:
        return Fault("is_directory", given, [], None)
    shown = sorted(names, key=name_order)[:MAX_HELD]
    return Fault("is_directory", given, await _marked(session, at, names, shown), len(names))


async def statuses(session: SftpSession, paths: Sequence[bytes]) -> list[Status | OSError]:
    """Return the status of each path, through symlinks, or why there is none."""

    async def look(path: bytes) -> Status | OSError:
        try:
            return await session.stat(path)
        except OSError as error:
            return error

    return [found async for found in in_order(map(look, paths), _MANY)]


class _Look:
    def __init__(self, session: SftpSession, home: bytes) -> None:
        self._session = session
        self._home = home

    def absolute(self, given: bytes) -> bytes:
        """Return a path that an operation received, or the beginning of one, as an absolute one."""
        if given == b"~" or given.startswith(b"~/"):
            given = self._home.rstrip(b"/") + given[1:]
        return given or b"/"

    async def missing(self, given: bytes) -> Fault:
        """Say what the first part of a path is that is not there, or is no folder."""
        begin = [b"/"] if given.startswith(b"/") else []
        cuts = [at for at, byte in enumerate(given) if byte == ord("/") and at]
        folders = list(dict.fromkeys([*begin, *(given[:at].rstrip(b"/") for at in cuts)]))
        whole = given.rstrip(b"/")
        found = await statuses(self._session, [self.absolute(path) for path in [*folders, given]])
        nearest = None
        for path, status in zip(folders, found, strict=False):
            if isinstance(status, OSError):
                break
            if not stat.S_ISDIR(status.mode):
                says = "" if path == given else f"{_text(path)} is a file, not a folder"
                return Fault("not_directory", given, says)
            if path != whole:
                nearest = path
        last = found[-1]
        if not isinstance(last, OSError):
            return Fault("not_directory", given, "")
        for path, status in zip([*folders, given], found, strict=True):
            if isinstance(status, OSError):
                if await self._is_loop(self.absolute(path)):
                    return Fault("path", given, _SAYS[errno.ELOOP])
                break
        if nearest is None:
            return Fault("not_found", given, None, [])
        return await self._not_found(given, nearest)

    async def _not_found(self, given: bytes, nearest: bytes) -> Fault:
        below = given[len(nearest.rstrip(b"/")) :].lstrip(b"/")
        missing = below.partition(b"/")[0]
        folder = self.absolute(nearest)
        try:
            names = await self._session.names(folder)
        except OSError:
            return Fault("not_found", given, None, [])
        broken = []
        if missing in names:
            del names[missing]
            try:
                text = await self._session.readlink(_join(folder, missing))
                broken = [missing + b"@ -> " + text]
            except OSError:
                pass  # it may have appeared since
        known = list(names)[:_MOST_SCANNED]
        shown = closest(missing, known, MAX_CLOSEST - len(broken))
        marked = await _marked(self._session, folder, names, shown)
        return Fault("not_found", given, nearest, broken + marked)

    async def _is_loop(self, path: bytes) -> bool:
        try:
            for _ in range(MAX_LINKS):
                if not stat.S_ISLNK((await self._session.lstat(path)).mode):
                    return False
                path = _join(path.rpartition(b"/")[0], await self._session.readlink(path))
        except OSError:
            return False
        return True

    async def failure(self, given: bytes, error: OSError) -> Fault:
        """Say what may be behind a refusal for which the server has no word."""
        folder = self.absolute(given.rstrip(b"/").rpartition(b"/")[0])
        told = await self._session.free_bytes(folder)
        if told is not None and told[1]:
            return _fault(errno.EROFS, given)
        if told is not None and told[0] < 1 << 16:
            return _fault(errno.ENOSPC, given)
        return _fault(error.errno, given, error.strerror)


def _fault(number: int | None, given: bytes, says: str | None = None) -> Fault:
    error = OSError(number, says or os.strerror(number or 0))
    fault: Fault = fault_from_os_error(error, given)
    return fault


async def _marked(
    session: SftpSession, folder: bytes, names: Names, shown: list[bytes]
) -> list[bytes]:
    """Return names, with "/" after those of folders."""
    links = [name for name in shown if stat.S_ISLNK(names[name].mode)]
    found = await statuses(session, [_join(folder, name) for name in links])
    modes = {name: names[name].mode for name in shown}
    for name, status in zip(links, found, strict=True):
        modes[name] = 0 if isinstance(status, OSError) else status.mode
    return [name + b"/" if stat.S_ISDIR(modes[name]) else name for name in shown]


def _join(folder: bytes, name: bytes) -> bytes:
    return os.path.join(folder or b"/", name)


def _text(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")
