"""Text as a POSIX shell reads it back, and paths as the functions at the far end take them."""

from __future__ import annotations

import os
import re

from backends.engine.faults import Fault
from backends.engine.place import MAX_PATH_BYTES
from backends.remote.arguments import wire_path

__all__ = ["expanded", "function_call", "is_name", "one_line", "quoted"]

_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*\Z")
_PLAIN = re.compile(rb"[A-Za-z0-9_/.,:=@%+-]+\Z")


def quoted(text: bytes) -> bytes:
    """Return bytes (without NUL) as one word of a shell's input."""
    if _PLAIN.match(text):
        return text
    return b"'" + text.replace(b"'", b"'\\''") + b"'"


def function_call(name: str, *arguments: bytes | str | int) -> bytes:
    """Return a call of one of the script's functions; a newline in it is always in quotes."""
    words = [a if isinstance(a, bytes) else str(a).encode() for a in arguments]
    return b" ".join([name.encode(), *map(quoted, words)])


def one_line(request: bytes) -> bytes:
    """Return a request without a newline: the script has one in the variable N."""
    return request.replace(b"\n", b"'\"$N\"'")


def is_name(text: bytes) -> bool:
    """Return True for what can be a variable of a shell."""
    return _NAME.match(text) is not None


def expanded(path: str, home: str) -> bytes:
    """Return a path as an absolute one, "~" replaced.

    Args:
        path: As an operation received it.
        home: Absolute path that "~" stands for.

    Raises:
        Fault: "path" when it is empty, too long, holds NUL, or is neither absolute nor under "~".
        PathError: No system could have such a path.
    """
    raw = wire_path(path)
    if not raw:
        raise Fault("path", raw, "the path is empty")
    if len(raw) > MAX_PATH_BYTES:
        says = f"the path has {len(raw)} bytes, over the limit of {MAX_PATH_BYTES}"
        raise Fault("path", raw[:MAX_PATH_BYTES], says)
    if b"\0" in raw:
        raise Fault("path", raw, "the path holds a NUL byte")
    if raw.startswith(b"/"):
        return raw
    if raw == b"~" or raw.startswith(b"~/"):
        return (os.fsencode(home).rstrip(b"/") + raw[1:]) or b"/"
    raise Fault("path", raw, "the path is neither absolute nor under ~/")
