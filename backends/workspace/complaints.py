"""What a tar on the target complains about, as the operations' errors."""

from __future__ import annotations

import re

from operations import (
    FileChanged,
    OperationError,
    PathDenied,
    PathError,
    StorageFull,
)

__all__ = ["FULL", "error_about", "sockets"]

#: With these words nothing that comes later can be written either.
FULL = (b"No space left on device", b"Disk quota exceeded")
_CHANGED = ("file changed as we read it", "File removed before we read it", "File shrank by")
_DENIED = ("Permission denied", "Operation not permitted", "Read-only file system")
#: GNU: "tar: ./a: Cannot open: Permission denied"; busybox: "tar: can't open './a': Permission ..."
_GNU = re.compile(r"tar: (?P<path>.+?): (?P<reason>(?:Cannot |Wrote only |file |File ).*)")
_BUSYBOX = re.compile(r"tar: .*? '(?P<path>.+)': (?P<reason>.*)")
_SOCKET = re.compile(r"tar: (?:\./)?(.+): socket ignored")
_SHOWN = 300


def error_about(folder: str, status: int, said: bytes) -> OperationError:
    """Return the error for a tar that did not succeed.

    Args:
        folder: The folder on the target.
        status: Its exit status.
        said: What it printed.
    """
    lines = said.decode("utf-8", "surrogateescape").strip().splitlines()
    full = any(words in said for words in FULL)
    # The last line says only that something was said before.
    for line in lines:
        found = _GNU.match(line) or _BUSYBOX.match(line)
        if found is None:
            continue
        path, reason = _below(folder, found["path"]), found["reason"]
        if full:
            return StorageFull(path, f"no space left on the target ({reason})")
        if any(words in line for words in _CHANGED):
            return FileChanged(path)
        if any(words in line for words in _DENIED):
            return PathDenied(path, reason)
        return PathError(path, reason)
    told = "; ".join(lines)[-_SHOWN:] or f"exit status {status}, and no word why"
    if full:
        return StorageFull(folder, f"no space left on the target ({told})")
    return PathError(folder, f"tar on the target did not succeed: {told}")


def sockets(said: bytes) -> list[str]:
    """Return a line for each socket that a tar left out."""
    lines = said.decode("utf-8", "surrogateescape").splitlines()
    return [f"{found[1]}: a socket" for line in lines if (found := _SOCKET.fullmatch(line))]


def _below(folder: str, path: str) -> str:
    return f"{folder}/{path.removeprefix('./')}" if path != "." else folder
