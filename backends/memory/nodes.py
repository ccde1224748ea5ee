"""What a tree in memory is made of: nodes with modes and owners, and the users who meet them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from operations import EntryKind

__all__ = ["EXECUTE", "READ", "SUPERUSER", "WRITE", "Node", "Stat", "User"]

READ: Final = 4
WRITE: Final = 2
EXECUTE: Final = 1

_STICKY = 0o1000


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """One inode; several names may lead to it.

    Attributes:
        kind: What it is; it never changes.
        inode: A number of its own within the tree.
        mode: Permission bits, with setuid, setgid and sticky.
        uid: Owner.
        gid: Group.
        mtime_ns: When the content (for a folder: its set of names) changed last.
        links: How many names lead to it; a folder counts itself once.
        content: Bytes of a file, text of a symlink; never changed in place.
        children: Names of a folder.
    """

    kind: EntryKind
    inode: int
    mode: int
    uid: int
    gid: int
    mtime_ns: int
    links: int = 1
    content: bytes = b""
    children: dict[bytes, Node] = field(default_factory=dict)

    @property
    def is_folder(self) -> bool:
        """True for a folder."""
        return self.kind == "directory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """What is known about one node.

    Attributes:
        kind: What it is.
        mode: Permission bits, with setuid, setgid and sticky.
        uid: Owner.
        gid: Group.
        size: Bytes of a file, or of a symlink's text; 0 for anything else.
        inode: Equal for two names of one file.
        links: How many names lead to it.
        mtime_ns: Time of the last change, in nanoseconds since 1970.
    """

    kind: EntryKind
    mode: int
    uid: int
    gid: int
    size: int
    inode: int
    links: int
    mtime_ns: int

    @staticmethod
    def of(node: Node) -> Stat:
        """Return what is known about `node` now."""
        return Stat(
            kind=node.kind,
            mode=node.mode,
            uid=node.uid,
            gid=node.gid,
            size=len(node.content),
            inode=node.inode,
            links=node.links,
            mtime_ns=node.mtime_ns,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Whose rights are asked for; user 0 passes every check, as on Linux.

    Attributes:
        uid: User number.
        gid: The one group that the user is in.
        umask: Permission bits that what this user makes does not get.
        roots: Absolute paths, without links, of the folders that this user is confined to, the
            one to tell about first; none for no confinement.
    """

    uid: int
    gid: int
    umask: int = 0o022
    roots: tuple[bytes, ...] = ()

    def may(self, node: Node, wanted: Literal[1, 2, 4]) -> bool:
        """Return True if this user may do what the bit of `wanted` stands for."""
        if self.uid == 0:
            return wanted != EXECUTE or node.is_folder or bool(node.mode & 0o111)
        if self.uid == node.uid:
            return bool(node.mode >> 6 & wanted)
        if self.gid == node.gid:
            return bool(node.mode >> 3 & wanted)
        return bool(node.mode & wanted)

    def may_rename_over(self, folder: Node, node: Node) -> bool:
        """Return False where a sticky folder keeps this user from taking away another's name."""
        return not folder.mode & _STICKY or self.uid in (0, node.uid, folder.uid)


#: Whom the test's own calls act as.
SUPERUSER = User(uid=0, gid=0)
