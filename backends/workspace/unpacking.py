"""A folder from the far end, made beside where it goes and put in place by one rename."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from backends.workspace.archive import Entry, shown
from operations import PathDenied, PathError, PathExists, PathNotDirectory, PathNotFound

__all__ = ["FolderSink", "failing_as"]

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
#: What others may write, a hostile far end could have them write.
_MODE = 0o755
_ERRORS: dict[int, type[PathError]] = {
    errno.EACCES: PathDenied,
    errno.EPERM: PathDenied,
    errno.EROFS: PathDenied,
    errno.EEXIST: PathExists,
    errno.ENOTEMPTY: PathExists,
    errno.ENOENT: PathNotFound,
    errno.ENOTDIR: PathNotDirectory,
}


class FolderSink:
    """See `Sink`: makes a folder of this machine. Its methods block.

    All is made below a new folder that only we may enter, and each name must be new: with what
    the reader promises (an entry's folder is one of those made here) no symlink is ever followed.
    Setuid, setgid and sticky bits and the right of others to write are dropped; symlinks keep
    their text, wherever it points; devices, FIFOs and sockets are left out.

    Args:
        destination: The folder's path; nothing or an empty folder must be there.

    Attributes:
        skipped: A line for each name that was left out, "name: why".

    Raises:
        PathExists: Something is there.
        PathError: It cannot be made.
    """

    def __init__(self, destination: str) -> None:
        self.skipped: list[str] = []
        self._destination = os.path.abspath(destination)
        self._folders: list[Entry] = []
        self._placed = False
        self._file = -1
        self._entry: Entry | None = None
        above, name = os.path.split(self._destination)
        self._beside = os.path.join(above, f".{name[:200]}.{secrets.token_hex(8)}")
        with failing_as(destination):
            _check_free(self._destination)
            os.makedirs(above, exist_ok=True)
            os.mkdir(self._beside, 0o700)
        self._root = os.open(self._beside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def entry(self, entry: Entry) -> None:
        """See `Sink`."""
        root = self._root
        with failing_as(shown(entry.path)):
            if entry.kind == "file":
                self._file = os.open(entry.path, _NEW, 0o600, dir_fd=root)
                self._entry = entry
            elif entry.kind == "directory":
                os.mkdir(entry.path, 0o700, dir_fd=root)
                self._folders.append(entry)
            elif entry.kind == "symlink":
                os.symlink(entry.target, entry.path, dir_fd=root)
                self._set_time(entry)
            elif entry.kind == "link":
                os.link(
                    entry.target,
                    entry.path,
                    src_dir_fd=root,
                    dst_dir_fd=root,
                    follow_symlinks=False,
                )
            else:
                self.skipped.append(f"{shown(entry.path)}: a device, FIFO or socket")

    def data(self, piece: memoryview) -> None:
        """See `Sink`."""
        assert self._entry is not None
        with failing_as(shown(self._entry.path)):
            while piece:
                piece = piece[os.write(self._file, piece) :]

    def end(self) -> None:
        """See `Sink`."""
        entry = self._entry
        assert entry is not None
        with failing_as(shown(entry.path)):
            os.fchmod(self._file, entry.mode & _MODE)
            self._close_file()
            self._set_time(entry)

    def finish(self) -> None:
        """Put the whole folder in its place.

        Raises:
            PathExists: Something has come there meanwhile.
            PathError: It cannot be put there.
        """
        for entry in reversed(self._folders):
            with failing_as(shown(entry.path)):
                # Its own name is a folder's, made here: there is no symlink to follow.
                os.chmod(entry.path, entry.mode & _MODE, dir_fd=self._root)
                self._set_time(entry)
        os.fchmod(self._root, _MODE)
        with failing_as(self._destination):
            os.rename(self._beside, self._destination)
        self._placed = True

    def close(self) -> None:
        """Remove what was not put in place; fine when called twice."""
        self._close_file()
        if self._root < 0:
            return
        if not self._placed:
            # Modes that were set already could keep us from removing what is in a folder.
            for entry in self._folders:
                with contextlib.suppress(OSError):
                    os.chmod(entry.path, 0o700, dir_fd=self._root)
            # Not shutil.rmtree, which takes a call and a descriptor for each level.
            for path in (*(entry.path for entry in reversed(self._folders)), b"."):
                with contextlib.suppress(OSError):
                    self._remove_folder(path)
            with contextlib.suppress(OSError):
                os.rmdir(self._beside)
        os.close(self._root)
        self._root = -1

    def _remove_folder(self, path: bytes) -> None:
        """Remove a folder in which no other is left; of ours (".") only what is in it."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        folder = os.open(path, flags, dir_fd=self._root)
        try:
            for name in os.listdir(folder):
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)
        if path != b".":
            os.rmdir(path, dir_fd=self._root)

    def _set_time(self, entry: Entry) -> None:
        # No file system has every time that a tar can say, and none is worth a failure.
        with contextlib.suppress(OSError, OverflowError, ValueError):
            times = (entry.mtime, entry.mtime)
            os.utime(entry.path, times, dir_fd=self._root, follow_symlinks=False)

    def _close_file(self) -> None:
        fd, self._file = self._file, -1
        if fd >= 0:
            os.close(fd)


def _check_free(path: str) -> None:
    if os.path.islink(path):  # a folder cannot take its place, and what it leads to stays
        raise PathExists(path, "is a symlink; name the folder that it leads to")
    with contextlib.suppress(FileNotFoundError):
        if os.listdir(path):
            raise PathExists(path, "is not empty; name a folder that is new or empty")


@contextmanager
def failing_as(path: str) -> Iterator[None]:
    """Turn an OSError of this machine into the operations' error about a path."""
    try:
        yield
    except PathError:
        raise
    except OSError as error:
        kind = _ERRORS.get(error.errno or 0, PathError)
        reason = error.strerror or str(error)
        if kind is PathNotFound:
            raise PathNotFound(path) from error
        raise kind(path, reason) from error
