"""What a tar from the far end may say: read piece by piece, and nothing in it is believed."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Literal, Protocol

from operations import OperationError, OutsideRoot, PathError, TooLarge

__all__ = ["ArchiveReader", "Entry", "Limits", "NotAnArchive", "Sink", "TooManyEntries", "shown"]

_BLOCK = 512
#: No path that a system takes is longer.
_MAX_PATH = 4096
_MAX_NOTE = 1 << 20
#: Long names and records about one entry; a tar sends a few.
_MAX_NOTES = 16
#: All paths together, since they are held in memory.
_MAX_NAMES = 256 << 20
_MAX_SIZE = (1 << 63) - 1

Kind = Literal["file", "directory", "symlink", "link", "special"]
_KINDS: dict[bytes, Kind] = {
    b"0": "file",
    b"\0": "file",
    b"7": "file",
    b"1": "link",
    b"2": "symlink",
    b"3": "special",
    b"4": "special",
    b"5": "directory",
    b"6": "special",
}


class NotAnArchive(OperationError):
    """What the target sent is not what a tar sends."""


class TooManyEntries(TooLarge):
    """A folder has more names in it than are accepted; `size` and `limit` count names."""

    def __str__(self) -> str:
        return f"{self.what}: {self.size} names are over the limit of {self.limit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that is taken from a target.

    Attributes:
        max_bytes: Bytes of all files together.
        max_entries: Files, folders and links.
        max_patch_bytes: Bytes of changed files, before and after, that a patch is made of; they
            are held in memory.
    """

    max_bytes: int = 16 << 30
    max_entries: int = 1_000_000
    max_patch_bytes: int = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name in a folder.

    Attributes:
        path: Its path below the folder: no "..", no empty part; b"" for the folder itself.
        kind: "link" is one more name of the file or symlink at `target`, which came before.
        mode: Permission bits, without setuid, setgid and sticky.
        size: Bytes of a file; 0 of anything else.
        mtime: Seconds since 1970.
        target: The text of a symlink, the path of what a link is to, else b"".
    """

    path: bytes
    kind: Kind
    mode: int
    size: int
    mtime: float
    target: bytes


class Sink(Protocol):
    """Where entries go. An entry's folder always comes before it, and no path comes twice."""

    def entry(self, entry: Entry) -> None:
        """Take an entry; the content of a file follows."""
        ...

    def data(self, piece: memoryview) -> None:
        """Take the next bytes of the file."""
        ...

    def end(self) -> None:
        """Take the end of the file."""
        ...


class ArchiveReader:
    """Takes a tar as it arrives and hands its entries on.

    Args:
        sink: Gets the entries.
        folder: The folder that the tar is of, for errors.
        limits: The most that is taken.

    Attributes:
        ended: True once the end of the tar was seen.
        files: Files so far.
        bytes: Bytes of files so far.
    """

    def __init__(self, sink: Sink, folder: str, limits: Limits) -> None:
        self.ended = False
        self.files = 0
        self.bytes = 0
        self._sink = sink
        self._folder = folder
        self._limits = limits
        self._again = False
        self._announced = 0
        self._names = 0
        self._kinds: dict[bytes, Kind] = {b"": "directory"}
        self._view = memoryview(b"")
        #: Runs until it needs more than there is.
        self._steps = self._read()
        next(self._steps)

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; return those behind the end of the tar.

        Raises:
            NotAnArchive: It cannot be a tar of a folder.
            OutsideRoot: A path in it leads out of the folder.
            TooLarge: It is over a limit.
        """
        self._view = memoryview(data)
        if not self.ended:
            next(self._steps)
        rest = bytes(self._view)
        self._view = memoryview(b"")
        return rest

    def begin_again(self) -> None:
        """Expect one more tar of the folder, in which those below it may come again."""
        self.ended = False
        self._again = True
        self._steps = self._read()
        next(self._steps)

    def _read(self) -> Generator[None]:
        while True:
            block = yield from self._take(_BLOCK)
            extended: dict[str, bytes] = {}
            notes = 0
            while block[156:157] in b"LKxg" and any(block):
                notes += 1
                if notes > _MAX_NOTES:
                    raise NotAnArchive(f"over {_MAX_NOTES} notes on one name in the target's tar")
                yield from self._extend(block, extended)
                block = yield from self._take(_BLOCK)
            if not any(block):
                break
            yield from self._one(block, extended)
        if any((yield from self._take(_BLOCK))):
            raise NotAnArchive("the target's tar goes on behind its end")
        self.ended = True
        yield

    def _extend(self, block: bytes, extended: dict[str, bytes]) -> Generator[None]:
        """Read what is about the entry that follows: a long name, or records by name."""
        kind, size = _kind(block), _number(block[124:136])
        long_name = kind in b"LK"
        if size > _MAX_NOTE:
            raise NotAnArchive(f"a name or note of {size} bytes in the target's tar")
        content = yield from self._take(size)
        yield from self._pass(-size % _BLOCK, None)
        if long_name:
            extended["path" if kind == b"L" else "linkpath"] = content.rstrip(b"\0")
        elif kind == b"x":
            extended.update(_records(content))

    def _one(self, block: bytes, extended: dict[str, bytes]) -> Generator[None]:
        """Read an entry and hand it on."""
        entry = self._entry(block, extended)
        if entry.path or entry.kind != "directory":
            self._note(entry)
            self._sink.entry(entry)
        if entry.kind != "file":
            self.files += entry.kind == "link" and self._kinds[entry.path] == "file"
            return
        yield from self._pass(entry.size, self._sink.data)
        self.files += 1
        self._sink.end()
        yield from self._pass(-entry.size % _BLOCK, None)

    def _entry(self, block: bytes, extended: dict[str, bytes]) -> Entry:
        kind = _KINDS.get(_kind(block))
        if kind is None:
            raise NotAnArchive(f"an entry of kind {_kind(block)!r} in the target's tar")
        name = extended.get("path")
        if name is None:
            name = _text(block[:100])
            if block[257:263] == b"ustar\0" and block[345]:
                name = _text(block[345:500]) + b"/" + name
        size = _decimal(extended["size"]) if "size" in extended else _number(block[124:136])
        if size and kind != "file":
            raise NotAnArchive(f"{shown(name)} has content in the target's tar but is no file")
        target = b""
        if kind in ("link", "symlink"):
            target = extended.get("linkpath", _text(block[157:257]))
            target = self._path(target) if kind == "link" else _nameable(target)
        return Entry(
            path=self._path(name),
            kind=kind,
            mode=_number(block[100:108]) & 0o777,
            size=size,
            mtime=_time(extended.get("mtime"), block[136:148]),
            target=target,
        )

    def _path(self, name: bytes) -> bytes:
        """Return a path as it is below the folder."""
        parts = [part for part in _nameable(name).split(b"/") if part not in (b"", b".")]
        if name.startswith(b"/") or b".." in parts:
            raise OutsideRoot(shown(name), f"leads out of {self._folder}")
        return b"/".join(parts)

    def _note(self, entry: Entry) -> None:
        """Check an entry against those before it and against the limits."""
        path = entry.path
        if self._again and entry.kind == self._kinds.get(path) == "directory":
            return
        if path in self._kinds:
            raise NotAnArchive(f"the target's tar names {shown(path) or 'the folder'} twice")
        above = path.rpartition(b"/")[0]
        if self._kinds.get(above) != "directory":
            raise NotAnArchive(f"{shown(path)}: in the target's tar this is in no folder")
        kind = entry.kind
        if kind == "link":
            kind = self._kinds.get(entry.target, "special")
            if kind not in ("file", "symlink"):
                raise NotAnArchive(f"{shown(path)} links to no file in the target's tar")
        self._kinds[path] = kind
        self._names += len(path)
        self._announced += entry.size
        if self._announced > self._limits.max_bytes:
            raise TooLarge(self._folder, self._announced, self._limits.max_bytes)
        if len(self._kinds) - 1 > self._limits.max_entries:
            raise TooManyEntries(self._folder, len(self._kinds) - 1, self._limits.max_entries)
        if self._names > _MAX_NAMES:
            raise TooLarge(f"the names in {self._folder}", self._names, _MAX_NAMES)

    def _take(self, size: int) -> Generator[None, None, bytes]:
        """Read exactly so many bytes, few enough to hold."""
        taken = bytearray()
        yield from self._pass(size, taken.extend, count=False)
        return bytes(taken)

    def _pass(
        self, size: int, use: Callable[[memoryview], object] | None, *, count: bool = True
    ) -> Generator[None]:
        """Hand exactly so many bytes on as they come; None throws them away."""
        while size:
            if not self._view:
                yield
                continue
            piece, self._view = self._view[:size], self._view[size:]
            size -= len(piece)
            if use is not None:
                use(piece)
                self.bytes += len(piece) if count else 0


def shown(path: bytes) -> str:
    """Return a path as the operations' errors name it."""
    return path.decode("utf-8", "surrogateescape")


def _kind(block: bytes) -> bytes:
    """Return the letter of a header whose sum is right."""
    if sum(block[:148]) + sum(block[156:]) + 8 * 32 != _number(block[148:156]):
        raise NotAnArchive(f"the target sent {block[:40]!r} where a tar's header should be")
    return block[156:157]


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _nameable(name: bytes) -> bytes:
    if len(name) > _MAX_PATH:
        raise PathError(shown(name), f"a path of {len(name)} bytes is longer than {_MAX_PATH}")
    if not name or b"\0" in name:
        raise NotAnArchive(f"{name!r} in the target's tar is no name")
    return name


def _number(field: bytes) -> int:
    """Return a size or mode, in octal digits or, where those do not suffice, in binary."""
    if field[0] == 0x80:
        number = int.from_bytes(field[1:], "big")
    else:
        digits = _text(field).strip(b" ") or b"0"
        if digits.strip(b"01234567"):
            raise NotAnArchive(f"{field!r} in the target's tar is no number")
        number = int(digits, 8)
    if number > _MAX_SIZE:
        raise NotAnArchive(f"{field!r} in the target's tar is too large a number")
    return number


def _decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > 18:
        raise NotAnArchive(f"{text[:40]!r} in the target's tar is no size")
    return int(text)


def _time(text: bytes | None, field: bytes) -> float:
    """Return a time; one that makes no sense is as good as 1970."""
    try:
        if text is not None:
            return float(text) if len(text) < 40 else 0.0
        if field[0] == 0xFF:
            return float(int.from_bytes(field, "big", signed=True))
        return float(_number(field))
    except (ValueError, NotAnArchive):
        return 0.0


def _records(content: bytes) -> dict[str, bytes]:
    """Return what counts of a pax header: lines of "LENGTH NAME=VALUE"."""
    found = {}
    at = 0
    while at < len(content):
        length, _, _ = content[at : at + 20].partition(b" ")
        size = _decimal(length)
        line = content[at + len(length) + 1 : at + size]
        at += size
        name, equals, value = line.partition(b"=")
        if not equals or not value.endswith(b"\n") or size <= len(length) + 1:
            raise NotAnArchive(f"{line[:40]!r} in the target's tar is no record")
        if name.startswith(b"GNU.sparse"):
            raise NotAnArchive("a file with holes in the target's tar")
        if name in (b"path", b"linkpath", b"size", b"mtime"):
            found[name.decode()] = value[:-1]
    return found
