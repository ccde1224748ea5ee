"""The tree below a folder as the engine's walk asks for it, listed over SFTP ahead of the walk."""

from __future__ import annotations

import asyncio
import errno
import heapq
import os
import posixpath
import stat
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Self

import anyio.from_thread
import asyncssh

from backends.engine.faults import Fault
from backends.engine.ignore import MAX_BYTES, IgnoreRules, rules_above
from backends.engine.place import MAX_PATH_BYTES
from backends.engine.walk import keyed
from backends.ssh.in_order import in_order
from backends.ssh.sftp_session import SftpSession
from operations import OperationError

__all__ = ["SftpTree"]

#: Folders that are listed at the same time, and listings that wait for the walk.
_AT_ONCE, _AHEAD = 48, 2000
_MANY = 16
#: Most names in all folders of one search.
_MOST_NAMES = 500_000
_IGNORE_FILE = b".gitignore"

Listing = tuple[list[bytes], dict[bytes, str]]


class SftpTree:
    """A tree for `backends.engine.walk`, whose methods are called in a thread.

    A trip for each folder would add up, so folders are listed before the walk gets there, in its
    order and without those that a rule leaves out. To be used in `async with`.

    Args:
        session: Where.
        at: Absolute path of the folder.
        shown: The folder as the operation received it, for errors.
        may_hold: As for `walk`.

    Raises:
        OSError: On entering: the folder cannot be listed.
    """

    def __init__(
        self,
        session: SftpSession,
        at: bytes,
        shown: str,
        may_hold: Callable[[bytes], bool] | None = None,
    ) -> None:
        #: Size by path of the files that were seen, where the server tells it.
        self.sizes: dict[bytes, int] = {}
        self._session = session
        self._at = at
        self._shown = shown
        self._may_hold = may_hold
        self._loop = asyncio.get_running_loop()
        self._above: list[tuple[bytes, bytes]] = []
        self._rules: dict[bytes, IgnoreRules | None] = {}
        self._ignore_files: dict[bytes, bytes | Exception] = {}
        self._ready: dict[bytes, Listing | Exception] = {}
        self._listing: dict[bytes, asyncio.Task[None]] = {}
        #: What to list ahead, by the path with "/" at its end: the order of the walk.
        self._next: list[bytes] = []
        self._names = 0
        self._closed = False

    async def __aenter__(self) -> Self:
        self._above = await self._find_above()
        self._rules[b""] = rules_above(self._above)
        await self._list(b"")
        root = self._ready[b""]
        if isinstance(root, Exception):
            raise root
        self._fill()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed = True
        tasks = list(self._listing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # What the walk asks for -----------------------------------------------------------------

    def scan(self, path: bytes) -> Listing:
        """Return the names and kinds in a folder."""
        found = self._ready.pop(path, None)
        if found is None:
            found = anyio.from_thread.run(self._wanted, path)
        else:
            self._loop.call_soon_threadsafe(self._fill)
        if isinstance(found, Exception):
            raise found
        return found

    def read(self, path: bytes) -> Iterator[bytes]:
        """Yield the content of an ignore file."""
        content = self._ignore_files.pop(path, None)
        if content is None:
            content = anyio.from_thread.run(self._ignore_file, path)
        if isinstance(content, Exception):
            raise content
        yield content

    def above(self) -> list[tuple[bytes, bytes]]:
        """Return the ignore files above."""
        return self._above

    # Ahead of it ----------------------------------------------------------------------------

    async def _wanted(self, path: bytes) -> Listing | Exception:
        while path not in self._ready:
            if self._closed:
                raise Fault("cancelled")
            await asyncio.wait([self._listing.get(path) or self._start(path)])
        self._fill()
        return self._ready.pop(path)

    def _fill(self) -> None:
        while self._next and len(self._listing) < _AT_ONCE and len(self._ready) < _AHEAD:
            if self._closed:
                return
            path = heapq.heappop(self._next)[:-1]
            if path not in self._ready and path not in self._listing:
                self._start(path)

    def _start(self, path: bytes) -> asyncio.Task[None]:
        task = self._listing[path] = asyncio.ensure_future(self._list(path))

        def end(_: asyncio.Task[None]) -> None:
            del self._listing[path]
            self._fill()

        task.add_done_callback(end)
        return task

    async def _list(self, path: bytes) -> None:
        try:
            self._ready[path] = await self._look(path)
        except Exception as error:  # it is raised where the walk is
            self._ready[path] = error

    async def _look(self, path: bytes) -> Listing:
        at = posixpath.join(self._at, path) if path else self._at
        if len(at) > MAX_PATH_BYTES:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        room = _MOST_NAMES - self._names
        try:
            names = await self._session.names(at, room)
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
            raise self._too_many() from None
        self._names += len(names)
        if self._names > _MOST_NAMES:
            raise self._too_many()
        modes = {name: status.mode for name, status in names.items()}
        untold = [name for name, mode in modes.items() if not mode]
        told = in_order((self._mode(posixpath.join(at, name)) for name in untold), _MANY)
        async with aclosing(told):
            for name in untold:
                modes[name] = await anext(told)
        prefix = path and path + b"/"
        for name, status in names.items():
            if status.size is not None and stat.S_ISREG(modes[name]):
                self.sizes[prefix + name] = status.size
        rules = self._rules.pop(path, None)
        if stat.S_ISREG(modes.get(_IGNORE_FILE, 0)):
            content = await self._ignore_file(prefix + _IGNORE_FILE)
            self._ignore_files[prefix + _IGNORE_FILE] = content
            if isinstance(content, bytes):
                rules = IgnoreRules(content, prefix, rules)
        self._plan(prefix, [name for name, mode in modes.items() if stat.S_ISDIR(mode)], rules)
        listed: Listing = keyed((name, _kind(mode)) for name, mode in modes.items())
        return listed

    def _plan(self, prefix: bytes, folders: list[bytes], rules: IgnoreRules | None) -> None:
        """Note which folders to list ahead."""
        for name in folders:
            path = prefix + name
            if name == b".git" or (
                rules is not None and rules.ignored(path, name, is_directory=True)
            ):
                continue
            if self._may_hold is None or self._may_hold(path):
                self._rules[path] = rules
                heapq.heappush(self._next, path + b"/")

    def _too_many(self) -> OperationError:
        return OperationError(
            f"{self._shown}: over {_MOST_NAMES:,} names to look at over SFTP; name a part of it"
        )

    async def _mode(self, path: bytes) -> int:
        try:
            return (await self._session.lstat(path)).mode
        except OSError:
            return 0

    async def _ignore_file(self, path: bytes) -> bytes | Exception:
        try:
            return await self._head(posixpath.join(self._at, path), self.sizes.get(path))
        except OSError as error:
            return error

    async def _head(self, at: bytes, size: int | None) -> bytes:
        file = await self._session.open(at, asyncssh.FXF_READ)
        head = b""
        try:
            async with aclosing(file.chunks(size)) as chunks:
                async for chunk in chunks:
                    head += chunk
                    if len(head) >= MAX_BYTES:
                        break
        finally:
            file.forget()
        return head[:MAX_BYTES]

    async def _find_above(self) -> list[tuple[bytes, bytes]]:
        """Return (lead, content) of the ignore files above, outermost first."""
        folder = await self._session.realpath(self._at)
        folders = [folder]
        while folder != b"/":
            folder = posixpath.dirname(folder)
            folders.append(folder)
        gits = [posixpath.join(folder, b".git") for folder in folders]
        tops = [mode async for mode in in_order(map(self._there, gits), _MANY)]
        if True not in tops:
            return []  # in no work tree: only the rules from the root on count
        above = folders[1 : tops.index(True) + 1]
        files = [posixpath.join(folder, _IGNORE_FILE) for folder in above]
        contents = [content async for content in in_order(map(self._rules_in, files), _MANY)]
        found, lead = [], b""
        for below, content in zip(folders, contents, strict=False):
            lead = posixpath.basename(below) + b"/" + lead
            if content is not None:
                found.append((lead, content))
        return found[::-1]

    async def _there(self, path: bytes) -> bool:
        try:
            await self._session.lstat(path)
        except OSError:
            return False
        return True

    async def _rules_in(self, path: bytes) -> bytes | None:
        try:
            status = await self._session.lstat(path)
            return await self._head(path, status.size) if stat.S_ISREG(status.mode) else None
        except (OSError, Fault):
            return None


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISREG(mode):
        return "file"
    return "symlink" if stat.S_ISLNK(mode) else "other"
