"""Match lines at this end, in a process of its own that asks for content as it goes."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from typing import Any, Literal, Protocol

import anyio

from backends.engine import frames
from backends.engine.faults import Fault
from backends.remote import search_child
from backends.remote.channel import ChannelClosed
from backends.remote.pipe import PipeChannel, open_pipe
from backends.remote.shell_faults import error_of
from operations import OperationError

__all__ = ["Row", "Supply", "match"]

_DIGITS = 8

#: A path and its content: None where it cannot be read, True where it is long and comes in pieces.
Row = tuple[bytes, bytes | Literal[True] | None]


class Supply(Protocol):
    """Where content comes from."""

    async def rows(self, path: bytes) -> list[Row]:
        """Return the row of a path, and those of others that will be wanted next."""

    async def first(self, path: bytes) -> bytes | None:
        """Return the first bytes of a long file; b"" at its end, None where it cannot be read."""

    async def next(self, path: bytes) -> bytes | None:
        """Return the next bytes of it."""

    async def close(self) -> None:
        """Give back what pieces need."""


async def match(
    request: dict[str, Any], supply: Supply, on_part: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Run a search and return its summary.

    Args:
        request: What `search_child` reads first.
        supply: Gives the content of files.
        on_part: Takes the parts of the answer.

    Raises:
        OperationError: The search's own faults, or those of `supply`.
    """
    channel = await open_pipe(search_child.argv(), env={}, program="the matching process")
    try:
        return await _serve(channel, request, supply, on_part)
    except ChannelClosed as error:
        raise OperationError(f"the matching process ended: {error}") from error
    finally:
        _kill(channel.pid)
        with anyio.CancelScope(shield=True):
            await channel.close()
        await supply.close()


async def _serve(
    channel: PipeChannel,
    request: dict[str, Any],
    supply: Supply,
    on_part: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    await channel.send(search_child.block(request))
    held = b""
    while True:
        while (value := _value(held)) is None:
            chunk = await channel.receive()
            if not chunk:
                raise OperationError(await channel.exit_report())
            held += chunk
        kind, *rest = value[0]
        held = held[value[1] :]
        if kind == "part":
            on_part(rest[0])
        elif kind == "need":
            rows = [list(row) for row in await supply.rows(rest[0])]
            await channel.send(search_child.block(rows))
        elif kind in ("first", "next"):
            piece = await (supply.first if kind == "first" else supply.next)(rest[0])
            await channel.send(search_child.block(piece))
        elif kind == "fault":
            raise error_of(Fault(rest[0], *rest[1]))
        else:
            summary: dict[str, Any] = rest[0]
            return summary


def _value(held: bytes) -> tuple[list[Any], int] | None:
    """Return a block's value and where it ends, when it is all there; it is our own process's."""
    if len(held) < _DIGITS:
        return None
    end = _DIGITS + int(held[:_DIGITS])
    return (frames.decode_value(held[_DIGITS:end]), end) if len(held) >= end else None


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
