"""The operations that search in memory; their promises stand on the Protocols."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import anyio.from_thread
import anyio.to_thread

from backends.memory.core import Core
from backends.memory.search import Search, View
from backends.memory.search_child import PlainTree
from backends.remote import convert
from backends.remote.arguments import wire_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.memory.search import SearchTree
    from operations import GlobResult, GrepMatch, GrepQuery, GrepResult, Progress

__all__ = ["SearchOperations"]

_GLOB_TIMEOUT_S = 30.0


class SearchOperations(Core):
    """Find lines and names, in the tree as it is when the search begins."""

    async def grep(
        self,
        query: GrepQuery,
        *,
        on_matches: Callable[[Sequence[GrepMatch]], None] | None = None,
    ) -> GrepResult:
        """See `GrepOperations`."""
        pattern = wire_pattern(query.pattern)
        glob = None if query.glob is None else wire_pattern(query.glob)
        asked = {
            "pattern": pattern,
            "glob": glob,
            "ignore_case": query.ignore_case,
            "literal": query.literal,
            "context": query.context,
            "limit": query.limit,
            "max_line_chars": query.max_line_chars,
            "timeout_s": query.timeout_s,
        }
        rows: list[Any] = []

        def take(part: dict[str, Any]) -> None:
            if "final" in part:
                rows.extend(part["final"])
            elif "matches" in part and on_matches is not None:
                on_matches([convert.grep_match(row) for row in part["matches"]])

        async def effect(path: bytes) -> GrepResult:
            tree, file = self._where(path)
            summary = await self._search(tree, take, lambda search: search.grep(asked, file))
            return convert.grep_result([convert.grep_match_in_context(r) for r in rows], summary)

        return await self._operate("grep", query.path, effect)

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

        def take(part: dict[str, Any]) -> None:
            if "paths" in part:
                found.extend(part["paths"])
            elif on_progress is not None:
                on_progress(convert.progress(part))

        async def effect(path: bytes) -> GlobResult:
            tree = self._view(path)
            summary = await self._search(tree, take, lambda search: search.find(asked))
            return convert.glob_result(convert.paths(found), summary)

        return await self._operate("glob", root, effect)

    def _where(self, path: bytes) -> tuple[SearchTree, bytes | None]:
        """Return what to search, and the name in it if that is one file."""
        if self._files.is_directory(path):
            return self._view(path), None
        content = self._files.open(path).content
        name = os.path.basename(self._files.expand(path))
        return PlainTree({b"": ([name], {})}, {name: content}, []), name

    def _view(self, path: bytes) -> View:
        self._files.open_folder(path)
        return View(self._tree.frozen(), self._files.locate(path).path, self._confined)

    async def _search(
        self,
        tree: SearchTree,
        take: Callable[[dict[str, Any]], None],
        run: Callable[[Search], dict[str, Any]],
    ) -> dict[str, Any]:
        """Run a search in a thread; it ends soon when this task is cancelled."""
        ended = False

        def take_unless_ended(part: dict[str, Any]) -> None:
            if not ended:
                take(part)

        search = Search(tree, lambda part: anyio.from_thread.run_sync(take_unless_ended, part))
        try:
            return await anyio.to_thread.run_sync(run, search, abandon_on_cancel=True)
        finally:
            ended = True
            search.stop()
