"""The names below a folder of the target, fetched at once, as the engine's walk asks for them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from typing import NoReturn

from backends.engine.ignore import MAX_BYTES
from backends.engine.walk import keyed
from backends.remote.lane import new_word
from backends.remote.shell_core import ShellCore
from backends.remote.shell_marks import Garbage
from backends.remote.shell_quote import function_call
from backends.remote.shell_script import MARK
from operations import ConnectionLost, OperationError

__all__ = ["Collected", "FarTree", "contents", "fetch_tree"]

#: Most bytes of all names below a folder that is searched, and of one answer with contents.
_NAMES_BYTES = 32 << 20
_CONTENTS_BYTES = 64 << 20
_KINDS = ("directory", "file", "symlink", "other")
_IGNORE_FILE = b".gitignore"


class FarTree:
    """A tree for `backends.engine.walk`, of names and ignore files only.

    Args:
        sections: Paths ("./a/b") of folders, files, symlinks, others and unreadable folders.
    """

    def __init__(self, sections: list[list[bytes]]) -> None:
        self.folders: dict[bytes, list[tuple[bytes, str]]] = {b"": []}
        self._unreadable = {_relative(path) for path in sections[4]}
        self._ignore_files: dict[bytes, bytes | None] = {}
        self._above: list[tuple[bytes, bytes]] = []
        for kind, paths in zip(_KINDS, sections, strict=False):
            for path in paths:
                self._add(_relative(path), kind)

    def _add(self, path: bytes, kind: str) -> None:
        if not path:
            return
        if kind == "directory":
            self.folders.setdefault(path, [])
        folder, _, name = path.rpartition(b"/")
        if name in (b"", b".", b".."):
            raise Garbage("a path that no listing has")
        self.folders.setdefault(folder, []).append((name, kind))

    @property
    def ignore_paths(self) -> list[bytes]:
        """Paths of the .gitignore files in it."""
        return [
            folder + b"/" + _IGNORE_FILE if folder else _IGNORE_FILE
            for folder, entries in self.folders.items()
            if (_IGNORE_FILE, "file") in entries
        ]

    def learn(self, ignore_files: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Take the contents of ignore files in it; None where unreadable."""
        self._ignore_files.update(ignore_files)

    def learn_above(self, above: list[tuple[bytes, bytes]]) -> None:
        """Take the ignore files above it."""
        self._above = above

    # What the walk asks for -----------------------------------------------------------------

    def scan(self, path: bytes) -> tuple[list[bytes], dict[bytes, str]]:
        """Return the names and kinds in a folder."""
        if path in self._unreadable:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        listed: tuple[list[bytes], dict[bytes, str]] = keyed(self.folders.get(path, []))
        return listed

    def read(self, path: bytes) -> Iterator[bytes]:
        """Yield the content of an ignore file."""
        content = self._ignore_files.get(path)
        if content is None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        yield content

    def exists(self, path: bytes) -> bool:
        """Tell whether a name is there."""
        folder, _, name = path.rpartition(b"/")
        return any(name == other for other, _ in self.folders.get(folder, ()))

    def above(self) -> list[tuple[bytes, bytes]]:
        """Return the ignore files above."""
        return self._above


async def fetch_tree(core: ShellCore, at: bytes, shown: str) -> FarTree:
    """Return the tree below a folder: its names in one trip, its ignore files in two more.

    Args:
        core: The lanes.
        at: Absolute path of the folder.
        shown: The folder as the operation received it, for errors.

    Raises:
        OperationError: There are more names than are fetched.
    """
    collected = Collected(_NAMES_BYTES)
    try:
        async with core.lanes.lane("files") as lane:
            reply = await lane.call(
                function_call("tree", at), limit=2 * _NAMES_BYTES, on_data=collected.take
            )
    except ConnectionLost:
        if collected.is_over:
            limit = f"{_NAMES_BYTES >> 20} MiB"
            says = f"{shown}: over {limit} of names to search without Python; name a part of it"
            raise OperationError(says) from None
        raise
    try:
        if reply.status:
            _broken("the folder could not be entered")
        tree = FarTree(_sections(collected.content()))
    except Garbage as error:
        raise core.garbled(error) from error
    if paths := tree.ignore_paths:
        tree.learn(await contents(core, at, paths, MAX_BYTES))
    tree.learn_above(await _above(core, at))
    return tree


async def contents(
    core: ShellCore, at: bytes, paths: list[bytes], most: int
) -> list[tuple[bytes, bytes | None]]:
    """Return (path, content) of files below a folder; None where unreadable, without what is gone.

    Args:
        core: The lanes.
        at: Absolute path of the folder.
        paths: Paths below it.
        most: Bytes of each file that are wanted; a longer one is cut.
    """
    cut = new_word()
    request = function_call("contents", at, cut, most, *(b"./" + path for path in paths))
    async with core.lanes.lane("files") as lane:
        reply = await lane.call(request, limit=_CONTENTS_BYTES)
    try:
        if reply.status:
            _broken("the folder could not be entered")
        return list(_told_contents(reply.data.split(MARK + cut.encode()), paths))
    except Garbage as error:
        raise core.garbled(error) from error


def _told_contents(parts: list[bytes], paths: list[bytes]) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield what `contents` printed, cut at its marks.

    "." ends each file, after "!" where it could not be read to its end; a content begins with "f",
    what cannot be read is "d", what is gone "g".
    """
    begins, failed = parts[0], False
    numbers = iter(paths)
    for part in parts[1:]:
        if part == b"!":
            failed = True
            continue
        path = next(numbers, None)
        if part[:1] != b"." or path is None or begins[:1] not in (b"f", b"d", b"g"):
            _broken("contents that nobody asked for")
        elif begins[:1] != b"g":
            yield path, begins[1:] if begins[:1] == b"f" and not failed else None
        begins, failed = part[1:], False
    if begins or next(numbers, None) is not None:
        _broken("contents without their ends")


async def _above(core: ShellCore, at: bytes) -> list[tuple[bytes, bytes]]:
    """Return (lead, content) of the ignore files above, outermost first."""
    cut = new_word()
    async with core.lanes.lane("files") as lane:
        reply = await lane.call(function_call("above", at, cut), limit=_CONTENTS_BYTES)
    parts = reply.data.split(MARK + cut.encode())
    if parts[-1] != b"top":
        return []  # in no work tree: only the rules from the root on count
    found, lead = [], b""
    for part in parts[:-1]:
        name, _, content = part.partition(b"\0")
        lead = name + b"/" + lead
        if content:
            found.append((lead, content))
    return found[::-1]


class Collected:
    """What came, up to a limit.

    Args:
        limit: Most bytes; more is garbage.
    """

    def __init__(self, limit: int) -> None:
        self.is_over = False
        self._room = limit
        self._chunks: list[bytes] = []

    def take(self, chunk: bytes) -> None:
        """Add what came next.

        Raises:
            Garbage: It is too much.
        """
        self._room -= len(chunk)
        if self._room < 0:
            self.is_over = True
            self._chunks.clear()
            raise Garbage("more than was asked for")
        self._chunks.append(chunk)

    def content(self) -> bytes:
        """Return all of it."""
        return b"".join(self._chunks)


def _broken(says: str) -> NoReturn:
    raise Garbage(says)


def _sections(listing: bytes) -> list[list[bytes]]:
    sections: list[list[bytes]] = [[]]
    for path in listing.split(b"\0")[:-1]:
        if path:
            sections[-1].append(path)
        else:
            sections.append([])
    if len(sections) != 6 or sections[5]:
        raise Garbage("a listing without its ends")
    return sections


def _relative(path: bytes) -> bytes:
    if path == b".":
        return b""
    if not path.startswith(b"./") or len(path) > 1 << 16:
        raise Garbage("a path that no listing has")
    return path[2:]
