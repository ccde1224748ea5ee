"""How files are prepared on each kind of target."""

from __future__ import annotations

import os
import posixpath
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")


async def _in_thread(function: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(function)


class HostSeeder:
    """Files of this machine, by `os`; every call in a thread, since the loop may not block.

    Args:
        root: What the target's "/" is here.
    """

    def __init__(self, root: str = "") -> None:
        self._root = root

    def _at(self, path: str) -> Path:
        return Path(self._root + path)

    async def put(self, path: str, data: bytes) -> None:
        await self.put_all({path: data})

    async def put_all(self, files: Mapping[str, bytes]) -> None:
        def write() -> None:
            for path, data in files.items():
                self._at(path).parent.mkdir(parents=True, exist_ok=True)
                self._at(path).write_bytes(data)

        await _in_thread(write)

    async def get(self, path: str) -> bytes:
        return await _in_thread(self._at(path).read_bytes)

    async def mkdir(self, path: str) -> None:
        await _in_thread(lambda: self._at(path).mkdir(parents=True, exist_ok=True))

    async def symlink(self, target: str, path: str) -> None:
        def make() -> None:
            self._at(path).parent.mkdir(parents=True, exist_ok=True)
            self._at(path).symlink_to(target)

        await _in_thread(make)

    async def link(self, existing: str, path: str) -> None:
        await _in_thread(lambda: os.link(self._at(existing), self._at(path)))

    async def chmod(self, path: str, mode: int) -> None:
        await _in_thread(lambda: self._at(path).chmod(mode))

    async def mode(self, path: str) -> int:
        return await _in_thread(lambda: stat.S_IMODE(self._at(path).stat().st_mode))

    async def inode(self, path: str) -> int:
        return await _in_thread(lambda: self._at(path).stat().st_ino)

    async def readlink(self, path: str) -> str | None:
        return await _in_thread(
            lambda: os.readlink(self._at(path)) if self._at(path).is_symlink() else None
        )

    async def exists(self, path: str) -> bool:
        return await _in_thread(lambda: os.path.lexists(self._at(path)))

    async def names(self, path: str) -> list[str]:
        return await _in_thread(lambda: sorted(os.listdir(self._at(path))))

    async def remove(self, path: str) -> None:
        def remove() -> None:
            if self._at(path).is_dir() and not self._at(path).is_symlink():
                shutil.rmtree(self._at(path))
            else:
                self._at(path).unlink()

        await _in_thread(remove)

    async def rename(self, old: str, new: str) -> None:
        await _in_thread(lambda: self._at(old).rename(self._at(new)))

    async def fifo(self, path: str) -> None:
        await _in_thread(lambda: os.mkfifo(self._at(path)))


class BelowRoot:
    """Another seeder's methods, with paths of a target whose "/" is a folder there.

    Args:
        seeder: What works outside of that root.
        root: The folder.
    """

    #: Which arguments are paths, where it is not the first alone.
    _PATHS: ClassVar = {"symlink": (1,), "link": (0, 1), "rename": (0, 1)}

    def __init__(self, seeder: Any, root: str) -> None:
        self._seeder = seeder
        self._root = root

    async def put_all(self, files: Mapping[str, bytes]) -> None:
        await self._seeder.put_all({self._root + path: data for path, data in files.items()})

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            paths = self._PATHS.get(name, (0,))
            placed = (
                self._root + argument if position in paths else argument
                for position, argument in enumerate(arguments)
            )
            return getattr(self._seeder, name)(*placed)

        return call


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
