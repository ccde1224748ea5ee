"""What searches share whose target only lists and sends, so that lines are matched at this end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from backends.engine.faults import Fault
from backends.engine.walk import Unreadable, walk
from backends.remote.arguments import wire_pattern
from backends.remote.shell_faults import error_of
from operations import GrepQuery

__all__ = ["GLOB_TIMEOUT_S", "asked", "candidates", "faults", "folders_of", "with_unread"]

GLOB_TIMEOUT_S = 30.0


def asked(query: GrepQuery) -> dict[str, Any]:
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
