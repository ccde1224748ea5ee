"""What a fault about a path in memory says to help: the same as the engine's `suggest`."""

from __future__ import annotations

import errno
import posixpath
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backends.engine.faults import Fault, fault_from_os_error
from backends.engine.suggest import MAX_CLOSEST, MAX_HELD, closest, name_order
from backends.memory.nodes import EXECUTE, READ

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backends.memory.nodes import Node, User
    from backends.memory.tree import Tree

__all__ = ["Suggestions"]

_SAYS = {
    errno.ELOOP: "too many levels of symbolic links",
    errno.ENAMETOOLONG: "the name is too long for the target's file system",
}


class Suggestions:
    """Turn faults of a tree into the engine's, with a look around.

    Args:
        tree: The tree.
        user: Whose rights the look has.
        expand: Turns a path as an operation received it into an absolute one.
    """

    def __init__(self, tree: Tree, user: User, expand: Callable[[bytes], bytes]) -> None:
        self._tree = tree
        self._user = user
        self._expand = expand

    @contextmanager
    def faults_about(self, path: bytes) -> Iterator[None]:
        """Turn an OSError in the block into the Fault about `path` that says most."""
        try:
            yield
        except OSError as error:
            raise self._fault(path, error) from None

    def is_directory(self, path: bytes) -> Fault:
        """Return the fault for a folder where a file is wanted, with its first names."""
        folder = self._open_folder(path)
        if folder is None:
            return Fault("is_directory", path, [], None)
        shown = sorted(folder.children, key=name_order)[:MAX_HELD]
        marked = [self._marked(folder, path, name) for name in shown]
        return Fault("is_directory", path, marked, len(folder.children))

    def _fault(self, path: bytes, error: OSError) -> Fault:
        fault: Fault = fault_from_os_error(error, path)
        if fault.code == "not_found":
            return self._not_found(path)
        if fault.code == "is_directory":
            return self.is_directory(path)
        if fault.code == "not_directory":
            return Fault("not_directory", path, self._file_part(path))
        if error.errno in _SAYS:
            return Fault("path", path, _SAYS[error.errno])
        return fault

    def _not_found(self, path: bytes) -> Fault:
        folder, missing = path.rstrip(b"/"), b""
        while folder not in (b"", b"~"):
            folder, _, missing = folder.rpartition(b"/")
            shown = folder or b"/"
            node = self._open_folder(shown)
            if node is not None:
                return Fault("not_found", path, shown, self._closest_in(node, shown, missing))
            if self._stat(shown) is not None:
                break  # it may not be read, so nothing can be said about what it holds
        return Fault("not_found", path, None, [])

    def _closest_in(self, folder: Node, path: bytes, missing: bytes) -> list[bytes]:
        names = [name for name in folder.children if name != missing]
        link = folder.children.get(missing)
        broken = []
        if link is not None and link.kind == "symlink" and self._user.may(folder, EXECUTE):
            broken = [missing + b"@ -> " + link.content]
        found = closest(missing, names, MAX_CLOSEST - len(broken))
        return broken + [self._marked(folder, path, name) for name in found]

    def _marked(self, folder: Node, path: bytes, name: bytes) -> bytes:
        if not self._user.may(folder, EXECUTE):
            return name
        node = self._stat(posixpath.join(path, name))
        return name + b"/" if node is not None and node.is_folder else name

    def _file_part(self, path: bytes) -> str:
        """Say which part of `path` is a file, or "" when that is the whole of it."""
        at = path.find(b"/", 1)
        while at != -1:
            node = self._stat(path[:at])  # None also above a root folder
            if node is not None and not node.is_folder:
                return f"{path[:at].decode('utf-8', 'backslashreplace')} is a file, not a folder"
            at = path.find(b"/", at + 1)
        return ""

    def _stat(self, path: bytes) -> Node | None:
        try:
            return self._tree.get(self._expand(path), self._user)
        except (OSError, Fault):
            return None

    def _open_folder(self, path: bytes) -> Node | None:
        node = self._stat(path)
        return node if node and node.is_folder and self._user.may(node, READ) else None
