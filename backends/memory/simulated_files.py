"""What a simulated shell does to a tree in memory: system calls of one user, within bounds."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from backends.engine.frames import WireError
from backends.memory.nodes import READ, WRITE
from backends.memory.simulated_wire import MOST_CONTENT
from backends.memory.tree import fail

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.memory.nodes import Node, User
    from backends.memory.tree import Location, Tree

__all__ = ["SimulatedFiles"]

#: What one command may add to the tree, so that no loop can fill this machine's memory.
_MOST_ADDED = 256 << 20
#: What a new name counts for in it, beside its content.
_NAME_COST = 1024

_KINDS = {"file": 0, "directory": 1, "symlink": 2}


class SimulatedFiles:
    """Answer the requests of one command; each is one moment, with a kernel's checks and errors.

    Args:
        tree: The tree.
        user: Whose rights are asked for.
    """

    def __init__(self, tree: Tree, user: User) -> None:
        self._tree = tree
        self._user = user
        self._room = _MOST_ADDED
        self._requests: dict[str, tuple[Callable[..., Any], tuple[type, ...]]] = {
            "read": (self._read, (bytes,)),
            "write": (self._write, (bytes, bytes, int)),
            "stat": (self._stat, (bytes, bool)),
            "names": (self._names, (bytes,)),
            "mkdir": (self._mkdir, (bytes, bool)),
            "unlink": (self._unlink, (bytes,)),
            "rmdir": (self._rmdir, (bytes,)),
            "rename": (self._rename, (bytes, bytes)),
            "chmod": (self._chmod, (bytes, int)),
            "symlink": (self._symlink, (bytes, bytes)),
            "link": (self._link, (bytes, bytes)),
            "readlink": (self._readlink, (bytes,)),
            "utime": (self._utime, (bytes, float)),
            "realpath": (self._realpath, (bytes,)),
        }

    def answer(self, kind: str, arguments: list[Any]) -> list[Any]:
        """Do what a request asks for; return ["done", value] or ["error", errno].

        Raises:
            WireError: There is no such request. Nothing has changed then.
        """
        request, types = self._requests.get(kind, (None, ()))
        if request is None or tuple(map(type, arguments)) != types:
            raise WireError(f"no request {kind!r} with {len(arguments)} arguments")
        try:
            if any(b"\0" in item for item in arguments[:1]):
                fail(errno.EINVAL)
            return ["done", request(*arguments)]
        except OSError as error:
            return ["error", error.errno or errno.EIO]

    def _read(self, path: bytes) -> bytes:
        node = self._file(self._tree.get(path, self._user))
        if not self._user.may(node, READ):
            fail(errno.EACCES)
        if len(node.content) > MOST_CONTENT:
            fail(errno.EFBIG)
        return node.content

    def _write(self, path: bytes, content: bytes, mode: int) -> None:
        """Make `content` the whole content, in place; a new file gets `mode` less the umask."""
        place = self._tree.locate(path, self._user)
        if place.node is None:
            self._add(place, "file", mode & 0o777 & ~self._user.umask, content)
            return
        node = self._file(place.node)
        if not self._user.may(node, WRITE):
            fail(errno.EACCES)
        self._spend(max(0, len(content) - len(node.content)))
        self._tree.set_content(node, content)

    def _stat(self, path: bytes, follow: bool) -> list[int]:  # noqa: FBT001 - as from the wire
        """Return kind (3 for what is never opened), mode, size, mtime in ns, links."""
        node = self._tree.get(path, self._user, follow=follow)
        kind = _KINDS.get(node.kind, 3)
        return [kind, node.mode, len(node.content), node.mtime_ns, node.links]

    def _names(self, path: bytes) -> list[bytes]:
        node = self._tree.get(path, self._user)
        if not node.is_folder:
            fail(errno.ENOTDIR)
        if not self._user.may(node, READ):
            fail(errno.EACCES)
        return sorted(node.children)

    def _mkdir(self, path: bytes, parents: bool) -> None:  # noqa: FBT001 - as from the wire
        if parents:
            self._spend(_NAME_COST * path.count(b"/"))
            self._tree.make_folders(path, self._user)
            return
        mode = 0o777 & ~self._user.umask
        self._add(self._tree.locate(path, self._user, follow=False), "directory", mode)

    def _unlink(self, path: bytes) -> None:
        if self._tree.get(path, self._user, follow=False).is_folder:
            fail(errno.EISDIR)
        self._tree.remove(path, self._user)

    def _rmdir(self, path: bytes) -> None:
        node = self._tree.get(path, self._user, follow=False)
        if not node.is_folder:
            fail(errno.ENOTDIR)
        if node.children:
            fail(errno.ENOTEMPTY)
        self._tree.remove(path, self._user)

    def _rename(self, old: bytes, new: bytes) -> None:
        _check_text(new)
        self._tree.rename(old, new, self._user)

    def _chmod(self, path: bytes, mode: int) -> None:
        self._tree.change(self._own(path), mode=mode)

    def _symlink(self, path: bytes, target: bytes) -> None:
        _check_text(target)
        place = self._tree.locate(path, self._user, follow=False)
        self._add(place, "symlink", 0o777, target)

    def _link(self, path: bytes, existing: bytes) -> None:
        _check_text(existing)
        self._spend(_NAME_COST)
        self._tree.link(existing, path, self._user)

    def _readlink(self, path: bytes) -> bytes:
        node = self._tree.get(path, self._user, follow=False)
        if node.kind != "symlink":
            fail(errno.EINVAL)
        return node.content

    def _utime(self, path: bytes, seconds: float) -> None:
        if not 0 <= seconds < 1 << 33:
            fail(errno.EINVAL)
        self._tree.change(self._own(path), mtime_ns=round(seconds * 1e9))

    def _realpath(self, path: bytes) -> bytes:
        return self._tree.locate(path, self._user).path

    def _own(self, path: bytes) -> Node:
        """Return the node if it is the user's to change."""
        node = self._tree.get(path, self._user)
        if self._user.uid not in (0, node.uid):
            fail(errno.EPERM)
        return node

    def _file(self, node: Node) -> Node:
        """Return a regular file; anything else is never opened, so that nothing can wait for it."""
        if node.is_folder:
            fail(errno.EISDIR)
        if node.kind != "file":
            fail(errno.ENXIO)
        return node

    def _add(self, place: Location, kind: Any, mode: int, content: bytes = b"") -> None:
        self._spend(len(content) + _NAME_COST)
        self._tree.add(place, kind, mode, self._user, content)

    def _spend(self, size: int) -> None:
        if size > self._room:
            fail(errno.ENOSPC)
        self._room -= size


def _check_text(path: bytes) -> None:
    if not path or b"\0" in path:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
