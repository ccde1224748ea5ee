"""The engine's search in a process of this machine's own, on content that is handed to it.

For a target that cannot match lines itself. A regular expression of Python's holds the
interpreter's lock and cannot be interrupted, so a pattern must not run where the event loop does.

Blocks, each behind eight digits of length, hold one value in the engine's encoding. It reads the
query; then it writes ["part", part]; ["need", path], answered by rows of [path, content], which is
None where it cannot be read, and True where it is long; ["first", path] and ["next", path] for the
pieces of a long one, answered by bytes, b"" at the end, or None; and at last ["result", summary] or
["fault", code, arguments].
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

from backends.engine import frames, search
from backends.engine.faults import Fault
from backends.engine.walk import keyed

__all__ = ["argv", "block", "main"]

_DIGITS = 8


def argv() -> list[str]:
    """Return the program; `-I -S`: nothing of the folder that we are in, or of the user, runs."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    source = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from backends.remote.search_child import main; main()"
    )
    return [sys.executable, "-I", "-S", "-c", source, root]


def block(value: Any) -> bytes:
    """Return a value as it goes to the other side."""
    data: bytes = frames.encode_value(value)
    return b"%0*d" % (_DIGITS, len(data)) + data


def main() -> None:
    """Serve one search on stdin and stdout."""
    wire = _Wire(sys.stdin.buffer, sys.stdout.buffer)
    request = wire.read()
    tree = _Tree(wire, dict(request["folders"]))

    def emit(part: dict[str, Any]) -> None:
        wire.write(["part", part])

    try:
        summary = search.grep(tree, request["query"], emit, file=request["file"])
        wire.write(["result", summary])
    except Fault as fault:
        wire.write(["fault", fault.code, fault.arguments])


class _Wire:
    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._sink = sink

    def read(self) -> Any:
        size = self._source.read(_DIGITS)
        if len(size) < _DIGITS:
            sys.exit(1)  # nobody waits any more
        return frames.decode_value(self._source.read(int(size)))

    def write(self, value: Any) -> None:
        self._sink.write(block(value))
        self._sink.flush()


class _Tree:
    """A tree of which only the names of what may be searched are known; see `engine.walk`."""

    def __init__(self, wire: _Wire, folders: dict[bytes, list[list[Any]]]) -> None:
        self._wire = wire
        self._folders = folders
        #: What was sent ahead of its turn.
        self._ahead: dict[bytes, bytes | bool | None] = {}

    def scan(self, path: bytes) -> tuple[list[bytes], dict[bytes, str]]:
        listed: tuple[list[bytes], dict[bytes, str]] = keyed(
            (name, kind) for name, kind in self._folders.get(path, ())
        )
        return listed

    def read(self, path: bytes) -> Iterator[bytes]:
        if path not in self._ahead:
            self._ahead.update(self._ask("need", path))
        content = self._ahead.pop(path, None)
        if content is True:
            yield from self._pieces(path)
        elif isinstance(content, bytes):
            yield content
        else:
            _refuse()

    def _pieces(self, path: bytes) -> Iterator[bytes]:
        piece = self._ask("first", path)
        while piece:
            yield piece
            piece = self._ask("next", path)
        if piece is None:
            _refuse()

    def _ask(self, kind: str, path: bytes) -> Any:
        self._wire.write([kind, path])
        return self._wire.read()

    def above(self) -> list[tuple[bytes, bytes]]:
        return []  # the names are those that no rule leaves out


def _refuse() -> NoReturn:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
