"""What the write tool needs of a place."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from operations.values import FileVersion, WriteResult

__all__ = ["ReplaceOperations", "WriteOperations"]


class WriteOperations(Protocol):
    """Write whole files and make folders."""

    async def write_file(self, path: str, content: bytes) -> None:
        """Make `content` the whole content of the file at `path`; its folder must exist.

        Everything that `ReplaceOperations.replace_file` promises about the file holds here too.

        Args:
            path: Absolute POSIX path, or one that begins with `~/`.
            content: The bytes, of any length.

        Raises:
            PathNotFound: The folder does not exist.
            OperationError: As `ReplaceOperations.replace_file`.
        """
        ...

    async def make_directory(self, path: str) -> None:
        """Make a folder and those above it; an existing folder is fine.

        Args:
            path: Absolute POSIX path, or one that begins with `~/`.

        Raises:
            PathNotDirectory: A part of it is a file.
            PathDenied: It may not be made.
            StorageFull: No room.
            OperationError: Otherwise as `ReadOperations.access`.
        """
        ...


@runtime_checkable
class ReplaceOperations(Protocol):
    """Write a file with all that belongs to it in one trip."""

    async def replace_file(
        self,
        path: str,
        content: bytes,
        *,
        make_parents: bool = False,
        expected: FileVersion | None = None,
        durable: bool = False,
    ) -> WriteResult:
        """Make `content` the whole content of the file at `path`, all or nothing.

        A temporary file in the same folder is renamed over it: a reader, or the death of any
        process, sees the old file or the new one. Mode, owner, group and extended attributes are
        kept; a new file gets 0666 less the umask. A symlink stays a link and the file that it
        points to is replaced; a dangling one gets its target created.

        The file is written in place, after room for it has been reserved, where a rename would
        change what it is: several hard links, an owner or attribute that cannot be set again, a
        mount point, a folder that takes no new names. `WriteResult.atomic` is then False.

        On any error the old file is intact and no temporary file is left.

        Args:
            path: Absolute POSIX path, or one that begins with `~/`.
            content: The bytes, of any length.
            make_parents: Make missing folders above it first (0777 less the umask).
            expected: Write only if the file is still in this version; checked under a lock that
                every writer of this file through the same engine takes.
            durable: Sync the file and its folder before returning, so that a power cut is
                covered too.

        Raises:
            PathNotFound: A folder above it is missing and `make_parents` is False.
            PathNotDirectory: A part above it is a file.
            PathIsDirectory: It is a folder, or `path` ends with "/".
            PathDenied: It may not be written.
            NotRegularFile: It is a FIFO, device or socket.
            StorageFull: No room; nothing was changed.
            FileChanged: `expected` was given and the file is another by now, or gone.
            OutsideRoot: The backend is confined and the path leads out.
            BackendUnavailable: The target cannot be reached.
            ConnectionLost: The connection ended; the file is the old or the new one.
        """
        ...
