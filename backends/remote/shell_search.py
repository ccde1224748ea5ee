"""Searches over lanes: the target lists and sends, this end matches as the engine does."""

from __future__ import annotations

import codecs
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread

from backends.engine import dialect, search
from backends.engine.faults import Fault
from backends.engine.glob import compile_glob
from backends.engine.walk import Unreadable, walk
from backends.remote import convert
from backends.remote.arguments import wire_pattern
from backends.remote.shell_core import ShellCore
from backends.remote.shell_faults import error_of
from backends.remote.shell_files import ShellFiles
from backends.remote.shell_matching import match
from backends.remote.shell_quote import function_call
from backends.remote.shell_tree import FarTree, contents, fetch_tree
from operations import GlobResult, GrepMatch, GrepQuery, GrepResult, Progress, SearchTimeout

__all__ = ["ShellSearch"]

_GLOB_TIMEOUT_S = 30.0
#: A longer file is not searched; it is named among those that could not be read.
_MOST_BYTES = 16 << 20
#: Files that are fetched at once, and bytes after which fewer are.
_BATCH, _BATCH_BYTES = 64, 4 << 20
#: Files among which the target is asked at once which hold a text.
_SIFTED = 500
#: A pattern that is plain text in every dialect.
_PLAIN = re.compile(r"[A-Za-z0-9_ /:;,=<>@%&\"'~`!#-]+\Z")


class ShellSearch:
    """Find lines and names.

    All names below the folder come in one trip, up to 32 MiB of them; what is to be searched comes
    in batches and is matched here, by the engine's own code, in a process of its own. Where the
    pattern is plain text, the target's grep first tells which files hold it, unless it stops at a
    NUL byte as busybox's does. Files over 16 MiB are not searched but told as unreadable.

    Args:
        core: The lanes.
        files: Operations on files, over the same lanes.
    """

    def __init__(self, core: ShellCore, files: ShellFiles) -> None:
        self._core = core
        self._files = files

    async def grep(
        self,
        query: GrepQuery,
        *,
        on_matches: Callable[[Sequence[GrepMatch]], None] | None = None,
    ) -> GrepResult:
        """See `GrepOperations`."""
        asked = _asked(query)
        rows: list[Any] = []

        def take(part: dict[str, Any]) -> None:
            if "final" in part:
                rows.extend(part["final"])
            elif "matches" in part and on_matches is not None:
                on_matches([convert.grep_match(row) for row in part["matches"]])

        with anyio.move_on_after(query.timeout_s) as scope:
            summary = await self._grep(query, asked, take)
        if scope.cancelled_caught:
            raise SearchTimeout(query.timeout_s)
        return convert.grep_result([convert.grep_match_in_context(row) for row in rows], summary)

    async def _grep(
        self,
        query: GrepQuery,
        asked: dict[str, Any],
        take: Callable[[dict[str, Any]], None],
    ) -> dict[str, Any]:
        at = await self._core.absolute(query.path)
        content: bytes | None = None
        if not await self._files.is_directory(query.path):
            content = await self._files.read_file(query.path)
        # As the engine does: a wrong path is told before a wrong pattern.
        with _faults():
            dialect.parse(asked["pattern"], query.literal, query.ignore_case)
            glob = None if asked["glob"] is None else compile_glob(asked["glob"])
        if content is not None:
            name = posixpath.basename(at)
            request: dict[str, Any] = {"query": asked, "folders": [], "file": name}

            async def whole(path: bytes) -> list[tuple[bytes, bytes | None]]:
                return [(path, content)]

            return await match(request, whole, take)
        await self._check_searchable(at, query.path)
        tree = await fetch_tree(self._core, at, query.path)
        unreadable = Unreadable()
        with _faults():
            paths = await anyio.to_thread.run_sync(_candidates, tree, unreadable, glob)
        known = await self._core.connect()
        plain = _plain_text(query) if known.grep_sees_all else None
        supply = _Supply(self._core, at, paths, plain)
        request = {"query": asked, "folders": _folders(paths), "file": None}
        summary = await match(request, supply.rows, take)
        for path in summary["unreadable"]:
            unreadable.add(path, PermissionError(13, ""))
        total = unreadable.total - len(summary["unreadable"]) + summary["unreadable_total"]
        return {**summary, "unreadable": unreadable.paths, "unreadable_total": total}

    async def glob(
        self,
        pattern: str,
        root: str,
        *,
        limit: int,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> GlobResult:
        """See `FindOperations`."""
        asked = {"pattern": wire_pattern(pattern), "limit": limit, "timeout_s": _GLOB_TIMEOUT_S}
        found: list[bytes] = []
        ended = False

        def take(part: dict[str, Any]) -> None:
            if ended:
                return
            if "paths" in part:
                found.extend(part["paths"])
            elif on_progress is not None:
                on_progress(convert.progress(part))

        def find() -> dict[str, Any]:
            summary: dict[str, Any] = search.find(
                tree,
                asked,
                lambda part: anyio.from_thread.run_sync(take, part),
                cancelled=lambda: ended,
            )
            return summary

        with anyio.move_on_after(_GLOB_TIMEOUT_S) as scope, _faults():
            at = await self._core.absolute(root)
            await self._check_searchable(at, root)
            # As the engine does: a wrong path is told before a wrong pattern.
            compile_glob(asked["pattern"])
            tree = await fetch_tree(self._core, at, root)
            try:
                summary = await anyio.to_thread.run_sync(find, abandon_on_cancel=True)
            finally:
                ended = True
        if scope.cancelled_caught:
            raise SearchTimeout(_GLOB_TIMEOUT_S)
        return convert.glob_result(convert.paths(found), summary)

    async def _check_searchable(self, at: bytes, shown: str) -> None:
        """Raise unless it is a folder that can be listed."""
        await self._core.ask(shown, function_call("searchable", at))


class _Supply:
    """The contents of files, in the order in which they are searched, some ahead of time."""

    def __init__(self, core: ShellCore, at: bytes, paths: list[bytes], plain: bytes | None) -> None:
        self._core = core
        self._at = at
        self._paths = paths
        self._numbers = {path: number for number, path in enumerate(paths)}
        self._plain = plain
        self._sifted: set[int] = set()
        self._holding: set[bytes] = set()
        self._batch = _BATCH

    async def rows(self, path: bytes) -> list[tuple[bytes, bytes | None]]:
        """Return (path, content) rows that begin with a path."""
        if posixpath.basename(path) == b".gitignore":
            return await self._fetch([path])  # wanted when its folder is entered, out of turn
        start = self._numbers[path]
        end = len(self._paths)
        if self._plain is not None:
            await self._sift(start // _SIFTED)
            end = (start // _SIFTED + 1) * _SIFTED
        empty: list[tuple[bytes, bytes | None]] = []
        wanted: list[bytes] = []
        for candidate in self._paths[start:end]:
            if self._plain is not None and candidate not in self._holding:
                empty.append((candidate, b""))
            elif len(wanted) < self._batch:
                wanted.append(candidate)
            else:
                break
        fetched = await self._fetch(wanted) if wanted else []
        return empty + fetched

    async def _fetch(self, paths: list[bytes]) -> list[tuple[bytes, bytes | None]]:
        # What may come is bounded: as many whole files as fit into one answer.
        rows = await contents(self._core, self._at, paths, _MOST_BYTES + 1)
        size = sum(len(content or b"") for _, content in rows)
        self._batch = max(2, self._batch // 2) if size > _BATCH_BYTES else min(256, self._batch * 2)
        return [
            (path, None if content is not None and len(content) > _MOST_BYTES else content)
            for path, content in rows
        ]

    async def _sift(self, block: int) -> None:
        """Ask which files of a block hold the text, or may: encoded otherwise, or unreadable."""
        if block in self._sifted or self._plain is None:
            return
        self._sifted.add(block)
        paths = self._paths[block * _SIFTED : (block + 1) * _SIFTED]
        # A name with a newline cannot be told in a list of lines.
        self._holding.update(path for path in paths if b"\n" in path)
        asked = [b"./" + path for path in paths if b"\n" not in path]
        if not asked:
            return
        async with self._core.lanes.lane("files") as lane:
            texts = (self._plain, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
            request = function_call("holding", self._at, *texts, *asked)
            reply = await lane.call(request, limit=2 * (sum(map(len, asked)) + len(asked)))
        self._holding.update(line[2:] for line in reply.data.split(b"\n") if line)


def _asked(query: GrepQuery) -> dict[str, Any]:
    return {
        "pattern": wire_pattern(query.pattern),
        "glob": None if query.glob is None else wire_pattern(query.glob),
        "ignore_case": query.ignore_case,
        "literal": query.literal,
        "context": query.context,
        "limit": query.limit,
        "max_line_chars": query.max_line_chars,
        "timeout_s": query.timeout_s,
    }


def _plain_text(query: GrepQuery) -> bytes | None:
    """Return what a matching file must hold byte for byte, or None where that cannot be said."""
    if query.ignore_case or not query.pattern or "\n" in query.pattern:
        return None
    if _PLAIN.match(query.pattern):
        return query.pattern.encode()
    return None


def _candidates(tree: FarTree, unreadable: Unreadable, glob: Any) -> list[bytes]:
    may_hold = glob.may_hold if glob is not None and glob.anchored else None
    return [
        path
        for path, kind in walk(tree, unreadable, may_hold)
        if kind == "file" and (glob is None or glob.match(path, is_directory=False))
    ]


def _folders(paths: list[bytes]) -> list[list[Any]]:
    """Return [folder, [[name, kind]]] of the tree that has just these files."""
    folders: dict[bytes, list[list[Any]]] = {b"": []}
    for path in paths:
        folder, _, name = path.rpartition(b"/")
        _enter(folders, folder).append([name, "file"])
    return [list(item) for item in folders.items()]


def _enter(folders: dict[bytes, list[list[Any]]], folder: bytes) -> list[list[Any]]:
    if folder not in folders:
        above, _, name = folder.rpartition(b"/")
        _enter(folders, above).append([name, "directory"])
        folders[folder] = []
    return folders[folder]


@contextmanager
def _faults() -> Iterator[None]:
    """Turn the engine's faults in the block into errors."""
    try:
        yield
    except Fault as fault:
        raise error_of(fault) from None
