"""What the ls tool needs of a place."""

from __future__ import annotations

from typing import Protocol

from operations.values import DirectoryListing

__all__ = ["LsOperations"]


class LsOperations(Protocol):
    """List folders."""

    async def list_directory(self, path: str, *, limit: int) -> DirectoryListing:
        """Return the entries of one folder with their kinds, in one trip.

        Args:
            path: Absolute POSIX path, or one that begins with `~`, of a folder (through symlinks).
            limit: Most entries wanted, 1 or more; the first ones in order.

        Raises:
            PathNotFound: Nothing is there.
            PathNotDirectory: It is not a folder.
            OperationError: Otherwise as `ReadOperations.access`.
        """
        ...
