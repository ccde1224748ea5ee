"""What operations are called with, checked and as the engine takes it: text as bytes, bounded."""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from operations import FileVersion, InvalidPattern, OperationUnsupported, PathError, TooLarge

__all__ = [
    "MAX_WHOLE_READ",
    "check_within",
    "command_request",
    "confined",
    "wire_path",
    "wire_pattern",
    "wire_version",
]

#: Most bytes of a file that is read whole.
MAX_WHOLE_READ = 256 << 20
#: Most bytes of a command, and of what it reads.
MAX_COMMAND = 10 << 20
#: Most bytes of a path or pattern; over that no system would take it, and no frame.
MAX_TEXT = 1 << 16
#: Most bytes of all variables together, and of all words of a program's arguments.
MAX_WORDS = 1 << 19

_HALF = "it holds half of a character"


def wire_path(path: str) -> bytes:
    """Return a path as the engine takes it.

    Raises:
        PathError: No system could have such a path.
    """
    try:
        encoded = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise PathError(path.encode("utf-8", "replace").decode(), _HALF) from None
    if len(encoded) > MAX_TEXT:
        raise PathError(path, os.strerror(errno.ENAMETOOLONG))
    return encoded


def wire_pattern(pattern: str) -> str:
    """Return a pattern if it can be sent.

    Raises:
        InvalidPattern: It is not proper Unicode.
        TooLarge: It is over 64 KiB.
    """
    try:
        _bounded("pattern", pattern.encode(), MAX_TEXT)
    except UnicodeEncodeError as error:
        raise InvalidPattern(ascii(pattern), _HALF, error.start) from None
    return pattern


def wire_version(version: FileVersion | None) -> list[Any] | None:
    """Return a version as the engine takes it."""
    return None if version is None else [version.device, version.inode, version.digest]


def confined(
    settings: Mapping[str, Any] | None, root: str | None, cwd: str, *, commands: bool
) -> dict[str, Any]:
    """Return the engine's settings with those of a root folder added.

    Args:
        settings: Other settings, or None.
        root: The folder, or None for none.
        cwd: The folder that tools work in.
        commands: Whether commands run, which nothing confines.

    Raises:
        ValueError: The root is no absolute path, or `cwd` is outside of it.
    """
    if root is None:
        return dict(settings or {})
    if not root.startswith("/"):
        raise ValueError(f"root must be an absolute path on the target, as /srv/app, not {root!r}")
    if cwd.startswith("/"):
        check_within(root, cwd)
    return {**(settings or {}), "root": wire_path(root), "unconfined_commands": commands}


def check_within(root: str, cwd: str) -> None:
    """Raise ValueError where a working folder is not below the root folder, by their names."""
    if posixpath.commonpath([posixpath.normpath(cwd), root]) != posixpath.normpath(root):
        raise ValueError(f"cwd {cwd!r} is outside of the root folder {root!r}")


def command_request(
    command: str,
    cwd: str,
    env: Mapping[str, str],
    timeout_s: float | None,
    *,
    argv: Sequence[str] | None = None,
    stdin: bytes = b"",
) -> tuple[dict[str, Any], bytes]:
    """Return the arguments and the body of a request to run something.

    Raises:
        TooLarge: The command or its input is over 10 MiB, or the variables or words over 512 KiB.
        OperationUnsupported: Some text is not proper Unicode.
        PathError: `cwd` cannot be a path.
    """
    text = b"" if argv is not None else _bounded("command", _encode(command), MAX_COMMAND)
    pairs = [[_encode(name), _encode(value)] for name, value in env.items()]
    words = None if argv is None else [_encode(word) for word in argv]
    _bounded("stdin", stdin, MAX_COMMAND)
    _bounded("env", b"".join(name + value for name, value in pairs), MAX_WORDS)
    _bounded("argv", b"".join(words or []), MAX_WORDS)
    args = {
        "command_size": len(text),
        "stdin_size": len(stdin),
        "argv": words,
        "cwd": wire_path(cwd),
        "env": pairs,
        "timeout_s": timeout_s,
    }
    return args, text + stdin


def _bounded(what: str, data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise TooLarge(what, len(data), limit)
    return data


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise OperationUnsupported("exec", _HALF) from None
