"""A search in a process of its own, which a time limit can kill; runs as a script.

`python -I -S search_child.py FOLDER` takes a marshalled request on stdin and writes a marshalled
answer to stdout; FOLDER is where the package `backends` is. Both ends are the same program on
the same machine, so the format needs no care. It imports the standard library and the engine.
"""

from __future__ import annotations

import marshal
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PlainTree", "main"]


class PlainTree:
    """The tree that the engine's search asks for, made of plain values.

    Args:
        folders: Names and kinds by relative path; None for a folder that may not be read.
        files: Contents by relative path; None for a file that may not be read.
        above: What the tree's `above()` gave.
    """

    def __init__(
        self,
        folders: dict[bytes, tuple[list[bytes], dict[bytes, str]] | None],
        files: dict[bytes, bytes | None],
        above: list[tuple[bytes, bytes]],
    ) -> None:
        self._folders = folders
        self._files = files
        self._above = above

    def scan(self, rel: bytes) -> tuple[list[bytes], dict[bytes, str]]:
        """Return the names and kinds in a folder."""
        names = self._folders[rel]
        if names is None:
            raise PermissionError
        return names

    def read(self, rel: bytes) -> Iterator[bytes]:
        """Return a file's content as chunks."""
        content = self._files.get(rel)
        if content is None:
            raise PermissionError
        return iter([content] if content else [])

    def above(self) -> list[tuple[bytes, bytes]]:
        """Return the .gitignore files above."""
        return self._above


def main() -> None:
    """Answer the request on stdin."""
    sys.path.insert(0, sys.argv[1])
    from backends.engine.faults import Fault
    from backends.engine.search import grep

    request: dict[str, Any] = marshal.load(sys.stdin.buffer)  # noqa: S302 - from our own process
    parts: list[dict[str, Any]] = []
    tree = PlainTree(request["folders"], request["files"], request["above"])
    try:
        summary = grep(tree, request["query"], parts.append, file=request["file"])
        answer = {"parts": parts, "summary": summary}
    except Fault as fault:
        answer = {"fault": [fault.code, fault.arguments]}
    marshal.dump(answer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
