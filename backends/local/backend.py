"""This machine: file operations in one hop to a thread, commands and searches by an engine."""

from __future__ import annotations

import dataclasses
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

from backends.engine import facts, listing, reading, shell, writing
from backends.engine.beneath import open_place
from backends.engine.faults import Fault
from backends.engine.place import Place
from backends.local.engine_target import absolute, engine_opener
from backends.local.env import child_environment, left_out
from backends.remote import convert
from backends.remote.arguments import MAX_WHOLE_READ, wire_path, wire_version
from backends.remote.backend import RemoteBackend
from backends.remote.channel import Channel
from backends.remote.faults import error_from_fault
from backends.remote.pipe import open_pipe
from operations import (
    BackendUnavailable,
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

__all__ = ["LocalBackend"]

T = TypeVar("T")

_TARGET = "local:"
#: Threads that file operations may take at once, apart from the caller's own.
_THREADS = 16
#: What a shell says for a command that it does not find.
_COMMAND_NOT_FOUND = 127
#: A file up to this size is read as one piece, which spares a copy.
_WHOLE_BYTES = 4 << 20


class LocalBackend:
    """The machine and user that this process runs as.

    An async context manager. File operations work without entering it; commands and searches need
    an engine, a child process that is started when the first of them comes, started again if it
    has died, and ended on leaving with all that it started.

    Args:
        cwd: The folder that tools work in, `~` or relative to the current one; None for that one.
        env: Variables for every command, on top of those that pass.
        inherit_env: Pass all of our environment on, not only what a shell needs (PATH, HOME,
            USER, LOGNAME, SHELL, LANG, LC_*, TZ, TMPDIR, VIRTUAL_ENV).
        login_env: Start from the environment of a login shell.
        root: See `RemoteBackend`; relative to the current folder, and what `cwd` is by itself.
        unconfined_commands: See `RemoteBackend`.
        settings: Options of the engine's commands; see `backends.engine.commands.Commands`.
    """

    def __init__(
        self,
        cwd: str | None = None,
        *,
        env: Mapping[str, str] | None = None,
        inherit_env: bool = False,
        login_env: bool = False,
        root: str | None = None,
        unconfined_commands: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        root = None if root is None else absolute(root)
        self.cwd = absolute(cwd or root)
        self._env = dict(env or {})
        self._inherit_env = inherit_env
        self._limiter = anyio.CapacityLimiter(_THREADS)
        self._machine = _Machine(root, with_kept=unconfined_commands)
        self._facts: TargetFacts | None = None
        self._engine = RemoteBackend(
            engine_opener(inherit_env=inherit_env, login_env=login_env),
            target=_TARGET,
            cwd=self.cwd,
            env=env,
            # The end of a pipe never goes unnoticed, so an event loop that is held up for long
            # need not cost its caller the commands that run meanwhile.
            lease_s=None,
            connect_on_enter=False,
            root=root,
            unconfined_commands=unconfined_commands,
            settings=settings,
        )

    @property
    def facts(self) -> TargetFacts | None:
        """See `TargetOperations`; None before entering and the first file operation."""
        return self._engine.facts or self._facts

    async def __aenter__(self) -> Self:
        await self._engine.__aenter__()
        try:
            await self._in_thread(self._machine.place)
        except BaseException:
            await self._engine.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._engine.__aexit__(exc_type, exc, traceback)

    async def open_program(self, argv: Sequence[str]) -> Channel:
        """Start a program in "/" and return the channel to it; whoever asked for it closes it.

        Raises:
            BackendUnavailable: It cannot be started.
        """
        try:
            return await open_pipe(
                argv, env=child_environment(os.environ, inherit=self._inherit_env)
            )
        except OSError as error:
            reason = f"{argv[0]} cannot be started: {error.strerror or error}"
            raise BackendUnavailable(_TARGET, reason) from error

    # Files

    async def access(self, path: str) -> None:
        """See `ReadOperations`."""
        wanted = wire_path(path)
        await self._in_thread(lambda: reading.access(self._machine.place(), wanted))

    async def read_file(self, path: str) -> bytes:
        """See `ReadOperations`."""
        content, _ = await self._read_whole(path, digest=False)
        return content

    async def read_versioned(self, path: str) -> VersionedContent:
        """See `VersionedReadOperations`."""
        content, told = await self._read_whole(path, digest=True)
        return VersionedContent(content=content, version=convert.file_version(told))

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
        wanted = wire_path(path)
        left = threading.Event()

        def progress(done: int, total: int | None) -> None:
            if on_progress is not None and not left.is_set():
                anyio.from_thread.run_sync(on_progress, Progress(done=done, total=total))

        def read() -> dict[str, Any]:
            told: dict[str, Any] = reading.read_lines(
                self._machine.place(),
                wanted,
                start,
                max_lines,
                max_bytes,
                progress=progress,
                cancelled=left.is_set,
            )
            return told

        try:
            window = await self._in_thread(read)
        finally:
            left.set()
        return convert.line_window(window, window.pop("data"))

    async def detect_image_mime_type(self, path: str) -> str | None:
        """See `ImageDetectingReadOperations`."""
        wanted = wire_path(path)
        found: str | None = await self._in_thread(
            lambda: reading.detect_image_mime_type(self._machine.place(), wanted)
        )
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
        """See `ReplaceOperations`; a cancelled call first waits until the file is settled."""
        wanted = wire_path(path)

        def replace() -> dict[str, Any]:
            told: dict[str, Any] = writing.replace_file(
                self._machine.place(),
                wanted,
                writing.BytesContent(content),
                make_parents=make_parents,
                expected=wire_version(expected),
                durable=durable,
            )
            return told

        return convert.write_result(await self._in_thread(replace, settle=True))

    async def make_directory(self, path: str) -> None:
        """See `WriteOperations`."""
        wanted = wire_path(path)
        await self._in_thread(
            lambda: writing.make_directory(self._machine.place(), wanted), settle=True
        )

    async def list_directory(self, path: str, *, limit: int) -> DirectoryListing:
        """See `LsOperations`."""
        wanted = wire_path(path)
        told = await self._in_thread(
            lambda: listing.list_directory(self._machine.place(), wanted, limit)
        )
        return convert.directory_listing(told["entries"], told)

    async def exists(self, path: str) -> bool:
        """See `FindOperations`."""
        wanted = wire_path(path)
        found: bool = await self._in_thread(lambda: listing.exists(self._machine.place(), wanted))
        return found

    async def is_directory(self, path: str) -> bool:
        """See `GrepOperations`."""
        wanted = wire_path(path)
        is_one: bool = await self._in_thread(
            lambda: listing.is_directory(self._machine.place(), wanted)
        )
        return is_one

    async def _read_whole(self, path: str, *, digest: bool) -> tuple[bytes, dict[str, Any]]:
        wanted = wire_path(path)
        chunks: list[bytes] = []

        def read() -> tuple[bytes, dict[str, Any]]:
            told = reading.read_file(
                self._machine.place(),
                wanted,
                chunks.append,
                MAX_WHOLE_READ,
                digest=digest,
                chunk_bytes=_WHOLE_BYTES,
            )
            # Joined in the thread: a large file must not hold the event loop.
            return (chunks[0] if len(chunks) == 1 else b"".join(chunks)), told

        return await self._in_thread(read)

    async def _in_thread(self, call: Callable[[], T], *, settle: bool = False) -> T:
        """Make a blocking call; one that is cancelled is left to itself unless it must settle."""

        def run() -> T:
            if self._facts is None:
                self._facts = self._machine.facts()
            return call()

        try:
            return await anyio.to_thread.run_sync(
                run, abandon_on_cancel=not settle, limiter=self._limiter
            )
        except Fault as fault:
            raise error_from_fault(fault.code, fault.arguments) from None

    # Commands and searches

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
        """See `BashOperations`."""
        result = await self._engine.exec(
            command, cwd=cwd, on_data=on_data, timeout_s=timeout_s, env=env, stop=stop
        )
        return self._explain(result, env)

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
        """See `TailBashOperations`."""
        result = await self._engine.exec_tail(
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
        return self._explain(result, env)

    async def grep(
        self,
        query: GrepQuery,
        *,
        on_matches: Callable[[Sequence[GrepMatch]], None] | None = None,
    ) -> GrepResult:
        """See `GrepOperations`."""
        return await self._engine.grep(query, on_matches=on_matches)

    async def glob(
        self,
        pattern: str,
        root: str,
        *,
        limit: int,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> GlobResult:
        """See `FindOperations`."""
        return await self._engine.glob(pattern, root, limit=limit, on_progress=on_progress)

    def _explain(self, result: ExecResult, env: Mapping[str, str] | None) -> ExecResult:
        """Add the names that were left out, where a command may have missed one."""
        if result.exit_code != _COMMAND_NOT_FOUND:
            return result
        names = left_out(os.environ, {**self._env, **(env or {})}, inherit=self._inherit_env)
        return dataclasses.replace(result, left_out=names)


class _Machine:
    """What threads share: the place that paths are opened in, and what is known of the machine."""

    def __init__(self, root: str | None, *, with_kept: bool) -> None:
        self._lock = threading.Lock()
        self._root = root
        self._with_kept = with_kept
        self._place: Place | None = None

    def place(self) -> Place:
        """Return the place, opening it the first time.

        Raises:
            BackendUnavailable: Its root folder cannot be opened.
        """
        with self._lock:
            if self._place is None:
                try:
                    root = None if self._root is None else os.fsencode(self._root)
                    self._place = open_place(root, self._with_kept)
                except OSError as error:
                    reason = f"the root folder {self._root}: {error.strerror}"
                    raise BackendUnavailable(_TARGET, reason) from error
                weakref.finalize(self, self._place.close)
            return self._place

    def facts(self) -> TargetFacts:
        """Look what can be told without an engine."""
        found = shell.find_shell()
        capabilities = ["rg"] if shell.which(b"rg") else []
        told = facts.collect(self.place(), found and found.name, capabilities)
        return convert.target_facts(told)
