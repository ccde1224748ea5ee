"""The operations on files over lanes."""

from __future__ import annotations

import hashlib
import heapq
import re
from collections.abc import Callable
from functools import partial
from typing import Literal, NoReturn

import anyio.to_thread

from backends.engine.content import HEAD_BYTES, image_mime_type
from backends.engine.faults import Fault
from backends.engine.lines import scan_lines
from backends.engine.suggest import name_order
from backends.remote import convert
from backends.remote.arguments import MAX_WHOLE_READ, wire_path
from backends.remote.convert import MalformedReply
from backends.remote.lane import Lane, Reply, new_word, number
from backends.remote.shell_core import ShellCore
from backends.remote.shell_faults import error_of
from backends.remote.shell_marks import Garbage
from backends.remote.shell_quote import function_call
from backends.remote.shell_turns import Turns
from operations import (
    ConnectionLost,
    DirectoryListing,
    FileVersion,
    LineWindow,
    OperationUnsupported,
    Progress,
    VersionedContent,
    WriteResult,
)

__all__ = ["ShellFiles"]

#: A file up to this size is sent whole: cheaper than four programs that look for lines in it.
_SMALL = 1 << 18
_LISTING_BYTES = 64 << 20
#: What stands before and after a content that is read whole, too.
_MOST_WHOLE = MAX_WHOLE_READ + (1 << 20)
_HEADER_BYTES = 80
_STATUS = re.compile(rb"(\d{1,20}) (\d{1,20}) (\d{1,20})\n")
_MARKED = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_KINDS = {
    b"f": "file",
    b"d": "directory",
    b"l": "symlink",
    b"p": "fifo",
    b"s": "socket",
    b"c": "device",
    b"b": "device",
}


class ShellFiles:
    """Read, write and list; what differs from an engine stands at the methods.

    Args:
        core: The lanes.
    """

    def __init__(self, core: ShellCore) -> None:
        self._core = core
        self._turns = Turns()

    async def access(self, path: str) -> None:
        """See `ReadOperations`."""
        await self._core.ask(path, function_call("access", await self._core.absolute(path)))

    async def read_file(self, path: str) -> bytes:
        """See `ReadOperations`."""
        return (await self._whole(path))[1]

    async def read_versioned(self, path: str) -> VersionedContent:
        """See `VersionedReadOperations`.

        Identity and content are read by two programs: a file that is replaced between them gets
        a version that fits neither, so that a write which expects it is refused.
        """
        (device, inode), content = await self._whole(path)
        digest = hashlib.sha256(content).digest()
        return VersionedContent(
            content=content, version=FileVersion(device=device, inode=inode, digest=digest)
        )

    async def _whole(self, path: str) -> tuple[tuple[int, int], bytes]:
        request = function_call("whole", await self._core.absolute(path))
        data = _Limited(path)
        try:
            async with self._core.lanes.lane("files") as lane:
                reply = await lane.call(request, limit=_MOST_WHOLE, on_data=data.take)
        except ConnectionLost:
            if data.fault is not None:
                raise error_of(data.fault) from None
            raise
        if reply.status and not reply.failed_midway:
            reply.data = data.raw()
        self._core.check(path, reply)
        try:
            return data.identity(), data.content()
        except Garbage as error:
            raise self._core.garbled(error) from error

    async def read_lines(
        self,
        path: str,
        *,
        start: int,
        max_lines: int,
        max_bytes: int,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> LineWindow:
        """See `WindowReadOperations`.

        A small file comes whole. In a large one the target's own programs find the window and
        count the lines (a second trip); UTF-16 and UTF-32 come whole, up to 256 MiB.
        """
        at = await self._core.absolute(path)
        async with self._core.lanes.lane("files") as lane:
            reply = await lane.call(function_call("window", at, _SMALL), limit=_MOST_WHOLE)
            self._core.check(path, reply)
            size, head = self._sized(reply)
            scan = partial(_scan, start=start, max_lines=max_lines, max_bytes=max_bytes)
            if size <= _SMALL:
                return await _in_thread(lambda: scan(head, size=len(head) or None), len(head))
            first = scan(head, size=None)
            if first.kind != "text":
                return await _in_thread(lambda: scan(head, size=size), len(head))
            if on_progress is not None:
                on_progress(Progress(done=len(head), total=size))
            if not head.startswith(_MARKED):
                return await self._far_window(lane, at, head, (start, max_lines, max_bytes))
        content = await self.read_file(path)
        return await _in_thread(lambda: scan(content, size=len(content)), len(content))

    def _sized(self, reply: Reply) -> tuple[int, bytes]:
        """Split the size from the content, or its beginning."""
        line, newline, rest = reply.data.partition(b"\n")
        try:
            size = number(line)
            if not newline or (size > _SMALL and len(rest) > HEAD_BYTES):
                _broken("a size without its content")
        except Garbage as error:
            raise self._core.garbled(error) from error
        return size, rest

    async def _far_window(
        self, lane: Lane, at: bytes, head: bytes, wanted: tuple[int, int, int]
    ) -> LineWindow:
        start, max_lines, max_bytes = wanted
        has_mark = head.startswith(b"\xef\xbb\xbf")
        mark_bytes = 3 if has_mark and start == 1 else 0
        # One line and one byte more than wanted tell what ended the window.
        request = function_call("lines", at, start, max_lines + 1, max_bytes + mark_bytes + 1)
        reply = await lane.call(request, limit=max_bytes + mark_bytes + 1 + 3 * _HEADER_BYTES)
        try:
            fields = reply.data.split(b"\n", 3)
            if reply.status or len(fields) != 4:
                _broken("an answer without its numbers")
            size, endings, ended = map(number, fields[:3])
            window = fields[3][mark_bytes:]
            long_line = 0
            data, lines, stopped_by = _cut(window, max_lines, max_bytes)
            if stopped_by == "bytes" and not lines:
                told = await lane.call(function_call("line_size", at, start), limit=_HEADER_BYTES)
                long_line = number(told.data) - mark_bytes
        except Garbage as error:
            raise self._core.garbled(error) from error
        return LineWindow(
            kind="text",
            data=data,
            start=start,
            lines=lines,
            total_lines=endings + (1 if size and not ended else 0),
            size=size,
            encoding="utf-8-sig" if has_mark else "utf-8",
            stopped_by=stopped_by,
            long_line_bytes=max(0, long_line),
        )

    async def detect_image_mime_type(self, path: str) -> str | None:
        """See `ImageDetectingReadOperations`."""
        at = await self._core.absolute(path)
        reply = await self._core.ask(path, function_call("beginning", at, 64))
        found: str | None = image_mime_type(reply.data)
        return found

    async def write_file(self, path: str, content: bytes) -> None:
        """See `WriteOperations`."""
        await self.replace_file(path, content)

    async def replace_file(
        self,
        path: str,
        content: bytes,
        *,
        make_parents: bool = False,
        expected: FileVersion | None = None,
        durable: bool = False,
    ) -> WriteResult:
        """See `ReplaceOperations`; a cancelled call waits up to 5 s until the file is settled.

        Extended attributes and access control lists are not kept. The lock of `expected` is one
        of this backend: a writer that is not ours is seen up to the look just before the rename,
        a few milliseconds earlier than with an engine.
        """
        known = await self._core.connect()
        at = await self._core.absolute(path)
        if expected is not None and not known.has_digest:
            raise OperationUnsupported("replace_file", "the target has no sha256sum")
        flags = ("p" if make_parents else "") + ("d" if durable else "") or "-"
        version = digest = ""
        if expected is not None:
            version, digest = f"{expected.device}:{expected.inode}", expected.digest.hex()
        name = f".remotehands-{new_word()}"
        request = function_call("replace", at, name, len(content), flags, version, digest)

        async def work() -> WriteResult:
            async with self._turns.alone() if expected else self._turns.together():
                reply = await self._core.ask(path, request, body=bytes(content))
            return self._written(reply)

        return await self._core.settled(work)

    def _written(self, reply: Reply) -> WriteResult:
        try:
            existed, atomic, reason = reply.data.decode("ascii", "replace").split(" ")
            return convert.write_result(
                {
                    "created": existed == "0",
                    "atomic": atomic == "1",
                    "reason": None if reason == "-" else reason,
                }
            )
        except (ValueError, MalformedReply) as error:
            raise self._core.garbled(Garbage("a write without its result")) from error

    async def make_directory(self, path: str) -> None:
        """See `WriteOperations`."""
        request = function_call("make_folder", await self._core.absolute(path))
        await self._core.settled(lambda: self._core.ask(path, request))

    async def list_directory(self, path: str, *, limit: int) -> DirectoryListing:
        """See `LsOperations`."""
        request = function_call("entries", await self._core.absolute(path))
        reply = await self._core.ask(path, request, limit=_LISTING_BYTES)
        fields = reply.data.split(b"\0")
        try:
            if len(fields) % 2 != 1 or fields[-1]:
                _broken("half an entry")
            rows = list(zip(fields[:-1:2], fields[1::2], strict=True))
            first = heapq.nsmallest(limit, rows, key=lambda row: name_order(row[0][2:]))
            return convert.directory_listing(map(_entry, first), {"total": len(rows)})
        except (Garbage, MalformedReply) as error:
            raise self._core.garbled(Garbage(f"{error}")) from error

    async def exists(self, path: str) -> bool:
        """See `FindOperations`."""
        request = function_call("exists", await self._core.absolute(path))
        return (await self._core.ask(path, request, fine=(0, 1))).status == 0

    async def is_directory(self, path: str) -> bool:
        """See `GrepOperations`."""
        request = function_call("is_folder", await self._core.absolute(path))
        return (await self._core.ask(path, request, fine=(0, 1))).status == 0


class _Limited:
    """What `whole` prints: a line with the file's status, then its content, up to the limit."""

    def __init__(self, path: str) -> None:
        self.fault: Fault | None = None
        self._path = path
        self._chunks: list[bytes] = []
        self._header: re.Match[bytes] | None = None
        self._done = 0

    def take(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._done += len(chunk)
        if self._header is None and self._done - len(chunk) < _HEADER_BYTES:
            self._chunks = [b"".join(self._chunks)]
            self._header = _STATUS.match(self._chunks[0])
            if self._header is not None:
                self._check(int(self._header[1]))
        self._check(self._done - _HEADER_BYTES)

    def _check(self, size: int) -> None:
        if size > MAX_WHOLE_READ:
            self.fault = Fault("too_large", wire_path(self._path), size, MAX_WHOLE_READ)
            self._chunks.clear()
            raise Garbage("the file is over the limit")

    def raw(self) -> bytes:
        """Return all of it, as it came."""
        return b"".join(self._chunks)

    def identity(self) -> tuple[int, int]:
        """Return device and inode."""
        if self._header is None:
            raise Garbage("a file without its status")
        # They have to fit the 64 bits, with a sign, that an engine's have.
        mask = (1 << 63) - 1
        return int(self._header[2]) & mask, int(self._header[3]) & mask

    def content(self) -> bytes:
        """Return what came after the status."""
        first = self._chunks[0][self._header.end() :] if self._header else b""
        return first if len(self._chunks) == 1 else b"".join([first, *self._chunks[1:]])


def _scan(
    content: bytes, *, start: int, max_lines: int, max_bytes: int, size: int | None
) -> LineWindow:
    found = scan_lines([content], start, max_lines, max_bytes, size=size)
    return convert.line_window(found, found.pop("data"))


async def _in_thread(scan: Callable[[], LineWindow], size: int) -> LineWindow:
    """Scan much content in a thread, so that the event loop goes on meanwhile."""
    return await anyio.to_thread.run_sync(scan) if size > 1 << 20 else scan()


def _cut(
    window: bytes, max_lines: int, max_bytes: int
) -> tuple[bytes, int, Literal["lines", "bytes"] | None]:
    """Return (whole lines that fit, their number, what ended them) of lines that go on."""
    end = lines = 0
    while end < len(window):
        if lines == max_lines:
            return window[:end], lines, "lines"
        after = window.find(b"\n", end) + 1 or len(window)
        if after > max_bytes:
            return window[:end], lines, "bytes"
        end = after
        lines += 1
    return window[:end], lines, None


def _broken(says: str) -> NoReturn:
    raise Garbage(says)


def _entry(row: tuple[bytes, bytes]) -> list[object]:
    told, target = row
    kind = _KINDS.get(told[:1], "other")
    if kind != "symlink":
        return [told[2:], kind, None, False]
    return [told[2:], kind, target or None, told[1:2] in (b"N", b"L")]
