"""A file of the target that is too long for one answer, a piece at a time over one lane."""

from __future__ import annotations

import contextlib
import os
from contextlib import AsyncExitStack

from backends.remote.lane import Lane
from backends.remote.shell_core import TOLD_BYTES, ShellCore
from backends.remote.shell_quote import function_call
from operations import ConnectionLost, PathError

__all__ = ["Pieces"]

#: Bytes of a piece, in blocks as `dd` counts them; a trip of a few milliseconds for each.
_BLOCK, _BLOCKS = 1 << 16, 32


class Pieces:
    """The content of one file, in order; the target holds the file open and a lane is held.

    So it is one file to its end, also when it is replaced meanwhile.

    Args:
        core: The lanes.
        at: Absolute path of the file.
    """

    def __init__(self, core: ShellCore, at: bytes) -> None:
        self._core = core
        self._at = at
        self._held = AsyncExitStack()
        self._lane: Lane | None = None
        self._ended = False

    async def next(self) -> bytes:
        """Return the next bytes; b"" at the end.

        Raises:
            PathError: It cannot be opened or read.
            ConnectionLost: The lane ended.
        """
        if self._ended:
            return b""
        if self._lane is None:
            lane = await self._held.enter_async_context(self._core.lanes.lane("searches"))
            self._lane = lane
            reply = await lane.call(function_call("hold", self._at), limit=TOLD_BYTES)
            self._core.check(os.fsdecode(self._at), reply)
        request = function_call("piece", _BLOCKS)
        reply = await self._lane.call(request, limit=_BLOCKS * _BLOCK)
        if reply.status:
            raise PathError(os.fsdecode(self._at), "it could not be read to its end")
        # Not sooner: there are files of the kernel's that give less at a time than is asked for.
        self._ended = not reply.data
        return reply.data

    async def close(self) -> None:
        """Let the file and the lane go; a caller that is being cancelled gives the lane up."""
        lane, self._lane = self._lane, None
        if lane is None:
            return
        try:
            with contextlib.suppress(ConnectionLost):  # all that was wanted is there
                await lane.call(b"let_go", limit=0)
        finally:
            await self._held.aclose()
