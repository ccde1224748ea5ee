"""What a tree in memory can be filled with: values for a mapping, or a copy of a real folder."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal

from backends.memory.nodes import SUPERUSER, Node, User
from backends.memory.tree import fail

if TYPE_CHECKING:
    from backends.memory.tree import Tree
    from operations import EntryKind

__all__ = [
    "Directory",
    "File",
    "Seed",
    "SeedFiles",
    "Special",
    "Symlink",
    "copy_directory",
    "plant",
    "plant_all",
]


@dataclass(frozen=True, slots=True)
class File:
    """A file with more than its content.

    Attributes:
        content: Bytes, or text that is stored as UTF-8.
        mode: Permission bits; None for 0666 less the umask.
        uid: Owner; None for the backend's user.
        gid: Group; None for the backend's.
        mtime_ns: Time of the last change, nanoseconds since 1970; None for now.
    """

    content: bytes | str = b""
    _: KW_ONLY
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    mtime_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """A folder with more than its name; the attributes are those of `File`.

    Attributes:
        mode: Permission bits; None for 0777 less the umask.
        uid: Owner.
        gid: Group.
        mtime_ns: Time of the last change.
    """

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    mtime_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Symlink:
    """A symbolic link; its target need not exist.

    Attributes:
        target: The link's text, absolute or relative to the link's own folder.
    """

    target: str


@dataclass(frozen=True, slots=True)
class Special:
    """Something that is never opened.

    Attributes:
        kind: What it is.
    """

    kind: Literal["fifo", "socket", "device", "other"]


Seed = str | bytes | File | Directory | Symlink | Special | None
SeedFiles = Mapping[str, Seed]


def plant(tree: Tree, path: bytes, seed: Seed, owner: User) -> Node:
    """Put `seed` at `path`, with the folders above it, whatever the rights there are.

    A file that is there gets the new content and keeps its identity (as by `open(path, "wb")`);
    a folder that is there stays.

    Args:
        tree: Where to.
        path: Absolute; a "/" at its end is allowed for a folder only.
        seed: None is a folder; text is stored as UTF-8, lone surrogates as the bytes they mean.
        owner: Whom it belongs to where the seed does not say; their umask applies.

    Raises:
        OSError: ENOTDIR (a file is in the way), EISDIR (a folder is), EEXIST.
        ValueError: Not a folder, but the path ends with "/".
    """
    kind = _kind(seed)
    if kind == "directory":
        return _describe(tree, tree.make_folders(path, owner, by=SUPERUSER), seed)
    if path.endswith(b"/"):
        raise ValueError(f"{os.fsdecode(path)!r} ends with '/', so it has to be a folder")
    tree.make_folders(os.path.dirname(path), owner, by=SUPERUSER)
    place = tree.locate(path, SUPERUSER, follow=kind == "file")
    content = _content(seed)
    if place.node is None:
        mode = 0o777 if kind == "symlink" else 0o666 & ~owner.umask
        return _describe(tree, tree.add(place, kind, mode, owner, content, by=SUPERUSER), seed)
    if place.node.kind != kind or kind != "file":
        fail(errno.EISDIR if place.node.is_folder else errno.EEXIST)
    tree.set_content(place.node, content)
    return _describe(tree, place.node, seed)


def plant_all(tree: Tree, seeds: Mapping[bytes, Seed], owner: User) -> None:
    """Put every seed at its path; what is said about folders holds after all is in them.

    Raises:
        OSError: As `plant`.
        ValueError: As `plant`.
    """
    for path, seed in seeds.items():
        plant(tree, path, seed, owner)
    for path, seed in seeds.items():
        if isinstance(seed, Directory):
            _describe(tree, tree.get(path, SUPERUSER), seed)


def copy_directory(tree: Tree, source: str, path: bytes, owner: User) -> tuple[str, ...]:
    """Copy what is in the real folder `source` into the folder `path`; blocks while it reads.

    Modes, modification times, symlinks (as they are) and hard links are kept; everything
    belongs to `owner`.

    Returns:
        A line for each name that was left out, "name: why", sorted: FIFOs, devices, sockets, and
        what could not be read.

    Raises:
        OSError: `source` itself is not a folder that can be read.
    """
    top = os.fsencode(source)
    folders: dict[bytes, Seed] = {path: _folder_like(os.stat(top))}
    skipped: list[str] = []
    first_names: dict[tuple[int, int], bytes] = {}
    todo = os.listdir(top)
    while todo:
        name = todo.pop()
        real, target = os.path.join(top, name), os.path.join(path, name)
        try:
            info = os.lstat(real)
            if stat.S_ISDIR(info.st_mode):
                folders[target] = _folder_like(info)
                tree.make_folders(target, owner, by=SUPERUSER)
                todo.extend(os.path.join(name, child) for child in os.listdir(real))
            elif first := first_names.get((info.st_dev, info.st_ino)):
                tree.link(first, target, SUPERUSER)
            else:
                plant(tree, target, _read(real, info), owner)
                first_names[info.st_dev, info.st_ino] = target
        except OSError as error:
            skipped.append(f"{os.fsdecode(name)}: {error.strerror}")
    plant_all(tree, folders, owner)
    return tuple(sorted(skipped))


def _kind(seed: Seed) -> EntryKind:
    if seed is None or isinstance(seed, Directory):
        return "directory"
    if isinstance(seed, Symlink):
        return "symlink"
    return seed.kind if isinstance(seed, Special) else "file"


def _content(seed: Seed) -> bytes:
    value: str | bytes = b""
    if isinstance(seed, Symlink):
        value = seed.target
    elif isinstance(seed, File):
        value = seed.content
    elif isinstance(seed, (str, bytes)):
        value = seed
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)


def _describe(tree: Tree, node: Node, seed: Seed) -> Node:
    """Set what the seed says about mode, owner and time."""
    if isinstance(seed, (File, Directory)):
        tree.change(node, mode=seed.mode, uid=seed.uid, gid=seed.gid, mtime_ns=seed.mtime_ns)
    return node


def _folder_like(info: os.stat_result) -> Directory:
    return Directory(mode=stat.S_IMODE(info.st_mode), mtime_ns=info.st_mtime_ns)


def _read(real: bytes, info: os.stat_result) -> Seed:
    """Return a seed for a real file or symlink; nothing else is opened."""
    if stat.S_ISLNK(info.st_mode):
        return Symlink(os.fsdecode(os.readlink(real)))
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "not a regular file, folder or symlink")
    with open(real, "rb") as stream:
        content = stream.read()
    return File(content, mode=stat.S_IMODE(info.st_mode), mtime_ns=info.st_mtime_ns)
