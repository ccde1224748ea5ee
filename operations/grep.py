"""What the grep tool needs of a place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from operations.values import GrepMatch, GrepQuery, GrepResult

__all__ = ["GrepOperations"]


class GrepOperations(Protocol):
    """Search the text of files where they are."""

    async def is_directory(self, path: str) -> bool:
        """Return True for a folder (through symlinks), False for anything else that exists.

        Raises:
            PathNotFound: Nothing is there.
            OperationError: Otherwise as `ReadOperations.access`.
        """
        ...

    async def grep(
        self,
        query: GrepQuery,
        *,
        on_matches: Callable[[Sequence[GrepMatch]], None] | None = None,
    ) -> GrepResult:
        """Find matching lines; the same lines in the same order on every backend.

        A folder is walked under its `.gitignore` files and those of folders above it up to the
        top of its git work tree, with or without a repository; hidden files are searched, `.git`
        is not; symlinks found on the way are not followed; files with NUL bytes are counted, not
        searched. A `path` that is named outright is searched even if it is ignored.

        Args:
            query: What to look for, and where.
            on_matches: Called with batches of matches as they are found (in no promised order,
                without context lines), at most ten times a second, on the caller's event loop.
                It must return quickly and not raise.

        Raises:
            InvalidPattern: The pattern or glob is outside the documented dialect.
            SearchTimeout: It did not end within `query.timeout_s`.
            PathNotFound: Nothing is at `query.path`.
            OperationError: Otherwise as `ReadOperations.access`, for `query.path` itself; what
                cannot be read below it is counted in the result.
        """
        ...
