"""Searches over SFTP: the server lists and sends, this end matches as the engine does."""

from __future__ import annotations

import posixpath
import stat
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import asyncssh

from backends.engine import dialect
from backends.engine.faults import Fault
from backends.engine.glob import compile_glob
from backends.engine.walk import Unreadable
from backends.remote.arguments import wire_path
from backends.remote.near_search import (
    candidates,
    faults,
    folders_of,
    run_glob,
    run_grep,
    with_unread,
)
from backends.remote.shell_matching import Row, match
from backends.ssh.in_order import in_order
from backends.ssh.sftp_core import SftpCore
from backends.ssh.sftp_file import SftpFile
from backends.ssh.sftp_files import check_regular
from backends.ssh.sftp_session import SftpSession
from backends.ssh.sftp_tree import SftpTree
from operations import GlobResult, GrepMatch, GrepQuery, GrepResult, Progress

__all__ = ["SftpSearch"]

#: Most bytes of content that one search fetches; files after that count as unreadable.
MOST_FETCHED = 256 << 20
#: A longer file comes in pieces, while it is searched.
_WHOLE = 1 << 18
#: Files that are fetched at once, at first and at most, and bytes after which fewer are.
_BATCH, _MOST_FILES, _BATCH_BYTES = 64, 256, 4 << 20
_AT_ONCE = 48


class SftpSearch:
    """Find lines and names.

    Every folder is listed and every file fetched that is searched: at most 500,000 names and
    256 MiB a search. Files after that are told as unreadable.

    Args:
        core: The sessions.
    """

    def __init__(self, core: SftpCore) -> None:
        self._core = core

    async def grep(
        self,
        query: GrepQuery,
        *,
        on_matches: Callable[[Sequence[GrepMatch]], None] | None = None,
    ) -> GrepResult:
        """See `GrepOperations`."""
        return await run_grep(
            query, on_matches, lambda wanted, take: self._grep(query, wanted, take)
        )

    async def _grep(
        self, query: GrepQuery, wanted: dict[str, Any], take: Callable[[dict[str, Any]], None]
    ) -> dict[str, Any]:
        at = await self._core.absolute(query.path)
        async with self._core.errors_about(query.path) as session:
            status = await session.stat(at)
            is_folder = stat.S_ISDIR(status.mode)
            if not is_folder:
                given = wire_path(query.path)
                await check_regular(session, given, at, status)
                (await session.open(at, asyncssh.FXF_READ)).forget()
                if (status.size or 0) > MOST_FETCHED:
                    raise Fault("too_large", given, status.size, MOST_FETCHED)
        # As the engine does: a wrong path is told before a wrong pattern.
        with faults():
            dialect.parse(wanted["pattern"], query.literal, query.ignore_case)
            glob = None if wanted["glob"] is None else compile_glob(wanted["glob"])
        if not is_folder:
            folder, name = posixpath.split(at)
            request: dict[str, Any] = {"query": wanted, "folders": [], "file": name}
            return await match(request, _Supply(session, folder, [name], {}), take)
        unreadable = Unreadable()
        async with self._core.errors_about(query.path):
            may_hold = glob.may_hold if glob is not None and glob.anchored else None
            async with SftpTree(session, at, query.path, may_hold) as tree:
                paths = await anyio.to_thread.run_sync(
                    partial(candidates, tree, unreadable, glob), abandon_on_cancel=True
                )
        request = {"query": wanted, "folders": folders_of(paths), "file": None}
        supply = _Supply(session, at, paths, tree.sizes)
        return with_unread(await match(request, supply, take), unreadable)

    async def glob(
        self,
        pattern: str,
        root: str,
        *,
        limit: int,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> GlobResult:
        """See `FindOperations`."""

        async def find_names(wanted: str, find_in: Any) -> dict[str, Any]:
            at = await self._core.absolute(root)
            async with self._core.errors_about(root) as session:
                if not stat.S_ISDIR((await session.stat(at)).mode):
                    raise Fault("not_directory", wire_path(root), "")
                # As the engine does: a wrong path is told before a wrong pattern.
                glob = compile_glob(wanted)
                may_hold = glob.may_hold if glob.anchored else None
                async with SftpTree(session, at, root, may_hold) as tree:
                    summary: dict[str, Any] = await find_in(tree)
                    return summary

        return await run_glob(pattern, limit, on_progress, find_names)


class _Supply:
    """The contents of files, in the order in which they are searched, some ahead of time.

    Args:
        session: Where.
        at: Absolute path of the folder.
        paths: Paths of the files below it.
        sizes: What the server told of their sizes, by path.
    """

    def __init__(
        self, session: SftpSession, at: bytes, paths: list[bytes], sizes: dict[bytes, int]
    ) -> None:
        self._session = session
        self._at = at
        self._paths = paths
        self._numbers = {path: number for number, path in enumerate(paths)}
        self._sizes = sizes
        self._batch = _BATCH
        self._room = MOST_FETCHED
        self._file: SftpFile | None = None
        self._pieces: AsyncGenerator[bytes, None] | None = None

    async def rows(self, path: bytes) -> list[Row]:
        """See `Supply`."""
        number = self._numbers[path]
        # An ignore file is wanted when its folder is entered, out of turn.
        is_rules = posixpath.basename(path) == b".gitignore"
        batch = self._paths[number : number + (1 if is_rules else self._batch)]
        found = [row async for row in in_order(map(self._row, batch), _AT_ONCE)]
        size = sum(len(content) for _, content in found if isinstance(content, bytes))
        more = min(_MOST_FILES, self._batch * 2)
        self._batch = max(2, self._batch // 2) if size > _BATCH_BYTES else more
        return found

    async def _row(self, path: bytes) -> Row:
        size = self._sizes.get(path)
        if self._room <= 0:
            return path, None
        if size is not None and size > _WHOLE:
            return path, True
        try:
            content = await self._session.short_file(posixpath.join(self._at, path), size, _WHOLE)
        except OSError:
            return path, None
        if content is None:
            return path, True  # it is longer than was told
        self._room -= len(content)
        return path, content

    async def _open(self, path: bytes) -> SftpFile:
        return await self._session.open(posixpath.join(self._at, path), asyncssh.FXF_READ)

    async def first(self, path: bytes) -> bytes | None:
        """See `Supply`."""
        await self.close()
        try:
            self._file = await self._open(path)
        except OSError:
            return None
        self._pieces = self._file.chunks(self._sizes.get(path, 1 << 30))
        return await self.next(path)

    async def next(self, path: bytes) -> bytes | None:
        """See `Supply`."""
        if self._pieces is None or self._room <= 0:
            return None
        try:
            piece = await anext(self._pieces, b"")
        except OSError:
            return None
        self._room -= len(piece)
        return piece

    async def close(self) -> None:
        """See `Supply`."""
        pieces, self._pieces = self._pieces, None
        file, self._file = self._file, None
        if pieces is not None:
            await pieces.aclose()
        if file is not None:
            file.forget()
