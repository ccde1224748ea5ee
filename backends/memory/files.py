"""File operations on a tree in memory, step for step what the engine does on a real one.

Paths are bytes as the operations received them; conditions are the engine's Faults, results its
plain values. Every function is one moment: nothing else happens to the tree meanwhile.
"""

from __future__ import annotations

import errno
import hashlib
import heapq
from typing import TYPE_CHECKING, Any

from backends.engine.content import image_mime_type
from backends.engine.faults import Fault
from backends.engine.suggest import name_order
from backends.memory.nodes import EXECUTE, READ, WRITE
from backends.memory.suggest import Suggestions
from backends.memory.tree import fail

if TYPE_CHECKING:
    from backends.memory.nodes import Node, User
    from backends.memory.tree import Location, Tree

__all__ = ["Files"]

_NOT_REGULAR = {"fifo": "is a FIFO", "socket": "is a socket", "device": "is a character device"}


class Files:
    """The file operations of one user.

    Args:
        tree: The tree.
        user: Whose rights are asked for.
        home: Absolute path that `~` stands for.
    """

    def __init__(self, tree: Tree, user: User, home: bytes) -> None:
        self._tree = tree
        self._user = user
        self._home = home
        self._suggestions = Suggestions(tree, user, self.expand)

    def expand(self, path: bytes) -> bytes:
        """Return `path` as an absolute path, "~" replaced.

        Raises:
            Fault: "path" when it is empty, holds NUL, or is neither absolute nor under "~".
        """
        if not path:
            raise Fault("path", path, "the path is empty")
        if b"\0" in path:
            raise Fault("path", path, "the path holds a NUL byte")
        if path.startswith(b"/"):
            return path
        if path == b"~" or path.startswith(b"~/"):
            return self._home.rstrip(b"/") + path[1:] or b"/"
        raise Fault("path", path, "the path is neither absolute nor under ~/")

    def locate(self, path: bytes) -> Location:
        """Return where a path leads, through symlinks.

        Raises:
            Fault: As `operations.read.ReadOperations.access` says, but for what is there.
        """
        with self._suggestions.faults_about(path):
            return self._tree.locate(self.expand(path), self._user)

    def open(self, path: bytes) -> Node:
        """Return the regular file at `path` if it may be read.

        Raises:
            Fault: As `operations.read.ReadOperations.access` says.
        """
        with self._suggestions.faults_about(path):
            node = self._tree.get(self.expand(path), self._user)
            self._refuse_irregular(path, node)
            if not self._user.may(node, READ):
                fail(errno.EACCES)
            return node

    def open_folder(self, path: bytes, *, wanted: int = READ) -> Node:
        """Return the folder at `path` if it may be listed, or with EXECUTE, entered.

        Raises:
            Fault: "not_found", "not_directory", "denied" or "path".
        """
        with self._suggestions.faults_about(path):
            node = self._tree.get(self.expand(path), self._user)
            if not node.is_folder:
                fail(errno.ENOTDIR)
            if not self._user.may(node, EXECUTE if wanted == EXECUTE else READ):
                fail(errno.EACCES)
            return node

    def read(self, path: bytes, limit: int) -> bytes:
        """Return the whole content.

        Raises:
            Fault: "too_large", or as `open`.
        """
        node = self.open(path)
        if len(node.content) > limit:
            raise Fault("too_large", path, len(node.content), limit)
        return node.content

    def version(self, path: bytes) -> dict[str, Any]:
        """Return {"device", "inode", "digest"} of a file."""
        return self._version(self.open(path))

    def image_mime_type(self, path: bytes) -> str | None:
        """Return the type of an image, by its content."""
        found: str | None = image_mime_type(self.open(path).content[:64])
        return found

    def is_directory(self, path: bytes) -> bool:
        """Tell whether a folder is there.

        Raises:
            Fault: "not_found" for nothing; "denied" where it cannot be told.
        """
        with self._suggestions.faults_about(path):
            return self._tree.get(self.expand(path), self._user).is_folder

    def exists(self, path: bytes) -> bool:
        """Tell whether something is there, through symlinks.

        Raises:
            Fault: It cannot be told.
        """
        with self._suggestions.faults_about(path):
            try:
                self._tree.get(self.expand(path), self._user)
            except (FileNotFoundError, NotADirectoryError):
                return False
            return True

    def list_directory(self, path: bytes, limit: int) -> dict[str, Any]:
        """Return {"total", "entries"} as the engine's `list_directory` does."""
        children = self.open_folder(path).children
        first = heapq.nsmallest(limit, children, key=name_order)
        at = self.locate(path).path
        entries = [self._entry(at, name, children[name]) for name in first]
        return {"total": len(children), "entries": entries}

    def make_directory(self, path: bytes) -> None:
        """Make a folder and those above it."""
        with self._suggestions.faults_about(path):
            self._tree.make_folders(self.expand(path), self._user)

    def replace(
        self,
        path: bytes,
        content: bytes,
        *,
        make_parents: bool = False,
        expected: tuple[int, int, bytes] | None = None,
    ) -> dict[str, Any]:
        """Make `content` the whole content of a file; return {"created", "atomic", "reason"}.

        Raises:
            Fault: As `operations.write.ReplaceOperations.replace_file` says.
        """
        with self._suggestions.faults_about(path):
            place = self._place_for(path, make_parents=make_parents, expected=expected is not None)
            if place.node is None:
                if expected is not None:
                    raise Fault("changed", path)
                mode = 0o666 & ~self._user.umask
                self._tree.add(place, "file", mode, self._user, content)
                return {"created": True, "atomic": True, "reason": None}
            self._check_replaceable(path, place.node, expected)
            reason = self._reason_for_in_place(place, place.node)
            if reason is None:
                self._tree.replace(place, content)
            else:
                self._tree.set_content(place.node, content)
            return {"created": False, "atomic": reason is None, "reason": reason}

    def _place_for(self, path: bytes, *, make_parents: bool, expected: bool) -> Location:
        absolute = self.expand(path)
        if absolute.endswith(b"/"):
            raise self._suggestions.is_directory(path)
        try:
            return self._tree.locate(absolute, self._user)
        except FileNotFoundError:
            if expected:
                raise Fault("changed", path) from None
            if not make_parents:
                raise
        self._tree.make_folders(absolute.rpartition(b"/")[0] or b"/", self._user)
        return self._tree.locate(absolute, self._user)

    def _check_replaceable(
        self, path: bytes, node: Node, expected: tuple[int, int, bytes] | None
    ) -> None:
        self._refuse_irregular(path, node)
        if not self._user.may(node, WRITE):
            fail(errno.EACCES)  # a rename would not ask
        if expected is None:
            return
        if not self._user.may(node, READ):
            fail(errno.EACCES)
        version = self._version(node)
        if expected != (version["device"], version["inode"], version["digest"]):
            raise Fault("changed", path)

    def _reason_for_in_place(self, place: Location, node: Node) -> str | None:
        """Return why a rename would change what the file is, or None if it would not."""
        folder = place.folder
        assert folder is not None
        if node.links > 1:
            return "hard_links"
        if not (self._user.may(folder, WRITE) and self._user.may(folder, EXECUTE)):
            return "folder_not_writable"
        if self._user.uid != 0 and (node.uid, node.gid) != (self._user.uid, self._user.gid):
            return "owner"
        if not self._user.may_rename_over(folder, node):
            return "folder_not_writable"
        return None

    def _refuse_irregular(self, path: bytes, node: Node) -> None:
        if node.is_folder:
            raise self._suggestions.is_directory(path)
        if node.kind != "file":
            raise Fault("not_regular", path, _NOT_REGULAR.get(node.kind, "is not a regular file"))

    def _version(self, node: Node) -> dict[str, Any]:
        digest = hashlib.sha256(node.content).digest()
        return {"device": self._tree.device, "inode": node.inode, "digest": digest}

    def _entry(self, folder: bytes, name: bytes, node: Node) -> list[Any]:
        if node.kind != "symlink":
            return [name, node.kind, None, False]
        path = folder.rstrip(b"/") + b"/" + name
        try:
            self._tree.get(path, self._user, follow=False)
        except OSError:
            return [name, node.kind, None, False]  # in a folder that may not be entered
        try:
            self._tree.get(path, self._user)
            broken = False
        except OSError as error:
            broken = error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
        return [name, node.kind, node.content, broken]
