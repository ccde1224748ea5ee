"""What a simulated shell's process and the tree's side say to each other, as blocks of bytes.

A block is four bytes of length and one value in the engine's encoding. The tree's side begins with
[command, cwd, env, stdin]. The shell's process then sends ["output", bytes], which has no answer,
and requests [kind, argument, ...], each answered by ["done", value] or ["error", errno] before the
next; at last ["end", exit code].
"""

from __future__ import annotations

import struct
from typing import Any

from backends.engine import frames

__all__ = ["MOST_CONTENT", "Blocks", "block"]

#: Most bytes of a file that a simulated shell reads or writes, and of one piece of its output.
MOST_CONTENT = 32 << 20

_LENGTH = struct.Struct(">I")
_MOST_LENGTH = MOST_CONTENT + (1 << 20)


def block(value: Any) -> bytes:
    """Return a value as it goes to the other side."""
    data: bytes = frames.encode_value(value)
    return _LENGTH.pack(len(data)) + data


class Blocks:
    """Cut a stream of bytes into the values of its blocks."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """Return the values that `data` completes, in order.

        Raises:
            WireError: A block is longer than any may be, or holds no value.
        """
        held = self._held
        held += data
        values = []
        while len(held) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(held)
            if length > _MOST_LENGTH:
                raise frames.WireError(f"a block of {length} bytes is over {_MOST_LENGTH}")
            end = _LENGTH.size + length
            if len(held) < end:
                break
            values.append(frames.decode_value(bytes(held[_LENGTH.size : end])))
            del held[:end]
        return values
