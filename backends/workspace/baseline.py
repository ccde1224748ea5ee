"""What a folder held when it was put in, for comparing it with what it holds later."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

__all__ = ["Baseline", "Mode", "Spool", "Version"]

#: As git writes them: a file, one that may be run, a symlink.
Mode = Literal["100644", "100755", "120000"]
#: Meant for files that are too large for /tmp, which may be memory.
_SPOOL_FOLDER = "/var/tmp"  # noqa: S108


class Spool:
    """Bytes in a file of this machine that has no name and ends with us."""

    def __init__(self) -> None:
        folder = _SPOOL_FOLDER if os.access(_SPOOL_FOLDER, os.W_OK) else None
        self._file = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115
        self.size = 0

    def add(self, data: bytes | memoryview) -> None:
        """Put bytes behind those that are there."""
        view = memoryview(data)
        while view:
            written = os.pwrite(self._file.fileno(), view, self.size)
            view = view[written:]
            self.size += written

    def read(self, start: int, size: int) -> bytes:
        """Return bytes that were put in."""
        return os.pread(self._file.fileno(), size, start)

    def close(self) -> None:
        """Free it; fine when called twice."""
        self._file.close()


@dataclass(frozen=True, slots=True)
class Version:
    """A file or symlink as git sees it.

    Attributes:
        mode: What it is.
        spool: Where its content (a symlink's text) is.
        start: At which byte.
        size: How many bytes.
    """

    mode: Mode
    spool: Spool
    start: int
    size: int

    def pieces(self, size: int = 1 << 20) -> Iterable[bytes]:
        """Return the content piece by piece."""
        end = self.start + self.size
        for at in range(self.start, end, size):
            yield self.spool.read(at, min(size, end - at))

    def content(self) -> bytes:
        """Return the whole content."""
        return b"".join(self.pieces())

    def same_content(self, other: Version) -> bool:
        """Return True if the contents are equal."""
        if self.spool is other.spool and self.start == other.start and self.size == other.size:
            return True
        return self.size == other.size and all(
            mine == theirs for mine, theirs in zip(self.pieces(), other.pieces(), strict=True)
        )


class Baseline:
    """A folder as it was put into a target; made by `put_folder`, needed by `take_patch`.

    A context manager: it holds a copy of the folder's files in a file without a name in /var/tmp
    (or where `tempfile` puts them), as large as they are, until it is closed.

    Attributes:
        destination: Where on the target the folder is.
        honour_ignore_files: True when what git ignores was left out.
        files: Files that were copied.
        bytes: Bytes of them.
        skipped: A line for each name that could not be copied, "name: why".
    """

    def __init__(self, destination: str, *, honour_ignore_files: bool) -> None:
        self.destination = destination
        self.honour_ignore_files = honour_ignore_files
        self.files = 0
        self.bytes = 0
        self.skipped: list[str] = []
        self.closed = False
        #: By path below the folder; nothing of a `.git` is here.
        self.versions: dict[bytes, Version] = {}
        #: The rules of folders above, see `backends.engine.ignore.rules_above`.
        self.rules_above: list[tuple[bytes, bytes]] = []
        self.spool = Spool()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # it was never whole
            self.close()

    def close(self) -> None:
        """Give the copy up; fine when called twice."""
        self.closed = True
        self.spool.close()
