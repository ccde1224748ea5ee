"""The operations on files in memory; their promises stand on the Protocols."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.to_thread

from backends.engine.lines import scan_lines
from backends.memory.core import Core
from backends.remote import convert
from backends.remote.arguments import MAX_WHOLE_READ
from operations import (
    DirectoryListing,
    FileVersion,
    LineWindow,
    Progress,
    VersionedContent,
    WriteResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["FileOperations"]

#: Content over this is scanned in a thread, so that the event loop goes on meanwhile.
_SCAN_IN_THREAD = 1 << 20
_CHUNK = 1 << 18


class FileOperations(Core):
    """Read, write and list."""

    async def access(self, path: str) -> None:
        """See `ReadOperations`."""

        async def effect(at: bytes) -> None:
            self._files.open(at)

        await self._operate("access", path, effect)

    async def read_file(self, path: str) -> bytes:
        """See `ReadOperations`."""

        async def effect(at: bytes) -> bytes:
            return self._files.read(at, MAX_WHOLE_READ)

        return await self._operate("read_file", path, effect)

    async def read_versioned(self, path: str) -> VersionedContent:
        """See `VersionedReadOperations`."""

        async def effect(at: bytes) -> VersionedContent:
            content = self._files.read(at, MAX_WHOLE_READ)
            version = convert.file_version(self._files.version(at))
            return VersionedContent(content=content, version=version)

        return await self._operate("read_versioned", path, effect)

    async def read_lines(
        self,
        path: str,
        *,
        start: int,
        max_lines: int,
        max_bytes: int,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> LineWindow:
        """See `WindowReadOperations`."""

        async def effect(at: bytes) -> LineWindow:
            content = self._files.open(at).content
            scan = partial(_scan, content, start, max_lines, max_bytes)
            if len(content) <= _SCAN_IN_THREAD:
                return scan()
            return await _scan_in_thread(scan, on_progress)

        return await self._operate("read_lines", path, effect)

    async def detect_image_mime_type(self, path: str) -> str | None:
        """See `ImageDetectingReadOperations`."""

        async def effect(at: bytes) -> str | None:
            return self._files.image_mime_type(at)

        return await self._operate("detect_image_mime_type", path, effect)

    async def write_file(self, path: str, content: bytes) -> None:
        """See `WriteOperations`."""

        async def effect(at: bytes) -> None:
            self._files.replace(at, bytes(content))

        await self._operate("write_file", path, effect)

    async def replace_file(
        self,
        path: str,
        content: bytes,
        *,
        make_parents: bool = False,
        expected: FileVersion | None = None,
        durable: bool = False,
    ) -> WriteResult:
        """See `ReplaceOperations`; as after a rename, the file that replaces is a new inode."""
        version = None
        if expected is not None:
            version = (expected.device, expected.inode, expected.digest)

        async def effect(at: bytes) -> WriteResult:
            return convert.write_result(
                self._files.replace(at, bytes(content), make_parents=make_parents, expected=version)
            )

        return await self._operate("replace_file", path, effect)

    async def make_directory(self, path: str) -> None:
        """See `WriteOperations`."""

        async def effect(at: bytes) -> None:
            self._files.make_directory(at)

        await self._operate("make_directory", path, effect)

    async def list_directory(self, path: str, *, limit: int) -> DirectoryListing:
        """See `LsOperations`."""

        async def effect(at: bytes) -> DirectoryListing:
            found = self._files.list_directory(at, limit)
            return convert.directory_listing(found["entries"], found)

        return await self._operate("list_directory", path, effect)

    async def exists(self, path: str) -> bool:
        """See `FindOperations`."""

        async def effect(at: bytes) -> bool:
            return self._files.exists(at)

        return await self._operate("exists", path, effect)

    async def is_directory(self, path: str) -> bool:
        """See `GrepOperations`."""

        async def effect(at: bytes) -> bool:
            return self._files.is_directory(at)

        return await self._operate("is_directory", path, effect)


def _scan(content: bytes, start: int, max_lines: int, max_bytes: int, **options: Any) -> LineWindow:
    found = scan_lines(_chunks(content), start, max_lines, max_bytes, size=len(content), **options)
    return convert.line_window(found, found.pop("data"))


def _chunks(content: bytes) -> Iterator[bytes]:
    for at in range(0, len(content), _CHUNK):
        yield content[at : at + _CHUNK]


async def _scan_in_thread(
    scan: Callable[..., LineWindow], on_progress: Callable[[Progress], None] | None
) -> LineWindow:
    """Scan in a thread that ends soon when this task is cancelled."""

    def report(done: int, total: int | None) -> None:
        if on_progress is not None and not abandoned:
            anyio.from_thread.run_sync(on_progress, Progress(done=done, total=total))

    abandoned = False

    def work() -> LineWindow:
        return scan(progress=report, cancelled=lambda: abandoned)

    try:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    finally:
        abandoned = True
