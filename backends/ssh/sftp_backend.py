"""Every operation on a host whose login gives SFTP and nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, NoReturn, Self

from backends.ssh.sftp_core import SftpCore
from backends.ssh.sftp_files import SftpFiles
from backends.ssh.sftp_search import SftpSearch
from backends.ssh.sftp_session import SftpSession
from backends.ssh.sftp_writing import SftpWriting
from operations import (
    DirectoryListing,
    ExecResult,
    FileVersion,
    GlobResult,
    GrepMatch,
    GrepQuery,
    GrepResult,
    LineWindow,
    OperationUnsupported,
    OutputSnapshot,
    Progress,
    StopSignal,
    TargetFacts,
    VersionedContent,
    WriteResult,
)

__all__ = ["NO_SHELL", "SftpBackend"]

#: Why there are no commands, as a sentence part.
NO_SHELL = (
    "this login gives only SFTP, so files can be read, written, listed and searched, but nothing "
    "can be run; commands need a login with a shell"
)


class SftpBackend:
    """A place of files alone.

    An async context manager; entering connects. After a loss the next operation opens another
    session; nothing is ever sent again. What is weaker than with an engine stands at `SftpFiles`,
    `SftpWriting` and `SftpSearch`.

    Args:
        open_session: Opens a session.
        target: The target as the user named it, for errors.
    """

    def __init__(self, open_session: Callable[[], Awaitable[SftpSession]], *, target: str) -> None:
        self._core = SftpCore(open_session, target=target)
        self._files = SftpFiles(self._core)
        self._writing = SftpWriting(self._core)
        self._search = SftpSearch(self._core)

    @property
    def facts(self) -> TargetFacts | None:
        """See `TargetOperations`."""
        return self._core.facts

    async def __aenter__(self) -> Self:
        await self._core.session()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._core.close()

    # Files

    async def access(self, path: str) -> None:
        """See `ReadOperations`."""
        await self._files.access(path)

    async def read_file(self, path: str) -> bytes:
        """See `ReadOperations`."""
        return await self._files.read_file(path)

    async def read_versioned(self, path: str) -> VersionedContent:
        """See `VersionedReadOperations` and `SftpFiles`."""
        return await self._files.read_versioned(path)

    async def read_lines(
        self,
        path: str,
        *,
        start: int,
        max_lines: int,
        max_bytes: int,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> LineWindow:
        """See `WindowReadOperations` and `SftpFiles`."""
        return await self._files.read_lines(
            path, start=start, max_lines=max_lines, max_bytes=max_bytes, on_progress=on_progress
        )

    async def detect_image_mime_type(self, path: str) -> str | None:
        """See `ImageDetectingReadOperations`."""
        return await self._files.detect_image_mime_type(path)

    async def write_file(self, path: str, content: bytes) -> None:
        """See `WriteOperations` and `SftpWriting`."""
        await self._writing.replace_file(path, content)

    async def replace_file(
        self,
        path: str,
        content: bytes,
        *,
        make_parents: bool = False,
        expected: FileVersion | None = None,
        durable: bool = False,
    ) -> WriteResult:
        """See `ReplaceOperations` and `SftpWriting`."""
        return await self._writing.replace_file(
            path, content, make_parents=make_parents, expected=expected, durable=durable
        )

    async def make_directory(self, path: str) -> None:
        """See `WriteOperations`."""
        await self._writing.make_directory(path)

    async def list_directory(self, path: str, *, limit: int) -> DirectoryListing:
        """See `LsOperations`."""
        return await self._files.list_directory(path, limit=limit)

    async def exists(self, path: str) -> bool:
        """See `FindOperations`."""
        return await self._files.exists(path)

    async def is_directory(self, path: str) -> bool:
        """See `GrepOperations`."""
        return await self._files.is_directory(path)

    # Commands

    async def exec(
        self,
        command: str,
        *,
        cwd: str,
        on_data: Callable[[bytes], None],
        timeout_s: float | None = None,
        env: Mapping[str, str] | None = None,
        stop: StopSignal | None = None,
    ) -> ExecResult:
        """Refuse; there is no shell."""
        _refuse_command()

    async def exec_tail(
        self,
        command: str,
        *,
        cwd: str,
        on_snapshot: Callable[[OutputSnapshot], None],
        tail_bytes: int,
        keep_over_bytes: int,
        keep_over_lines: int,
        timeout_s: float | None = None,
        env: Mapping[str, str] | None = None,
        stop: StopSignal | None = None,
        argv: Sequence[str] | None = None,
        stdin: bytes = b"",
    ) -> ExecResult:
        """Refuse; there is no shell."""
        _refuse_command()

    async def open_program(self, argv: Sequence[str]) -> Any:
        """Refuse; there is no shell."""
        _refuse_command()

    # Searches

    async def grep(
        self,
        query: GrepQuery,
        *,
        on_matches: Callable[[Sequence[GrepMatch]], None] | None = None,
    ) -> GrepResult:
        """See `GrepOperations` and `SftpSearch`."""
        return await self._search.grep(query, on_matches=on_matches)

    async def glob(
        self,
        pattern: str,
        root: str,
        *,
        limit: int,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> GlobResult:
        """See `FindOperations` and `SftpSearch`."""
        return await self._search.glob(pattern, root, limit=limit, on_progress=on_progress)


def _refuse_command() -> NoReturn:
    raise OperationUnsupported("a command", NO_SHELL)
