"""A folder of this machine as a tar, piece by piece."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterable, Iterator

from backends.engine.faults import Fault
from backends.engine.place import Place
from backends.engine.walk import OsTree, Unreadable, walk
from backends.remote.faults import error_from_fault
from backends.workspace.archive import shown
from backends.workspace.baseline import Baseline, Mode, Version
from backends.workspace.scripts import escaped
from backends.workspace.unpacking import failing_as
from operations import FileChanged, PathDenied, PathNotFound

__all__ = ["Packer", "check_folder", "of_git"]

#: The folder (or, in a work tree of its own, the file) that belongs to git itself.
_GIT = b".git"
_PIECE = 1 << 20
_RECORD = 10240
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_Found = Iterator[tuple[bytes, str]]


class Packer:
    """Writes the tar of a folder. All of it blocks.

    Permission bits and times (to the second) are kept, and hard links within the folder. Files of
    git's own (`.git`) are left out when ignore files are honoured, as searches leave them out.

    Args:
        source: The folder, on this machine.
        baseline: Gets the versions of all files, and the names of what is left out.
    """

    def __init__(self, source: str, baseline: Baseline) -> None:
        self._source = os.fsencode(os.path.abspath(source))
        self._baseline = baseline
        self._names: dict[tuple[int, int], bytes] = {}
        self._folders: list[tuple[bytes, os.stat_result]] = []

    def pieces(self) -> Iterator[bytes]:
        """Yield a tar of everything, one of the folders alone, and lines; b"" between them.

        By the second every folder gets its mode and its time when nothing is put into it any
        more. The lines have the modes of those that their owner may not do everything with, and
        their paths as numbers, see `escaped`.

        Raises:
            PathDenied: Something may not be read.
            FileChanged: A file became another while it was read.
            PathError: The folder is none.
        """
        yield from _tar(self._everything())
        yield b""
        yield from _tar(
            _header(path, info, stat.S_IMODE(info.st_mode), tarfile.DIRTYPE)
            for path, info in reversed(self._folders)
        )
        yield b""
        for path, info in reversed(self._folders):
            if ~info.st_mode & 0o700:
                yield b"%o %s\n" % (info.st_mode & 0o777, escaped(path).encode())

    def _everything(self) -> Iterator[bytes]:
        honour = self._baseline.honour_ignore_files
        try:
            for path, kind in self._honoured() if honour else self._all():
                yield from self._one(path, kind)
        except PathNotFound as error:  # it was there when its folder was listed
            raise FileChanged(error.path) from None

    def _one(self, path: bytes, kind: str) -> Iterator[bytes]:
        full = os.path.join(self._source, path)
        if kind == "file":
            with failing_as(shown(path)):
                fd = os.open(full, _FLAGS)
            try:
                yield from self._file(path, fd)
            finally:
                os.close(fd)
            return
        with failing_as(shown(path)):
            info = os.lstat(full)
            target = os.readlink(full) if stat.S_ISLNK(info.st_mode) else b""
        if stat.S_ISDIR(info.st_mode):
            self._folders.append((path, info))
            yield _header(path, info, stat.S_IMODE(info.st_mode) | 0o700, tarfile.DIRTYPE)
        elif stat.S_ISLNK(info.st_mode):
            self._remember(path, "120000", target)
            yield _header(path, info, 0o777, tarfile.SYMTYPE, target=target)
        else:
            self._baseline.skipped.append(f"{shown(path)}: a device, FIFO or socket")

    def _file(self, path: bytes, fd: int) -> Iterator[bytes]:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise FileChanged(shown(path))
        first = self._names.get((info.st_dev, info.st_ino))
        if first is not None:
            yield self._link(path, first, info)
            return
        if info.st_nlink > 1:
            self._names[info.st_dev, info.st_ino] = path
        yield _header(path, info, stat.S_IMODE(info.st_mode), tarfile.REGTYPE, size=info.st_size)
        yield from self._content(path, fd, info)
        yield bytes(-info.st_size % tarfile.BLOCKSIZE)
        self._baseline.files += 1

    def _content(self, path: bytes, fd: int, info: os.stat_result) -> Iterator[bytes]:
        """Yield what the header has announced, and keep it for the patch."""
        baseline, start, left = self._baseline, self._baseline.spool.size, info.st_size
        kept = not of_git(path)
        while left:
            with failing_as(shown(path)):
                piece = os.read(fd, min(left, _PIECE))
            if not piece:
                raise FileChanged(shown(path))
            if kept:
                baseline.spool.add(piece)
            left -= len(piece)
            baseline.bytes += len(piece)
            yield piece
        after = os.fstat(fd)
        if (after.st_size, after.st_mtime_ns) != (info.st_size, info.st_mtime_ns):
            raise FileChanged(shown(path))
        if kept:
            mode: Mode = "100755" if info.st_mode & 0o100 else "100644"
            baseline.versions[path] = Version(mode, baseline.spool, start, info.st_size)

    def _remember(self, path: bytes, mode: Mode, content: bytes) -> None:
        if not of_git(path):
            spool = self._baseline.spool
            self._baseline.versions[path] = Version(mode, spool, spool.size, len(content))
            spool.add(content)

    def _link(self, path: bytes, first: bytes, info: os.stat_result) -> bytes:
        if first in self._baseline.versions and not of_git(path):
            self._baseline.versions[path] = self._baseline.versions[first]
        self._baseline.files += 1
        return _header(path, info, stat.S_IMODE(info.st_mode), tarfile.LNKTYPE, target=first)

    # Which names there are ----------------------------------------------------------------

    def _all(self) -> _Found:
        """Yield everything, a folder before what it holds."""
        waiting = [b""]
        while waiting:
            folder = waiting.pop()
            named = shown(folder) or os.fsdecode(self._source)
            full = os.path.join(self._source, folder)
            with failing_as(named), os.scandir(full) as entries:
                found = sorted((entry.name, _kind(entry)) for entry in entries)
            below = []
            for name, kind in found:
                path = os.path.join(folder, name)
                yield path, kind
                if kind == "directory":
                    below.append(path)
            waiting.extend(reversed(below))

    def _honoured(self) -> _Found:
        """Yield what no ignore file leaves out."""
        unreadable = Unreadable()
        place = Place()
        try:
            tree = OsTree(place, self._source)
            try:
                self._baseline.rules_above = tree.above()
                with failing_as(os.fsdecode(self._source)):
                    for path, kind in walk(tree, unreadable):
                        yield path.rstrip(b"/"), kind
            finally:
                tree.close()
        except Fault as fault:
            raise error_from_fault(fault.code, fault.arguments) from None
        finally:
            place.close()
        if unreadable.total:
            raise PathDenied(shown(unreadable.paths[0]))


def check_folder(path: str) -> None:
    """See that a path of this machine is a folder that may be read.

    Raises:
        PathError: It is not.
    """
    with failing_as(path):
        os.scandir(path).close()


def of_git(path: bytes) -> bool:
    """Return True for what belongs to git itself, which no patch can carry."""
    return _GIT in path.split(b"/")


def _tar(parts: Iterable[bytes]) -> Iterator[bytes]:
    waiting = bytearray()
    for part in parts:
        waiting += part
        if len(waiting) >= _PIECE:
            yield bytes(waiting)
            waiting.clear()
    waiting += bytes(2 * tarfile.BLOCKSIZE)
    # A tar waits for whole records.
    waiting += bytes(-len(waiting) % _RECORD)
    yield bytes(waiting)


def _kind(entry: os.DirEntry[bytes]) -> str:
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _header(
    path: bytes,
    info: os.stat_result,
    mode: int,
    kind: bytes,
    *,
    size: int = 0,
    target: bytes = b"",
) -> bytes:
    """Return an entry's header, in the format that busybox knows too."""
    entry = tarfile.TarInfo(os.fsdecode(path))
    entry.type = kind
    entry.mode = mode & 0o777
    entry.mtime = int(info.st_mtime)
    entry.size = size
    entry.linkname = os.fsdecode(target)
    return entry.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
