"""Every operation on a target without Python, over lanes of POSIX sh."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

import anyio

from backends.remote.lanes import LaneOpener
from backends.remote.shell_commands import ShellCommands
from backends.remote.shell_core import ShellCore
from backends.remote.shell_files import ShellFiles
from backends.remote.shell_search import ShellSearch
from operations import (
    DirectoryListing,
    ExecResult,
    FileVersion,
    GlobResult,
    GrepMatch,
    GrepQuery,
    GrepResult,
    LineWindow,
    OutputSnapshot,
    Progress,
    StopSignal,
    TargetFacts,
    VersionedContent,
    WriteResult,
)

__all__ = ["ShellBackend"]

_CLOSE_S = 10.0


class ShellBackend:
    """A place with nothing but a shell and the usual tools; busybox alone is enough.

    An async context manager; entering connects, leaving ends all that it started there. After a
    loss the next operation opens another lane; nothing is ever sent again. What is weaker than
    with an engine stands at the methods of `ShellFiles`, `ShellCommands` and `ShellSearch`.

    Args:
        open_channel: Opens a channel to a program given by its argv.
        target: The target as the user named it, for errors.
        cwd: The folder that tools work in, on the target.
        env: Variables for every command, on top of the target's own.
        connect_timeout_s: Seconds until a connection counts as not coming.
        connect_on_enter: False connects at the first operation instead.
        lease_s: Seconds without a sign of the target after which it counts as lost; None for 30.
        grace_s: Seconds between TERM and KILL.
        keep_background: Let background processes live on after closing.
        keep_output: Leave kept output for a day instead of removing it on closing.
        kept_cap: Most bytes of one command's kept output.
    """

    def __init__(
        self,
        open_channel: LaneOpener,
        *,
        target: str,
        cwd: str,
        env: Mapping[str, str] | None = None,
        connect_timeout_s: float = 30.0,
        connect_on_enter: bool = True,
        lease_s: float | None = 30.0,
        grace_s: float = 0.5,
        keep_background: bool = False,
        keep_output: bool = False,
        kept_cap: int = 1 << 30,
    ) -> None:
        self.cwd = cwd
        self._connect_on_enter = connect_on_enter
        self._core = ShellCore(
            open_channel,
            target=target,
            connect_timeout_s=connect_timeout_s,
            lease_s=lease_s,
            kept_cap=kept_cap,
        )
        self._files = ShellFiles(self._core)
        self._commands = ShellCommands(
            self._core,
            env=env or {},
            grace_s=grace_s,
            keep_background=keep_background,
            keep_output=keep_output,
            kept_cap=kept_cap,
        )
        self._search = ShellSearch(self._core, self._files)

    @property
    def facts(self) -> TargetFacts | None:
        """See `TargetOperations`."""
        return self._core.facts

    async def __aenter__(self) -> Self:
        await self._core.lanes.enter()
        if self._connect_on_enter:
            try:
                await self._core.connect()
            except BaseException:
                await self._core.lanes.close()
                raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with anyio.move_on_after(_CLOSE_S, shield=True):
            await self._commands.close()
        await self._core.lanes.close()

    # Files

    async def access(self, path: str) -> None:
        """See `ReadOperations`."""
        await self._files.access(path)

    async def read_file(self, path: str) -> bytes:
        """See `ReadOperations`."""
        return await self._files.read_file(path)

    async def read_versioned(self, path: str) -> VersionedContent:
        """See `VersionedReadOperations` and `ShellFiles`."""
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
        """See `WindowReadOperations` and `ShellFiles`."""
        return await self._files.read_lines(
            path, start=start, max_lines=max_lines, max_bytes=max_bytes, on_progress=on_progress
        )

    async def detect_image_mime_type(self, path: str) -> str | None:
        """See `ImageDetectingReadOperations`."""
        return await self._files.detect_image_mime_type(path)

    async def write_file(self, path: str, content: bytes) -> None:
        """See `WriteOperations`."""
        await self._files.write_file(path, content)

    async def replace_file(
        self,
        path: str,
        content: bytes,
        *,
        make_parents: bool = False,
        expected: FileVersion | None = None,
        durable: bool = False,
    ) -> WriteResult:
        """See `ReplaceOperations` and `ShellFiles`."""
        return await self._files.replace_file(
            path, content, make_parents=make_parents, expected=expected, durable=durable
        )

    async def make_directory(self, path: str) -> None:
        """See `WriteOperations`."""
        await self._files.make_directory(path)

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
        """See `BashOperations` and `ShellCommands`."""
        return await self._commands.exec(
            command, cwd=cwd, on_data=on_data, timeout_s=timeout_s, env=env, stop=stop
        )

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
        """See `TailBashOperations` and `ShellCommands`."""
        return await self._commands.exec_tail(
            command,
            cwd=cwd,
            on_snapshot=on_snapshot,
            tail_bytes=tail_bytes,
            keep_over_bytes=keep_over_bytes,
            keep_over_lines=keep_over_lines,
            timeout_s=timeout_s,
            env=env,
            stop=stop,
            argv=argv,
            stdin=stdin,
        )

    # Searches

    async def grep(
        self,
        query: GrepQuery,
        *,
        on_matches: Callable[[Sequence[GrepMatch]], None] | None = None,
    ) -> GrepResult:
        """See `GrepOperations` and `ShellSearch`."""
        return await self._search.grep(query, on_matches=on_matches)

    async def glob(
        self,
        pattern: str,
        root: str,
        *,
        limit: int,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> GlobResult:
        """See `FindOperations` and `ShellSearch`."""
        return await self._search.glob(pattern, root, limit=limit, on_progress=on_progress)
