"""What the edit tool needs of a place."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from operations.values import VersionedContent

__all__ = ["EditOperations", "VersionedReadOperations"]


class EditOperations(Protocol):
    """Read a file and write it back."""

    async def access(self, path: str) -> None:
        """See `ReadOperations.access`; the file must be readable, writing is tried later."""
        ...

    async def read_file(self, path: str) -> bytes:
        """See `ReadOperations.read_file`."""
        ...

    async def write_file(self, path: str, content: bytes) -> None:
        """See `WriteOperations.write_file`."""
        ...


@runtime_checkable
class VersionedReadOperations(Protocol):
    """Read a file together with the version to expect when it is replaced."""

    async def read_versioned(self, path: str) -> VersionedContent:
        """Return the whole content and its version, both of one moment.

        Args:
            path: Absolute POSIX path, or one that begins with `~/`.

        Raises:
            OperationError: As `ReadOperations.read_file`.
        """
        ...
