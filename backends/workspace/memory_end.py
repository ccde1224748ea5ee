"""The far end of a folder's way where the target is a tree in memory: the same tar, no program."""

from __future__ import annotations

import os
import posixpath
import tarfile
from collections.abc import Iterator

from backends.memory import TreeAccess
from backends.workspace.archive import ArchiveReader, Entry, Limits, shown
from backends.workspace.far_end import Feed, Pieces, Prepare

__all__ = ["MemoryEnd"]

_NO_LIMITS = Limits(max_bytes=1 << 62, max_entries=1 << 62)
#: What else is packed is for programs that do not do all that a tar says.
_TARS = 2
_KINDS = {"directory": tarfile.DIRTYPE, "symlink": tarfile.SYMTYPE, "file": tarfile.REGTYPE}


class MemoryEnd:
    """A folder in memory.

    Args:
        tree: The backend, by what a test can do with its tree.
        folder: The folder.
    """

    def __init__(self, tree: TreeAccess, folder: str) -> None:
        self._tree = tree
        self._folder = folder

    async def put(self, prepare: Prepare, pieces: Pieces) -> None:
        """See `ProgramEnd`."""
        await prepare()
        sink = _TreeSink(self._tree, self._folder)
        reader = ArchiveReader(sink, self._folder, _NO_LIMITS)
        sections = 0
        while (piece := await pieces()) is not None:
            if not piece:
                reader.begin_again()
                sections += 1
            elif sections < _TARS:
                reader.feed(piece)

    async def take(self, prepare: Prepare, feed: Feed) -> list[str]:
        """See `ProgramEnd`."""
        await prepare()
        for piece in list(self._tar()):
            await feed(piece)
        return []

    def _tar(self) -> Iterator[bytes]:
        first_names: dict[int, str] = {}
        for path in self._tree.paths(self._folder):
            full = posixpath.join(self._folder, path.rstrip("/"))
            info = self._tree.lstat(full)
            entry = tarfile.TarInfo(path)
            entry.type = _KINDS.get(info.kind, tarfile.FIFOTYPE)
            entry.mode, entry.mtime = info.mode, info.mtime_ns // 10**9
            content = b""
            if info.inode in first_names:
                entry.type, entry.linkname = tarfile.LNKTYPE, first_names[info.inode]
            elif info.kind == "symlink":
                entry.linkname = self._tree.readlink(full)
            elif info.kind == "file":
                content = self._tree.read_bytes(full)
                entry.size = len(content)
                first_names[info.inode] = path
            yield entry.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
            yield content
            yield bytes(-len(content) % tarfile.BLOCKSIZE)
        yield bytes(2 * tarfile.BLOCKSIZE)


class _TreeSink:
    """See `Sink`: makes what comes in a tree in memory, where everything belongs to its user."""

    def __init__(self, tree: TreeAccess, folder: str) -> None:
        self._tree = tree
        self._folder = folder
        self._content: list[bytes] = []
        self._entry: Entry | None = None

    def entry(self, entry: Entry) -> None:
        path = self._path(entry.path)
        if entry.kind == "directory":
            self._tree.mkdir(path, mode=entry.mode)
            self._set_time(path, entry)
        elif entry.kind == "symlink":
            self._tree.symlink(os.fsdecode(entry.target), path)
        elif entry.kind == "link":
            self._tree.link(self._path(entry.target), path)
        self._entry, self._content = entry, []

    def data(self, piece: memoryview) -> None:
        self._content.append(bytes(piece))

    def end(self) -> None:
        assert self._entry is not None
        path = self._path(self._entry.path)
        self._tree.write(path, b"".join(self._content), mode=self._entry.mode)
        self._set_time(path, self._entry)

    def _path(self, below: bytes) -> str:
        return posixpath.join(self._folder, shown(below))

    def _set_time(self, path: str, entry: Entry) -> None:
        self._tree.set_mtime(path, int(entry.mtime) * 10**9)
