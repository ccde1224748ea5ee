"""How files are prepared on each kind of target."""

from __future__ import annotations

import os
import posixpath
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")


async def _in_thread(function: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(function)


class HostSeeder:
    """Files of this machine, by `os`; every call in a thread, since the loop may not block."""

    async def put(self, path: str, data: bytes) -> None:
        await self.put_all({path: data})

    async def put_all(self, files: Mapping[str, bytes]) -> None:
        def write() -> None:
            for path, data in files.items():
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).write_bytes(data)

        await _in_thread(write)

    async def get(self, path: str) -> bytes:
        return await _in_thread(Path(path).read_bytes)

    async def mkdir(self, path: str) -> None:
        await _in_thread(lambda: Path(path).mkdir(parents=True, exist_ok=True))

    async def symlink(self, target: str, path: str) -> None:
        def make() -> None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).symlink_to(target)

        await _in_thread(make)

    async def link(self, existing: str, path: str) -> None:
        await _in_thread(lambda: os.link(existing, path))

    async def chmod(self, path: str, mode: int) -> None:
        await _in_thread(lambda: Path(path).chmod(mode))

    async def mode(self, path: str) -> int:
        return await _in_thread(lambda: stat.S_IMODE(Path(path).stat().st_mode))

    async def inode(self, path: str) -> int:
        return await _in_thread(lambda: Path(path).stat().st_ino)

    async def readlink(self, path: str) -> str | None:
        return await _in_thread(lambda: os.readlink(path) if Path(path).is_symlink() else None)

    async def exists(self, path: str) -> bool:
        return await _in_thread(lambda: os.path.lexists(path))

    async def names(self, path: str) -> list[str]:
        return await _in_thread(lambda: sorted(os.listdir(path)))

    async def remove(self, path: str) -> None:
        def remove() -> None:
            if Path(path).is_dir() and not Path(path).is_symlink():
                shutil.rmtree(path)
            else:
                Path(path).unlink()

        await _in_thread(remove)

    async def rename(self, old: str, new: str) -> None:
        await _in_thread(lambda: Path(old).rename(new))

    async def fifo(self, path: str) -> None:
        await _in_thread(lambda: os.mkfifo(path))


class TreeSeeder:
    """Files of a tree in memory, by the tree's own functions.

    Args:
        tree: The memory backend.
    """

    def __init__(self, tree: Any) -> None:
        self._tree = tree

    async def put(self, path: str, data: bytes) -> None:
        self._tree.write(path, data)

    async def put_all(self, files: Mapping[str, bytes]) -> None:
        for path, data in files.items():
            self._tree.write(path, data)

    async def get(self, path: str) -> bytes:
        return bytes(self._tree.read_bytes(path))

    async def mkdir(self, path: str) -> None:
        self._tree.mkdir(path)

    async def symlink(self, target: str, path: str) -> None:
        self._tree.mkdir(posixpath.dirname(path))
        self._tree.symlink(target, path)

    async def link(self, existing: str, path: str) -> None:
        self._tree.link(existing, path)

    async def chmod(self, path: str, mode: int) -> None:
        self._tree.chmod(path, mode)

    async def mode(self, path: str) -> int:
        return int(self._tree.stat(path).mode) & 0o7777

    async def inode(self, path: str) -> int:
        return int(self._tree.stat(path).inode)

    async def readlink(self, path: str) -> str | None:
        if self._tree.lstat(path).kind != "symlink":
            return None
        return str(self._tree.readlink(path))

    async def exists(self, path: str) -> bool:
        return bool(self._tree.has(path))

    async def names(self, path: str) -> list[str]:
        return list(self._tree.names(path))

    async def remove(self, path: str) -> None:
        self._tree.remove(path)

    async def rename(self, old: str, new: str) -> None:
        self._tree.rename(old, new)

    async def fifo(self, path: str) -> None:
        self._tree.mkfifo(path)
