"""The filesystem in memory: names, links and rights, with the answers that a Linux kernel gives.

Paths are absolute bytes. Every fault is an OSError with the errno that Linux has for it and no
more; `files.py` turns them into the operations' errors. Nothing here waits, so on an event loop
every call is one moment. Contents are immutable bytes and are shared by copies.
"""

from __future__ import annotations

import errno
import itertools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from backends.engine.beneath import outside_text
from backends.memory.nodes import EXECUTE, SUPERUSER, WRITE, Node, User

if TYPE_CHECKING:
    from collections.abc import Callable

    from operations import EntryKind

__all__ = ["Location", "Tree", "fail"]

_MAX_LINKS = 40  # Linux: MAXSYMLINKS
_MAX_NAME = 255
_MAX_PATH = 4095

_devices = itertools.count(1)


def fail(number: int) -> NoReturn:
    """Raise the OSError that the kernel has for `number`."""
    raise OSError(number, os.strerror(number))


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where a path leads.

    Attributes:
        path: The path without links, "." and "..".
        node: What is there, or None when only the last name is missing.
        folder: The folder that holds the name, or None for "/".
        name: The last name in `folder`; empty for "/".
    """

    path: bytes
    node: Node | None
    folder: Node | None
    name: bytes


class Tree:
    """A filesystem of its own, with its own device number; "/" is there from the start.

    Args:
        wall_ns: Tells the time for modification times.
        owner: Whom "/" belongs to.
    """

    def __init__(self, wall_ns: Callable[[], int], owner: User = SUPERUSER) -> None:
        self.device = next(_devices)
        self.version = 0  # counts changes
        self._wall_ns = wall_ns
        self._inodes = itertools.count(2)
        self.root = self._node("directory", 0o755, owner)
        self._frozen: tuple[int, Tree] | None = None

    def locate(self, path: bytes, user: User, *, follow: bool = True) -> Location:
        """Walk `path` as the kernel does.

        Args:
            path: Absolute; a "/" at its end asks for a folder.
            user: Needs the right to search every folder on the way.
            follow: Follow a symlink that the last name is.

        Raises:
            OSError: ENOENT (a folder on the way is missing), ENOTDIR, EACCES, ELOOP,
                ENAMETOOLONG; EXDEV where it leads out of what the user is confined to.
        """
        if len(path) > _MAX_PATH:
            fail(errno.ENAMETOOLONG)
        trail, todo = self._begin(path, user)
        top = len(trail)
        links = 0
        while todo:
            folder, name = trail[-1][1], todo.pop()
            _check_search(folder, user)
            if name == b".":
                continue
            if name == b"..":
                if len(trail) == top and user.roots:
                    raise outside(user.roots[0])
                del trail[max(1, len(trail) - 1) :]
                continue
            if len(name) > _MAX_NAME:
                fail(errno.ENAMETOOLONG)
            node = folder.children.get(name)
            if node is None:
                if todo:
                    fail(errno.ENOENT)
                return Location(path=_join(trail, name), node=None, folder=folder, name=name)
            if node.kind == "symlink" and (todo or follow):
                links += 1
                if links > _MAX_LINKS:
                    fail(errno.ELOOP)
                if node.content.startswith(b"/"):
                    trail, parts = self._begin(node.content, user)
                    top = len(trail)
                    todo.extend(parts)
                else:
                    todo.extend(_parts(node.content))
                continue
            trail.append((name, node))
        name, node = trail[-1]
        folder_above = trail[-2][1] if len(trail) > 1 else None
        return Location(path=_join(trail), node=node, folder=folder_above, name=name)

    def get(self, path: bytes, user: User, *, follow: bool = True) -> Node:
        """Return the node at `path`.

        Raises:
            OSError: ENOENT where nothing is there; otherwise as `locate`.
        """
        node = self.locate(path, user, follow=follow).node
        if node is None:
            fail(errno.ENOENT)
        return node

    def add(
        self,
        place: Location,
        kind: EntryKind,
        mode: int,
        owner: User,
        content: bytes = b"",
        *,
        by: User | None = None,
    ) -> Node:
        """Make a new node at a location where nothing is; `mode` is taken as it is.

        Args:
            place: From `locate`.
            kind: What to make.
            mode: Permission bits.
            owner: Whom it belongs to.
            content: Bytes of a file, text of a symlink.
            by: Whose rights are asked for; the owner's by default.

        Raises:
            OSError: EEXIST, or EACCES where the folder takes no new names.
        """
        folder = self._folder_for_new(place, by or owner)
        node = self._node(kind, mode, owner, content)
        self._enter(folder, place.name, node)
        return node

    def make_folders(self, path: bytes, owner: User, *, by: User | None = None) -> Node:
        """Return the folder at `path`, made with those above it where they are missing.

        Args:
            path: Absolute.
            owner: Whom new ones belong to; they get 0777 less its umask.
            by: Whose rights are asked for; the owner's by default.

        Raises:
            OSError: ENOTDIR where something else is in the way, ENOENT where that is a broken
                symlink; otherwise as `locate` and `add`.
        """
        user = by or owner
        above, missing = self._begin(path, user)
        made = _join(above)
        for part in reversed(missing):
            made = os.path.join(made, part)
            place = self.locate(made, user, follow=False)
            if place.node is None:
                self.add(place, "directory", 0o777 & ~owner.umask, owner, by=user)
            elif not self.get(made, user).is_folder:
                fail(errno.ENOTDIR)
        return self.get(path, user)

    def link(self, existing: bytes, path: bytes, user: User) -> None:
        """Give the file at `existing` a second name.

        Raises:
            OSError: EPERM for a folder; EEXIST; otherwise as `locate`.
        """
        node = self.get(existing, user, follow=False)
        if node.is_folder:
            fail(errno.EPERM)
        place = self.locate(path, user, follow=False)
        self._enter(self._folder_for_new(place, user), place.name, node)
        node.links += 1

    def rename(self, old: bytes, new: bytes, user: User) -> None:
        """Move a name, replacing a file (or an empty folder by a folder) that is at `new`.

        Raises:
            OSError: As rename(2).
        """
        source = self.locate(old, user, follow=False)
        target = self.locate(new, user, follow=False)
        if source.node is None or source.folder is None:
            fail(errno.ENOENT if source.node is None else errno.EBUSY)
        if target.folder is None:
            fail(errno.EBUSY)
        if source.node is target.node:
            return
        if (target.path + b"/").startswith(source.path + b"/"):
            fail(errno.EINVAL)
        self._check_may_take(source, user)
        if target.node is None:
            _check_may_enter(target.folder, user)
        else:
            self._check_may_replace(source.node, target, user)
            self._drop(target.node)
        del source.folder.children[source.name]
        self._touch(source.folder)
        self._enter(target.folder, target.name, source.node)

    def remove(self, path: bytes, user: User) -> None:
        """Remove a name; a folder goes with all below it.

        Raises:
            OSError: ENOENT, EBUSY for "/", EACCES; otherwise as `locate`.
        """
        place = self.locate(path, user, follow=False)
        if place.node is None:
            fail(errno.ENOENT)
        if place.folder is None:
            fail(errno.EBUSY)
        self._check_may_take(place, user)
        self._drop(place.node)
        del place.folder.children[place.name]
        self._touch(place.folder)

    def replace(self, place: Location, content: bytes) -> Node:
        """Put a new file with an old one's mode and owner under its name, as a rename does."""
        old, folder = place.node, place.folder
        assert old is not None
        assert folder is not None
        node = self._node(old.kind, old.mode, User(uid=old.uid, gid=old.gid), content)
        self._drop(old)
        self._enter(folder, place.name, node)
        return node

    def set_content(self, node: Node, content: bytes) -> None:
        """Change a file in place, under all its names."""
        node.content = content
        node.mtime_ns = self._wall_ns()
        self.version += 1

    def change(
        self,
        node: Node,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        mtime_ns: int | None = None,
    ) -> None:
        """Set what is given about a node."""
        node.mode = node.mode if mode is None else mode & 0o7777
        node.uid = node.uid if uid is None else uid
        node.gid = node.gid if gid is None else gid
        node.mtime_ns = node.mtime_ns if mtime_ns is None else mtime_ns
        self.version += 1

    def frozen(self) -> Tree:
        """Return a copy that no later change reaches; the same one until something changes."""
        if self._frozen is None or self._frozen[0] != self.version:
            copy = Tree(self._wall_ns)
            copy.device = self.device
            copy.root = _copy(self.root, {})
            self._frozen = (self.version, copy)
        return self._frozen[1]

    def _begin(self, path: bytes, user: User) -> tuple[list[tuple[bytes, Node]], list[bytes]]:
        """Return where a walk begins, and the names to come, the last one first."""
        trail, todo = [(b"", self.root)], _parts(path)
        if not user.roots:
            return trail, todo
        for root in user.roots:
            names = _parts(root)
            if not names or todo[-len(names) :] == names:
                for name in reversed(names):
                    node = trail[-1][1].children.get(name)
                    if node is None:
                        fail(errno.ENOENT)
                    trail.append((name, node))
                return trail, todo[: len(todo) - len(names)]
        raise outside(user.roots[0])

    def _node(self, kind: EntryKind, mode: int, user: User, content: bytes = b"") -> Node:
        return Node(
            kind=kind,
            inode=next(self._inodes),
            mode=mode & 0o7777,
            uid=user.uid,
            gid=user.gid,
            mtime_ns=self._wall_ns(),
            content=content,
        )

    def _folder_for_new(self, place: Location, user: User) -> Node:
        if place.node is not None or place.folder is None:
            fail(errno.EEXIST)
        _check_may_enter(place.folder, user)
        return place.folder

    def _check_may_take(self, place: Location, user: User) -> None:
        assert place.node is not None
        assert place.folder is not None
        _check_may_enter(place.folder, user)
        if not user.may_rename_over(place.folder, place.node):
            fail(errno.EPERM)

    def _check_may_replace(self, node: Node, target: Location, user: User) -> None:
        assert target.node is not None
        if node.is_folder != target.node.is_folder:
            fail(errno.EISDIR if target.node.is_folder else errno.ENOTDIR)
        if target.node.children:
            fail(errno.ENOTEMPTY)
        self._check_may_take(target, user)

    def _enter(self, folder: Node, name: bytes, node: Node) -> None:
        folder.children[name] = node
        self._touch(folder)

    def _touch(self, folder: Node) -> None:
        folder.mtime_ns = self._wall_ns()
        self.version += 1

    def _drop(self, node: Node) -> None:
        """Count one name less, for a folder with all below it."""
        dropped = [node]
        while dropped:
            one = dropped.pop()
            one.links -= 1
            dropped.extend(one.children.values())


def outside(root: bytes) -> OSError:
    """Return the error for what leads out of a root folder."""
    return OSError(errno.EXDEV, outside_text(root))


def _parts(path: bytes) -> list[bytes]:
    """Return the names of a path, the last one first; "/" at the end is a "." of its own."""
    parts = [part for part in path.split(b"/") if part]
    if path.endswith(b"/") and parts:
        parts.append(b".")
    return parts[::-1]


def _join(trail: list[tuple[bytes, Node]], *more: bytes) -> bytes:
    return b"/".join([*(name for name, _ in trail), *more]) or b"/"


def _check_search(folder: Node, user: User) -> None:
    if not folder.is_folder:
        fail(errno.ENOTDIR)
    if not user.may(folder, EXECUTE):
        fail(errno.EACCES)


def _check_may_enter(folder: Node, user: User) -> None:
    if folder.links < 1:
        fail(errno.ENOENT)  # it was removed meanwhile
    if not (user.may(folder, WRITE) and user.may(folder, EXECUTE)):
        fail(errno.EACCES)


def _copy(root: Node, seen: dict[int, Node]) -> Node:
    """Copy a folder with all below it; two names of one file stay two names of one file."""
    top = _copy_one(root, seen)
    todo = [(root, top)]
    while todo:
        old, new = todo.pop()
        for name, child in old.children.items():
            if child.inode not in seen:
                todo.append((child, _copy_one(child, seen)))
            new.children[name] = seen[child.inode]
    return top


def _copy_one(node: Node, seen: dict[int, Node]) -> Node:
    seen[node.inode] = copy = Node(
        kind=node.kind,
        inode=node.inode,
        mode=node.mode,
        uid=node.uid,
        gid=node.gid,
        mtime_ns=node.mtime_ns,
        links=node.links,
        content=node.content,
    )
    return copy
