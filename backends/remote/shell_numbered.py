"""The few lines of a long file that a search is about, found by the target's own grep."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from backends.engine.grepping import MAX_CONTEXT
from backends.remote.shell_core import ShellCore
from backends.remote.shell_quote import function_call
from backends.remote.shell_tree import Collected
from operations import ConnectionLost

__all__ = ["PlainText", "matching_lines"]

#: What is more than this is not few lines.
_MOST_BYTES, _MOST_SENT = 4 << 20, 8 << 20
_BLANK = b"\n" * (1 << 20)
_LINE = re.compile(rb"(\d{1,12})[:-]")


@dataclass(frozen=True, slots=True)
class PlainText:
    """A search for what is the same text for every grep.

    Attributes:
        text: What a line must hold, byte for byte.
        limit: Matching lines that are wanted.
        context: Lines around each that are wanted too.
    """

    text: bytes
    limit: int
    context: int


async def matching_lines(core: ShellCore, at: bytes, plain: PlainText) -> Iterator[bytes] | None:
    """Return the content of a file with all lines empty that a search does not need.

    None where the target cannot tell: the file holds NUL bytes, too much of it matches, or its grep
    says something else.

    Args:
        core: The lanes.
        at: Absolute path of the file; its text is in no other encoding than ASCII's kin.
        plain: What is searched for.
    """
    context = min(plain.context, MAX_CONTEXT)
    # A grep that has found enough may leave out what is near the last: that one nobody wants.
    most = plain.limit + context + 2
    request = function_call("numbered", at, plain.text, context, most)
    collected = Collected(_MOST_BYTES)
    try:
        async with core.lanes.lane("searches") as lane:
            reply = await lane.call(request, limit=_MOST_SENT, on_data=collected.take)
    except ConnectionLost:
        if collected.is_over:
            return None
        raise
    lines = _parsed(collected.content())
    return None if reply.status or lines is None else _spread(lines)


def _parsed(told: bytes) -> list[tuple[int, bytes]] | None:
    """Return (number, line) in order, or None when it is not what was asked for."""
    lines: list[tuple[int, bytes]] = []
    last = 0
    for line in told.split(b"\n")[:-1]:
        if line == b"--":
            continue
        found = _LINE.match(line)
        if found is None or int(found[1]) <= last:
            return None
        last = int(found[1])
        lines.append((last, line[found.end() :]))
    return lines


def _spread(lines: list[tuple[int, bytes]]) -> Iterator[bytes]:
    """Yield the lines, each at its number, in pieces."""
    at = 1
    for number, line in lines:
        while at < number:
            blank = _BLANK[: number - at]
            yield blank
            at += len(blank)
        yield line + b"\n"
        at += 1
