"""What the read tool needs of a place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from operations.values import LineWindow, Progress

__all__ = ["ImageDetectingReadOperations", "ReadOperations", "WindowReadOperations"]


class ReadOperations(Protocol):
    """Read whole files."""

    async def access(self, path: str) -> None:
        """Check that `path` is a regular file (through symlinks) that may be read.

        Args:
            path: Absolute POSIX path, or one that begins with `~/`.

        Raises:
            PathNotFound: Nothing is there, or a symlink on the way is broken.
            PathDenied: The file, or a folder above it, may not be read.
            PathIsDirectory: It is a folder.
            PathNotDirectory: A part above it is a file.
            NotRegularFile: It is a FIFO, device or socket; it is not opened.
            OutsideRoot: The backend is confined and the path leads out.
            BackendUnavailable: The target cannot be reached.
            ConnectionLost: The connection ended meanwhile.
        """
        ...

    async def read_file(self, path: str) -> bytes:
        """Return the whole content, read to the end whatever size the target tells.

        Args:
            path: Absolute POSIX path, or one that begins with `~/`.

        Raises:
            TooLarge: The file is over the backend's stated limit for whole reads (256 MiB).
            OperationError: As `access`.
        """
        ...


@runtime_checkable
class WindowReadOperations(Protocol):
    """Read a window of lines without moving the rest of the file."""

    async def read_lines(
        self,
        path: str,
        *,
        start: int,
        max_lines: int,
        max_bytes: int,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> LineWindow:
        """Return whole lines from line `start` on, in one trip and bounded memory.

        A `start` past the end is not an error: the window is then empty and `total_lines` tells.

        Args:
            path: Absolute POSIX path, or one that begins with `~/`.
            start: 1-based number of the first line wanted.
            max_lines: Most lines wanted, 1 or more.
            max_bytes: Most bytes of UTF-8 wanted, 1 or more; lines are never cut. A line that is
                over it by itself is reported by its size (see `LineWindow.long_line_bytes`).
            on_progress: Called with bytes scanned, at most ten times a second, on the caller's
                event loop. It must return quickly and not raise.

        Raises:
            OperationUnsupported: The target cannot; nothing was read. Use `read_file`.
            OperationError: As `ReadOperations.access`.
        """
        ...


@runtime_checkable
class ImageDetectingReadOperations(Protocol):
    """Tell images by their content."""

    async def detect_image_mime_type(self, path: str) -> str | None:
        """Return "image/png", "image/jpeg", "image/gif", "image/webp" or "image/bmp", else None.

        Args:
            path: Absolute POSIX path, or one that begins with `~/`.

        Raises:
            OperationError: As `ReadOperations.access`.
        """
        ...
