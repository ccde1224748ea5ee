"""The text of a patch as git writes it, and as `git apply` takes it."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from backends.workspace.hunks import hunks

__all__ = ["Blob", "change", "refused"]

_NO_BLOB = b"0" * 40
#: A file with a NUL anywhere is binary, since `git apply` takes no line with one; so is one that
#: is larger than this.
_MAX_TEXT = 16 << 20
_LINE = 52
_SPECIAL = re.compile(rb'[\x00-\x1f"\\\x7f-\xff]')
_LETTERS = {7: b"a", 8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r", 34: b'"', 92: b"\\"}
#: Names that a Windows or a Mac would take for `.git` are none to git on any system.
_LIKE_GIT = re.compile(rb"(?i)(?:\.git|git~1)[ .]*(?:[:\\].*)?", re.DOTALL)
_LIKE_MODULES = re.compile(rb"(?i)(?:\.gitmodules|gitmod~[1-4])[ .]*(?::.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Blob:
    """One side of a change.

    Attributes:
        mode: "100644", "100755" or, for a symlink, "120000".
        content: Its bytes; a symlink's text.
    """

    mode: Literal["100644", "100755", "120000"]
    content: bytes


def refused(path: bytes, *, symlink: bool) -> bool:
    """Return True for a path that git takes in no patch."""
    parts = path.split(b"/")
    return any(_LIKE_GIT.fullmatch(part) for part in parts) or (
        symlink and _LIKE_MODULES.fullmatch(parts[-1]) is not None
    )


def change(path: bytes, old: Blob | None, new: Blob | None) -> bytes:
    """Return what turns one version of a path into another; b"" when they are the same.

    Args:
        path: Relative, not quoted.
        old: None where nothing was.
        new: None where nothing is.
    """
    if old is not None and new is not None and (old.mode == "120000") != (new.mode == "120000"):
        return change(path, old, None) + change(path, None, new)
    if old == new:
        return b""
    return b"".join(_change(path, old, new))


def _change(path: bytes, old: Blob | None, new: Blob | None) -> Iterator[bytes]:
    before = b"" if old is None else old.content
    after = b"" if new is None else new.content
    text = before != after and not _binary(before) and not _binary(after)
    # Where this is the only line with the name, git is not sure of every name with a space.
    sure = text or b" " not in path
    yield b"diff --git %s %s\n" % (
        _quoted(b"a/" + path, sure=sure),
        _quoted(b"b/" + path, sure=sure),
    )
    yield from _modes(old, new)
    if old is not None and new is not None and before == after:
        return
    mode = b" " + old.mode.encode() if old and new and old.mode == new.mode else b""
    yield b"index %s..%s%s\n" % (_name(old), _name(new), mode)
    if text:
        yield b"--- %s\n" % (b"/dev/null" if old is None else _labelled(b"a/" + path))
        yield b"+++ %s\n" % (b"/dev/null" if new is None else _labelled(b"b/" + path))
        yield from hunks(before, after)
    elif before != after:
        yield b"GIT binary patch\n"
        yield from _literal(after)
        yield from _literal(before)


def _modes(old: Blob | None, new: Blob | None) -> Iterator[bytes]:
    if old is None and new is not None:
        yield b"new file mode %s\n" % new.mode.encode()
    elif new is None and old is not None:
        yield b"deleted file mode %s\n" % old.mode.encode()
    elif old is not None and new is not None and old.mode != new.mode:
        yield b"old mode %s\nnew mode %s\n" % (old.mode.encode(), new.mode.encode())


def _name(blob: Blob | None) -> bytes:
    """Return git's name for a content."""
    if blob is None:
        return _NO_BLOB
    digest = hashlib.sha1(b"blob %d\0" % len(blob.content), usedforsecurity=False)
    digest.update(blob.content)
    return digest.hexdigest().encode()


def _binary(content: bytes) -> bool:
    return len(content) > _MAX_TEXT or b"\0" in content


def _literal(content: bytes) -> Iterator[bytes]:
    """Yield a whole content: deflated, in lines that begin with their length."""
    yield b"literal %d\n" % len(content)
    packed = zlib.compress(content)
    for at in range(0, len(packed), _LINE):
        line = packed[at : at + _LINE]
        size = len(line) + (64 if len(line) <= 26 else 70)
        yield b"%c%s\n" % (size, base64.b85encode(line, pad=True))
    yield b"\n"


def _quoted(name: bytes, *, sure: bool = True) -> bytes:
    """Return a name as git writes it: in quotes where it has bytes that could mislead."""
    if sure and not _SPECIAL.search(name):
        return name
    return b'"%s"' % _SPECIAL.sub(_escaped, name)


def _escaped(found: re.Match[bytes]) -> bytes:
    byte = found[0][0]
    return b"\\" + (_LETTERS.get(byte) or b"%03o" % byte)


def _labelled(name: bytes) -> bytes:
    # Behind a tab a date could follow: this is how git marks the end of a name with spaces.
    return _quoted(name) + (b"\t" if b" " in name else b"")
