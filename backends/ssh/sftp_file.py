"""An open file over SFTP, read and written in many blocks at a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import asyncssh

from backends.ssh.in_order import in_order
from backends.ssh.sftp_status import Status, status_of

if TYPE_CHECKING:
    from backends.ssh.sftp_session import SftpSession

__all__ = ["SftpFile"]

#: Most bytes that one transfer has under way, and most requests.
_UNDER_WAY, _MOST_REQUESTS = 4 << 20, 64


class SftpFile:
    """An open file; see `SftpSession` for what its methods raise."""

    def __init__(
        self, session: SftpSession, file: asyncssh.SFTPClientFile, write_block: int
    ) -> None:
        self._session = session
        self._file = file
        self._write_block = write_block
        self._closed = False

    async def status(self) -> Status:
        """Return its status."""
        return status_of(await self._session.ask(self._file.stat()))

    async def head(self, count: int) -> bytes:
        """Return the first bytes; fewer only where it has no more."""
        return await self._block(0, count, None)

    async def chunks(self, size: int | None) -> AsyncGenerator[bytes, None]:
        """Yield the content in order to its end, whatever size was told.

        Reads are under way at the same time, more of them the longer it takes.

        Args:
            size: What the server told; 0 or None where it may be any.
        """
        block = self._session.block
        offsets = range(0, 1 << 62, block)
        most = max(1, min(_UNDER_WAY // block, _MOST_REQUESTS, (size or 0) // block + 1))
        blocks = in_order((self._block(offset, block, size) for offset in offsets), most, ramp=True)
        async with aclosing(blocks):
            async for data in blocks:
                if data:
                    yield data
                if len(data) < block:
                    return

    async def _block(self, offset: int, size: int, told: int | None) -> bytes:
        """Return a block; a shorter one ends the file."""
        parts: list[bytes] = []
        have = 0
        while have < size:
            # What was told as the end is believed if nothing comes after it in one answer.
            if have and offset + have == told:
                break
            data: Any = await self._session.ask(self._file.read(size - have, offset + have))
            if len(data) > size - have:
                raise self._session.garbled("more bytes than were asked for")
            if not data:
                break
            parts.append(data)
            have += len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def write(self, content: bytes | memoryview, offset: int = 0) -> None:
        """Write all of some content, many blocks under way at a time."""
        block = self._write_block
        view = memoryview(content)
        calls = (
            self._write_at(view[start : start + block], offset + start)
            for start in range(0, len(view), block)
        )
        written = in_order(calls, max(1, min(_UNDER_WAY // block, _MOST_REQUESTS)))
        async with aclosing(written):
            async for _ in written:
                pass

    async def _write_at(self, data: memoryview, offset: int) -> None:
        await self._session.ask(self._file.write(bytes(data), offset))

    async def set_mode(self, mode: int) -> None:
        """Set the permission bits."""
        await self._session.ask(self._file.setstat(asyncssh.SFTPAttrs(permissions=mode)))

    async def set_owner(self, uid: int, gid: int) -> None:
        """Set owner and group."""
        await self._session.ask(self._file.setstat(asyncssh.SFTPAttrs(uid=uid, gid=gid)))

    async def set_size(self, size: int) -> None:
        """Cut it, or fill it up with NUL."""
        await self._session.ask(self._file.setstat(asyncssh.SFTPAttrs(size=size)))

    async def sync(self) -> None:
        """Have it on disk; ENOTSUP where the server cannot."""
        await self._session.ask(self._file.fsync())

    async def close(self) -> None:
        """Close it; what was written may fail only now."""
        if not self._closed:
            self._closed = True
            await self._session.ask(self._file.close())

    def forget(self) -> None:
        """Close it without waiting, unless it is closed."""
        if not self._closed:
            self._closed = True
            self._session.forget(self._file)
