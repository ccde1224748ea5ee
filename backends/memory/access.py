"""A test's own hands on a tree in memory: prepare and inspect files without any operation."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backends.memory.nodes import SUPERUSER, Node, Stat, User
from backends.memory.seed import Directory, File, Special, Symlink, plant
from backends.memory.tree import fail

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from backends.memory.tree import Tree

__all__ = ["TreeAccess", "to_bytes", "to_text"]


def to_bytes(path: str) -> bytes:
    """Return a path's bytes; lone surrogates are the bytes that they stand for (PEP 383)."""
    return path.encode("utf-8", "surrogateescape")


def to_text(path: bytes) -> str:
    """Return a path's text; bytes that are not UTF-8 become lone surrogates (PEP 383)."""
    return path.decode("utf-8", "surrogateescape")


class TreeAccess:
    """Plain, synchronous calls on a tree in memory.

    They pass every permission check, meet no injected fault and are not recorded, so a test can
    prepare what operations would be refused. What they make belongs to the backend's user.
    Paths are absolute, begin with `~`, or are relative to `cwd`; symlinks are followed except
    where said otherwise. Faults are the builtin ones with the kernel's errno
    (`FileNotFoundError`, `NotADirectoryError`, `IsADirectoryError`, `FileExistsError`,
    `OSError`), raised with the path as it was given.

    Args:
        tree: The tree.
        cwd: Absolute path that relative ones are against.
        home: Absolute path that `~` stands for.
        user: Whom new files belong to.
    """

    def __init__(self, tree: Tree, *, cwd: str, home: str, user: User) -> None:
        self._tree = tree
        self._user = user
        self._home = home
        self.cwd = cwd

    def write(self, path: str, content: str | bytes, *, mode: int | None = None) -> None:
        """Make `content` the whole content of a file, in place, with the folders above it.

        Args:
            path: Where.
            content: Bytes, or text that is stored as UTF-8.
            mode: Permission bits; None leaves an old file's and gives a new one 0666 less the
                umask.
        """
        with _naming(path):
            plant(self._tree, self._absolute(path), File(content, mode=mode), self._user)

    def mkdir(self, path: str, *, mode: int | None = None) -> None:
        """Make a folder with those above it; one that is there is fine.

        Args:
            path: Where.
            mode: Permission bits; None leaves an old folder's and gives a new one 0777 less the
                umask.
        """
        with _naming(path):
            plant(self._tree, self._absolute(path), Directory(mode=mode), self._user)

    def symlink(self, target: str, path: str) -> None:
        """Make a symlink with the text `target`, with the folders above it."""
        with _naming(path):
            plant(self._tree, self._absolute(path), Symlink(target), self._user)

    def special(self, path: str, kind: Literal["fifo", "socket", "device", "other"]) -> None:
        """Make something that is never opened, with the folders above it."""
        with _naming(path):
            plant(self._tree, self._absolute(path), Special(kind), self._user)

    def mkfifo(self, path: str) -> None:
        """Make a FIFO, with the folders above it."""
        self.special(path, "fifo")

    def link(self, existing: str, path: str) -> None:
        """Give the file `existing` a second name (a hard link)."""
        with _naming(path):
            self._tree.link(self._absolute(existing), self._absolute(path), SUPERUSER)

    def remove(self, path: str) -> None:
        """Remove a file, a link itself, or a folder with all below it."""
        with _naming(path):
            self._tree.remove(self._absolute(path), SUPERUSER)

    def rename(self, old: str, new: str) -> None:
        """Move a name; a file at `new` is replaced."""
        with _naming(old):
            self._tree.rename(self._absolute(old), self._absolute(new), SUPERUSER)

    def chmod(self, path: str, mode: int) -> None:
        """Set permission bits (with setuid, setgid and sticky)."""
        self._tree.change(self._get(path), mode=mode)

    def chown(self, path: str, uid: int, gid: int | None = None) -> None:
        """Set the owner and, unless None, the group."""
        self._tree.change(self._get(path), uid=uid, gid=gid)

    def set_mtime(self, path: str, mtime_ns: int) -> None:
        """Set the modification time, in nanoseconds since 1970."""
        self._tree.change(self._get(path), mtime_ns=mtime_ns)

    def read_bytes(self, path: str) -> bytes:
        """Return a file's content."""
        node = self._get(path)
        if node.kind != "file":
            with _naming(path):
                fail(errno.EISDIR if node.is_folder else errno.EINVAL)
        return node.content

    def read_text(self, path: str) -> str:
        """Return a file's content as UTF-8, with its line endings as they are.

        Raises:
            UnicodeDecodeError: It is not UTF-8.
        """
        return self.read_bytes(path).decode("utf-8")

    def readlink(self, path: str) -> str:
        """Return a symlink's text; anything else is an `OSError` (EINVAL)."""
        node = self._get(path, follow=False)
        if node.kind != "symlink":
            with _naming(path):
                fail(errno.EINVAL)
        return to_text(node.content)

    def has(self, path: str) -> bool:
        """Return True if the name is there, be it a broken symlink."""
        try:
            self._get(path, follow=False)
        except OSError:
            return False
        return True

    def stat(self, path: str) -> Stat:
        """Return what is known about what the path leads to."""
        return Stat.of(self._get(path))

    def lstat(self, path: str) -> Stat:
        """Return what is known about the name itself, which may be a symlink."""
        return Stat.of(self._get(path, follow=False))

    def names(self, path: str = ".") -> list[str]:
        """Return the names in a folder, sorted by code point."""
        return sorted(to_text(name) for name in self._folder(path).children)

    def paths(self, root: str = ".") -> list[str]:
        """Return every path below `root`, relative to it, sorted; folders end with "/"."""
        return sorted(
            to_text(path) + ("/" if node.is_folder else "") for path, node in self._below(root)
        )

    def snapshot(self, root: str = ".") -> dict[str, bytes | Symlink | Special | None]:
        """Return everything below `root` by its path, sorted, for comparing a before and after.

        Files are their bytes, symlinks `Symlink`, folders None (their paths end with "/"), and
        what is never opened is `Special`. Modes, owners and times are not in it. It can be given
        to `MemoryBackend` again.
        """
        found = {
            to_text(path) + ("/" if node.is_folder else ""): _seed(node)
            for path, node in self._below(root)
        }
        return dict(sorted(found.items()))

    def _absolute(self, path: str) -> bytes:
        if "\0" in path:
            raise ValueError(f"{path!r}: a path has no NUL")
        if path == "~" or path.startswith("~/"):
            path = self._home + path[1:]
        return to_bytes(os.path.join(self.cwd, path))

    def _get(self, path: str, *, follow: bool = True) -> Node:
        with _naming(path):
            return self._tree.get(self._absolute(path), SUPERUSER, follow=follow)

    def _folder(self, path: str) -> Node:
        node = self._get(path)
        if not node.is_folder:
            with _naming(path):
                fail(errno.ENOTDIR)
        return node

    def _below(self, root: str) -> Iterator[tuple[bytes, Node]]:
        todo = [(b"", self._folder(root))]
        while todo:
            above, folder = todo.pop()
            for name, node in folder.children.items():
                path = os.path.join(above, name)
                yield path, node
                if node.is_folder:
                    todo.append((path, node))


def _seed(node: Node) -> bytes | Symlink | Special | None:
    if node.kind == "directory":
        return None
    if node.kind == "file":
        return node.content
    return Symlink(to_text(node.content)) if node.kind == "symlink" else Special(node.kind)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Give an OSError from the tree the path as the caller wrote it."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = path
        raise
