"""Searches over lanes: the target lists and sends, this end matches as the engine does."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread

from backends.engine import dialect, search
from backends.engine.glob import compile_glob
from backends.engine.walk import Unreadable
from backends.remote import convert
from backends.remote import near_search as near
from backends.remote.arguments import wire_pattern
from backends.remote.shell_core import ShellCore
from backends.remote.shell_files import ShellFiles
from backends.remote.shell_matching import match
from backends.remote.shell_numbered import PlainText
from backends.remote.shell_quote import function_call
from backends.remote.shell_supply import FileSupply, TreeSupply
from backends.remote.shell_tree import fetch_tree
from operations import GlobResult, GrepMatch, GrepQuery, GrepResult, Progress, SearchTimeout

__all__ = ["ShellSearch"]

#: A pattern that is plain text in every dialect.
_PLAIN = re.compile(r"[A-Za-z0-9_ /:;,=<>@%&\"'~`!#-]+\Z")


class ShellSearch:
    """Find lines and names.

    All names below the folder come in one trip, up to 32 MiB of them; what is to be searched comes
    in batches, or in pieces of a long file, and is matched here, by the engine's own code, in a
    process of its own. Where the pattern is plain text, the target's grep first tells which files
    hold it, unless it stops at a NUL byte as busybox's does, and which lines of a long one.

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
        asked = near.asked(query)
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
        plain = _plain_text(query)
        file: FileSupply | None = None
        if not await self._files.is_directory(query.path):
            file = FileSupply(self._core, at, plain)
            await file.open(query.path)
        # As the engine does: a wrong path is told before a wrong pattern.
        with near.faults():
            dialect.parse(asked["pattern"], query.literal, query.ignore_case)
            glob = None if asked["glob"] is None else compile_glob(asked["glob"])
        if file is not None:
            name = posixpath.basename(at)
            request: dict[str, Any] = {"query": asked, "folders": [], "file": name}
            return await match(request, file, take)
        await self._check_searchable(at, query.path)
        tree = await fetch_tree(self._core, at, query.path)
        unreadable = Unreadable()
        with near.faults():
            paths = await anyio.to_thread.run_sync(near.candidates, tree, unreadable, glob)
        known = await self._core.connect()
        supply = TreeSupply(self._core, at, paths, plain, sees_all=known.grep_sees_all)
        request = {"query": asked, "folders": near.folders_of(paths), "file": None}
        summary = await match(request, supply, take)
        return near.with_unread(summary, unreadable)

    async def glob(
        self,
        pattern: str,
        root: str,
        *,
        limit: int,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> GlobResult:
        """See `FindOperations`."""
        asked = {"pattern": wire_pattern(pattern), "limit": limit, "timeout_s": near.GLOB_TIMEOUT_S}
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

        with anyio.move_on_after(near.GLOB_TIMEOUT_S) as scope, near.faults():
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
            raise SearchTimeout(near.GLOB_TIMEOUT_S)
        return convert.glob_result(convert.paths(found), summary)

    async def _check_searchable(self, at: bytes, shown: str) -> None:
        """Raise unless it is a folder that can be listed."""
        await self._core.ask(shown, function_call("searchable", at))


def _plain_text(query: GrepQuery) -> PlainText | None:
    """Return what matching lines hold byte for byte, or None where that cannot be said."""
    if query.ignore_case or not query.pattern or "\n" in query.pattern:
        return None
    if _PLAIN.match(query.pattern):
        return PlainText(query.pattern.encode(), query.limit, query.context)
    return None
