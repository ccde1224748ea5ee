"""Every operation as one request to an engine, over whatever channel leads to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio

from backends.remote import convert
from backends.remote.answers import Collector, Rows, match_converter, progress_of
from backends.remote.arguments import (
    MAX_WHOLE_READ,
    command_request,
    confined,
    wire_path,
    wire_pattern,
    wire_version,
)
from backends.remote.channel import Channel, OpenChannel
from backends.remote.client import PATIENCE_S, Unanswered
from backends.remote.connection import Connection
from backends.remote.fallback import OPERATIONS, lacks_python, shell_backend
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
    OperationUnsupported,
    OutputSnapshot,
    PathDenied,
    Progress,
    SearchTimeout,
    StopSignal,
    TargetFacts,
    VersionedContent,
    WriteResult,
)

if TYPE_CHECKING:
    from backends.remote.lanes import LaneOpener
    from backends.remote.shell_backend import ShellBackend

__all__ = ["RemoteBackend"]

GLOB_TIMEOUT_S = 30.0
#: A command's limit holds for a connection that has to be made first too, but a slow host gets
#: this many seconds all the same.
CONNECT_LEAST_S = 10.0


class RemoteBackend:
    """A place that is reached through a byte channel to an engine.

    An async context manager; entering connects, leaving ends all that it started there. After a
    loss the next operation connects once more; nothing is ever sent again.

    Args:
        open_channel: Opens a channel to a program that becomes the engine
            (see `backends.remote.bootstrap`).
        target: The target as the user named it, for errors.
        cwd: The folder that tools work in, on the target.
        env: Variables for every command, on top of the target's own.
        root: A folder on the target that file tools are confined to: what is outside, also by a
            symlink or "..", is OutsideRoot. Commands are refused then, as nothing confines them.
        unconfined_commands: Run commands in spite of `root`.
        lease_s: Seconds without a sign of us after which the engine kills what it started and
            ends; None for never.
        connect_timeout_s: Seconds until a connection counts as not coming.
        connect_on_enter: False connects at the first operation instead.
        settings: Options of the engine's commands; see `backends.engine.commands.Commands`.
        open_lane: Opens a channel to a program given by its argv. On a target without Python
            all operations then go over lanes of its shell (see `ShellBackend`); without it, and
            without `connect_on_enter`, such a target cannot be used.
    """

    def __init__(
        self,
        open_channel: OpenChannel,
        *,
        target: str,
        cwd: str,
        env: Mapping[str, str] | None = None,
        root: str | None = None,
        unconfined_commands: bool = False,
        lease_s: float | None = 30.0,
        connect_timeout_s: float = 30.0,
        connect_on_enter: bool = True,
        settings: Mapping[str, Any] | None = None,
        open_lane: LaneOpener | None = None,
    ) -> None:
        settings = confined(settings, root, cwd, commands=unconfined_commands)
        self.cwd = cwd
        self._env = dict(env or {})
        self._connect_on_enter = connect_on_enter
        self._shell: ShellBackend | None = None
        self._open_lane = open_lane
        self._for_shell: dict[str, Any] = {
            "target": target,
            "connect_timeout_s": connect_timeout_s,
            "lease_s": lease_s,
            "settings": settings,
        }
        self._connection = Connection(
            open_channel,
            target=target,
            lease_s=lease_s,
            connect_timeout_s=connect_timeout_s,
            settings=settings,
        )

    @property
    def facts(self) -> TargetFacts | None:
        """See `TargetOperations`."""
        return self._connection.facts if self._shell is None else self._shell.facts

    async def __aenter__(self) -> Self:
        await self._connection.enter()
        if self._connect_on_enter:
            try:
                await self._connection.client()
            except BaseException as error:
                await self._connection.close()
                if self._open_lane is None or not lacks_python(error):
                    raise
                await self._use_shell(self._open_lane)
        return self

    def _limit_start(self, timeout_s: float) -> None:
        """Have an engine, or a shell, count as not coming after other seconds than were given."""
        self._connection.connect_timeout_s = timeout_s
        self._for_shell["connect_timeout_s"] = timeout_s

    async def _use_shell(self, open_lane: LaneOpener) -> None:
        """Have the target's shell do every operation from now on."""
        shell = shell_backend(open_lane, cwd=self.cwd, env=self._env, **self._for_shell)
        await shell.__aenter__()
        self._shell = shell
        for name in OPERATIONS:
            setattr(self, name, getattr(shell, name))

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        shell, self._shell = self._shell, None
        if shell is not None:
            for name in OPERATIONS:
                delattr(self, name)
            await shell.__aexit__(exc_type, exc, traceback)
        await self._connection.close()

    async def open_program(self, argv: Sequence[str]) -> Channel:
        """Start one more program on the target and return the channel to it.

        It runs as the user that operations run as; whoever asked for it closes the channel.

        Args:
            argv: The program and its arguments.

        Raises:
            OperationUnsupported: This backend has no way to the target but the engine's.
            BackendUnavailable: The target cannot be reached.
        """
        if self._open_lane is None:
            reason = "the engine's own channel is the only way to this target"
            raise OperationUnsupported("a program beside the engine", reason)
        return await self._open_lane(argv)

    async def usable_home(self) -> str:
        """Return the user's home folder, or "/" where that is only a name or another's.

        Raises:
            OperationError: It cannot be asked.
        """
        home = "/" if self.facts is None else self.facts.home
        try:
            return home if await self.exists(f"{home}/.") else "/"
        except PathDenied:
            return "/"

    # Files

    async def access(self, path: str) -> None:
        """See `ReadOperations`."""
        await self._call("access", {"path": wire_path(path)})

    async def read_file(self, path: str) -> bytes:
        """See `ReadOperations`."""
        args = {"path": wire_path(path), "limit": MAX_WHOLE_READ, "digest": False}
        data = Collector(MAX_WHOLE_READ)
        await self._call("read_file", args, on_data=data.take)
        return data.content()

    async def read_versioned(self, path: str) -> VersionedContent:
        """See `VersionedReadOperations`."""
        args = {"path": wire_path(path), "limit": MAX_WHOLE_READ, "digest": True}
        data = Collector(MAX_WHOLE_READ)
        version: FileVersion = await self._call(
            "read_file", args, on_data=data.take, finish=convert.file_version
        )
        return VersionedContent(content=data.content(), version=version)

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
        # UTF-32 takes four bytes where UTF-8 takes one.
        data = Collector(4 * max_bytes + 4)
        args = {
            "path": wire_path(path),
            "start": start,
            "max_lines": max_lines,
            "max_bytes": max_bytes,
        }

        def finish(value: Any) -> LineWindow:
            return convert.line_window(value, data.content())

        window: LineWindow = await self._call(
            "read_lines",
            args,
            on_part=progress_of(on_progress),
            on_data=data.take,
            finish=finish,
        )
        return window

    async def detect_image_mime_type(self, path: str) -> str | None:
        """See `ImageDetectingReadOperations`."""
        found: str | None = await self._call(
            "detect_image", {"path": wire_path(path)}, finish=convert.image_mime_type
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
        """See `ReplaceOperations`; a cancelled call waits up to 5 s until the file is settled."""
        args = {
            "path": wire_path(path),
            "make_parents": make_parents,
            "expected": wire_version(expected),
            "durable": durable,
        }
        written: WriteResult = await self._call(
            "replace_file", args, body=content, finish=convert.write_result, settle=True
        )
        return written

    async def make_directory(self, path: str) -> None:
        """See `WriteOperations`."""
        await self._call("make_directory", {"path": wire_path(path)}, settle=True)

    async def list_directory(self, path: str, *, limit: int) -> DirectoryListing:
        """See `LsOperations`."""
        rows = Rows("entries", limit, convert.entry)
        listing: DirectoryListing = await self._call(
            "list_directory",
            {"path": wire_path(path), "limit": limit},
            on_part=rows.take,
            finish=lambda value: convert.listing_of(rows.rows, value),
        )
        return listing

    async def exists(self, path: str) -> bool:
        """See `FindOperations`."""
        found: bool = await self._call("exists", {"path": wire_path(path)}, finish=convert.flag)
        return found

    async def is_directory(self, path: str) -> bool:
        """See `GrepOperations`."""
        is_one: bool = await self._call(
            "is_directory", {"path": wire_path(path)}, finish=convert.flag
        )
        return is_one

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
        """See `BashOperations`."""
        args, body = command_request(command, cwd, {**self._env, **(env or {})}, timeout_s)
        return await self._run("exec", args, body, timeout_s, stop, on_data=on_data)

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
        variables = {**self._env, **(env or {})}
        args, body = command_request(command, cwd, variables, timeout_s, argv=argv, stdin=stdin)
        args["tail_bytes"] = tail_bytes
        args["keep_over_bytes"] = keep_over_bytes
        args["keep_over_lines"] = keep_over_lines
        return await self._run(
            "exec_tail",
            args,
            body,
            timeout_s,
            stop,
            on_part=lambda value: on_snapshot(convert.output_snapshot(value, tail_bytes)),
        )

    async def _run(
        self,
        operation: str,
        args: dict[str, Any],
        body: bytes,
        timeout_s: float | None,
        stop: StopSignal | None,
        **receivers: Any,
    ) -> ExecResult:
        if stop is not None and stop.is_set():
            return ExecResult(ended="stopped")
        try:
            result: ExecResult = await self._call(
                operation,
                args,
                body=body,
                finish=convert.exec_result,
                stop=stop,
                deadline_s=math.inf if timeout_s is None else timeout_s + PATIENCE_S,
                settle=True,
                connect_s=None if timeout_s is None else max(timeout_s, CONNECT_LEAST_S),
                **receivers,
            )
        except Unanswered:
            stopped = stop is not None and stop.is_set()
            return ExecResult(ended="stopped" if stopped else "timeout", killed="unconfirmed")
        return result

    # Searches

    async def grep(
        self,
        query: GrepQuery,
        *,
        on_matches: Callable[[Sequence[GrepMatch]], None] | None = None,
    ) -> GrepResult:
        """See `GrepOperations`."""
        rows = Rows("final", query.limit, match_converter(query))

        def on_part(value: Any) -> None:
            if not rows.take(value) and on_matches is not None and "matches" in value:
                on_matches(convert.grep_matches(value["matches"]))

        args = {
            "pattern": wire_pattern(query.pattern),
            "path": wire_path(query.path),
            "glob": None if query.glob is None else wire_pattern(query.glob),
            "ignore_case": query.ignore_case,
            "literal": query.literal,
            "context": query.context,
            "limit": query.limit,
            "max_line_chars": query.max_line_chars,
            "timeout_s": query.timeout_s,
        }

        def finish(value: Any) -> GrepResult:
            return convert.grep_result(rows.rows, value)

        found: GrepResult = await self._search("grep", args, on_part, finish)
        return found

    async def glob(
        self,
        pattern: str,
        root: str,
        *,
        limit: int,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> GlobResult:
        """See `FindOperations`."""
        found: list[str] = []
        progress = progress_of(on_progress)

        def on_part(value: Any) -> None:
            if isinstance(value, dict) and "paths" in value:
                found.extend(convert.joined_paths(value["paths"], limit - len(found)))
            elif progress is not None:
                progress(value)

        args = {
            "pattern": wire_pattern(pattern),
            "path": wire_path(root),
            "limit": limit,
            "timeout_s": GLOB_TIMEOUT_S,
        }
        result: GlobResult = await self._search(
            "find", args, on_part, lambda value: convert.glob_result(found, value)
        )
        return result

    async def _search(
        self,
        operation: str,
        args: dict[str, Any],
        on_part: Callable[[Any], None],
        finish: Callable[[Any], Any],
    ) -> Any:
        timeout_s: float = args["timeout_s"]
        try:
            return await self._call(
                operation,
                args,
                on_part=on_part,
                finish=finish,
                deadline_s=timeout_s + PATIENCE_S,
            )
        except Unanswered:
            raise SearchTimeout(timeout_s) from None

    async def _call(
        self,
        operation: str,
        args: dict[str, Any],
        *,
        connect_s: float | None = None,
        **options: Any,
    ) -> Any:
        with anyio.move_on_after(connect_s) as scope:
            client = await self._connection.client()
        if scope.cancelled_caught:
            reason = f"there is no connection after {connect_s:g} seconds; nothing was run"
            raise BackendUnavailable(self._for_shell["target"], reason)
        return await client.call(operation, args, **options)
