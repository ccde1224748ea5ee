"""What the find tool needs of a place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from operations.values import GlobResult, Progress

__all__ = ["FindOperations"]


class FindOperations(Protocol):
    """Find names by glob."""

    async def exists(self, path: str) -> bool:
        """Return True if something is at `path` (through symlinks).

        Raises:
            OperationError: As `ReadOperations.access`, but for PathNotFound and PathIsDirectory.
        """
        ...

    async def glob(
        self,
        pattern: str,
        root: str,
        *,
        limit: int,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> GlobResult:
        """Find files, folders and symlinks below `root`; symlinks are listed, not followed.

        A pattern without "/" fits names at any depth; one with "/" is anchored at `root`. `*` and
        `?` do not cross "/", `**` does; `[...]` and `{a,b}` work as in a shell. A leading "./" is
        ignored. Ignore rules are those of `GrepOperations.grep`.

        Args:
            pattern: The glob.
            root: Absolute POSIX path, or one that begins with `~`, of a folder.
            limit: Most paths wanted, 1 or more; the first ones in order.
            on_progress: Called with entries seen and found, at most ten times a second, on the
                caller's event loop. It must return quickly and not raise.

        Raises:
            InvalidPattern: The glob is malformed.
            PathNotFound: Nothing is at `root`.
            PathNotDirectory: `root` is not a folder.
            SearchTimeout: It did not end within the backend's limit (30 s).
            OperationError: Otherwise as `ReadOperations.access`, for `root` itself.
        """
        ...
