"""Searches over lanes: the target lists and sends, this end matches as the engine does."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import Any

import anyio.to_thread

from backends.engine import dialect
from backends.engine.glob import compile_glob
from backends.engine.walk import Unreadable
from backends.remote import near_search as near
from backends.remote.shell_core import ShellCore
from backends.remote.shell_files import ShellFiles
from backends.remote.shell_matching import match
from backends.remote.shell_numbered import PlainText
from backends.remote.shell_quote import function_call
from backends.remote.shell_supply import FileSupply, TreeSupply
from backends.remote.shell_tree import fetch_tree
from operations import GlobResult, GrepMatch, GrepQuery, GrepResult, Progress

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
        return await near.run_grep(
            query, on_matches, lambda asked, take: self._grep(query, asked, take)
        )

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

        async def find_names(wanted: str, find_in: Any) -> dict[str, Any]:
            with near.faults():
                at = await self._core.absolute(root)
                await self._check_searchable(at, root)
                # As the engine does: a wrong path is told before a wrong pattern.
                compile_glob(wanted)
                tree = await fetch_tree(self._core, at, root)
                summary: dict[str, Any] = await find_in(tree)
                return summary

        return await near.run_glob(pattern, limit, on_progress, find_names)

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
