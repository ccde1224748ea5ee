"""What searches share whose target only lists and sends, so that lines are matched at this end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread

from backends.engine import search
from backends.engine.faults import Fault
from backends.engine.walk import Unreadable, walk
from backends.remote import convert
from backends.remote.arguments import wire_pattern
from backends.remote.shell_faults import error_of
from operations import GlobResult, GrepMatch, GrepQuery, GrepResult, Progress, SearchTimeout

__all__ = ["candidates", "faults", "folders_of", "run_glob", "run_grep", "with_unread"]

_GLOB_TIMEOUT_S = 30.0

Summary = dict[str, Any]
#: Takes a part of what a search gives; see `backends.engine.search`.
Take = Callable[[dict[str, Any]], None]


async def run_grep(
    query: GrepQuery,
    on_matches: Callable[[Sequence[GrepMatch]], None] | None,
    search_lines: Callable[[dict[str, Any], Take], Awaitable[Summary]],
) -> GrepResult:
    """Return what `GrepOperations.grep` promises.

    Args:
        query: What is looked for.
        on_matches: Gets matches as they are found.
        search_lines: Searches, given the query as the engine takes it and what takes the parts.
    """
    rows: list[Any] = []

    def take(part: dict[str, Any]) -> None:
        if "final" in part:
            rows.extend(part["final"])
        elif "matches" in part and on_matches is not None:
            on_matches([convert.grep_match(row) for row in part["matches"]])

    asked = _asked(query)
    with anyio.move_on_after(query.timeout_s) as scope:
        summary = await search_lines(asked, take)
    if scope.cancelled_caught:
        raise SearchTimeout(query.timeout_s)
    return convert.grep_result([convert.grep_match_in_context(row) for row in rows], summary)


async def run_glob(
    pattern: str,
    limit: int,
    on_progress: Callable[[Progress], None] | None,
    find_names: Callable[[str, Callable[[Any], Awaitable[Summary]]], Awaitable[Summary]],
) -> GlobResult:
    """Return what `FindOperations.glob` promises.

    Args:
        pattern: What is looked for.
        limit: Most paths wanted.
        on_progress: Gets how far it is.
        find_names: Searches, given the pattern and what finds names in a tree, in a thread.
    """
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

    def find(tree: Any) -> Summary:
        summary: Summary = search.find(
            tree,
            asked,
            lambda part: anyio.from_thread.run_sync(take, part),
            cancelled=lambda: ended,
        )
        return summary

    async def find_in(tree: Any) -> Summary:
        nonlocal ended
        try:
            return await anyio.to_thread.run_sync(find, tree, abandon_on_cancel=True)
        finally:
            ended = True

    with anyio.move_on_after(_GLOB_TIMEOUT_S) as scope:
        summary = await find_names(pattern, find_in)
    if scope.cancelled_caught:
        raise SearchTimeout(_GLOB_TIMEOUT_S)
    return convert.glob_result(convert.paths(found), summary)


def _asked(query: GrepQuery) -> dict[str, Any]:
    """Return a query as the engine's search takes it."""
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


def candidates(tree: Any, unreadable: Unreadable, glob: Any) -> list[bytes]:
    """Return the paths of files to search in a tree, in order.

    Args:
        tree: See `backends.engine.walk`.
        unreadable: Gets the folders that cannot be read.
        glob: Only what fits it; None for all.
    """
    may_hold = glob.may_hold if glob is not None and glob.anchored else None
    return [
        path
        for path, kind in walk(tree, unreadable, may_hold)
        if kind == "file" and (glob is None or glob.match(path, is_directory=False))
    ]


def folders_of(paths: list[bytes]) -> list[list[Any]]:
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


def with_unread(summary: dict[str, Any], unreadable: Unreadable) -> dict[str, Any]:
    """Return a search's summary with the folders that could not be read counted in."""
    for path in summary["unreadable"]:
        unreadable.add(path, PermissionError(13, ""))
    total = unreadable.total - len(summary["unreadable"]) + summary["unreadable_total"]
    return {**summary, "unreadable": unreadable.paths, "unreadable_total": total}


@contextmanager
def faults() -> Iterator[None]:
    """Turn the engine's faults in the block into errors."""
    try:
        yield
    except Fault as fault:
        raise error_of(fault) from None
