"""Commands over lanes: each has one for its output, and is killed over another."""

from __future__ import annotations

import itertools
import math
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import anyio

from backends.engine.faults import Fault
from backends.remote.arguments import command_request
from backends.remote.lane import Lane, new_word, number
from backends.remote.shell_core import ShellCore
from backends.remote.shell_faults import error_of
from backends.remote.shell_marks import Garbage, Mark, MarkReader
from backends.remote.shell_output import Forwarded, Output, Tailed
from backends.remote.shell_processes import Killed, Processes
from backends.remote.shell_quote import function_call, is_name, quoted
from backends.remote.shell_target import Target
from operations import (
    ConnectionLost,
    ExecResult,
    OperationError,
    OperationUnsupported,
    OutputSnapshot,
    StopSignal,
)

__all__ = ["ShellCommands"]

#: After the shell's end: this long without output, or this long at all, ends the waiting.
_SILENCE_S = 0.1
_LINGER_S = 1.0
#: What was killed may still have output on the way.
_AFTERWARDS_S = 1.0
_SETTLE_S = 5.0
#: Shells report a signal as 128 and its number, and cannot tell that from an exit status.
_SIGNALLED = 128
_MOST_SIGNAL = 31
#: No shell lets a variable of these names be set.
_READ_ONLY = frozenset(
    b"BASHOPTS BASH_VERSINFO EUID PPID SHELLOPTS UID REMOTEHANDS_COMMAND_ID".split()
)


class ShellCommands:
    """Run commands; what differs from an engine stands at the methods.

    Args:
        core: The lanes.
        env: Variables for every command, on top of the target's own.
        grace_s: Seconds between TERM and KILL.
        keep_background: Let background processes live on after `close`.
        keep_output: Leave kept output for a day instead of removing it in `close`.
        kept_cap: Most bytes of one command's kept output.
    """

    def __init__(
        self,
        core: ShellCore,
        *,
        env: Mapping[str, str],
        grace_s: float,
        keep_background: bool,
        keep_output: bool,
        kept_cap: int,
    ) -> None:
        self._core = core
        self._env = dict(env)
        self._grace_s = grace_s
        self._keep_background = keep_background
        self._keep_output = keep_output
        self._kept_cap = kept_cap
        self._session = core.lanes.session
        self._numbers = itertools.count(1)
        self._kept_numbers = itertools.count(1)
        self._ran = False
        self._folder: str | None = None
        self._no_folder = False
        self._making_folder = anyio.Lock()
        self._unneeded: set[str] = set()

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
        """See `BashOperations`.

        An exit status of 129 to 159 counts as a signal. A process that went into the background
        with its output closed is not counted, but ended with the others.
        """
        request = _Request(command, cwd, {**self._env, **(env or {})}, timeout_s, stop)
        return await self._start(request, Forwarded(on_data), kept="")

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
        """See `TailBashOperations`; the whole output crosses, and its tail is cut at this end."""
        variables = {**self._env, **(env or {})}
        request = _Request(command, cwd, variables, timeout_s, stop, argv, stdin)
        if stop is not None and stop.is_set():
            return ExecResult(ended="stopped")
        folder = await self._kept_folder()
        kept = f"{folder}/output-{next(self._kept_numbers)}.log" if folder else ""
        output = Tailed(on_snapshot, tail_bytes)
        result = await self._start(request, output, kept)
        over = output.total_bytes > keep_over_bytes or output.total_lines > keep_over_lines
        if not over and not result.background:
            if kept:
                self._drop(kept)
            return result
        return await self._with_kept(result, kept)

    async def close(self) -> None:
        """End what the commands have left running, and remove the kept output."""
        if self._core.facts is None:
            return
        self._core.lanes.closing = True
        known = await self._core.connect()
        await self._core.lanes.bury()
        try:
            if self._ran and not self._keep_background:
                processes = Processes(self._core.lanes, has_proc=known.has_proc)
                await processes.kill(f"{self._session}.", None, self._grace_s)
            if self._folder is not None:
                keep = "keep" if self._keep_output else ""
                request = function_call("forget_folder", self._folder, keep, *self._unneeded)
                async with self._core.lanes.lane("kills") as lane:
                    await lane.call(request, limit=0)
        except OperationError:
            pass  # the lanes' own ends do what can still be done

    # Running ------------------------------------------------------------------------------

    async def _start(self, request: _Request, output: Output, kept: str) -> ExecResult:
        if request.stop is not None and request.stop.is_set():
            return ExecResult(ended="stopped")
        known = await self._core.connect()
        cwd = await self._core.absolute(request.cwd)
        self._ran = True
        async with self._core.lanes.turn("commands"):
            lane = await self._core.lanes.take("commands")
            family = f"{lane.name}."
            mark = f"{family}{next(self._numbers)}."
            keep = b"1" if self._keep_background else b""
            settings = b"keep=%s marks=%s" % (keep, family.encode())
            run = _Run(self._core, known, lane, mark, output, request, self._grace_s)
            try:
                result = await run.follow(request.text(known, mark, cwd, kept, settings))
            finally:
                if run.goes_on:
                    self._core.lanes.tasks.start_soon(run.drain)
                else:
                    run.leave()
        if run.cwd_refused:
            # The reason is looked for again, as for any path.
            await self._core.ask(request.cwd, function_call("enter", cwd))
            raise error_of(Fault("denied", cwd, ""))
        shell = known.facts.shell or "sh"
        return replace(result, shell=shell if request.argv is None else "")

    # Kept output --------------------------------------------------------------------------

    async def _kept_folder(self) -> str | None:
        """Return this session's folder on the target, made at first need; None if it cannot be."""
        known = await self._core.connect()
        if self._folder is not None or self._no_folder or not known.has_tee:
            return self._folder
        async with self._making_folder:
            if self._folder is None and not self._no_folder:
                async with self._core.lanes.lane("files") as lane:
                    request = function_call("kept_folder", self._session, "")
                    reply = await lane.call(request, limit=4096)
                if reply.status or not reply.data.startswith(b"/"):
                    self._no_folder = True
                else:
                    self._folder = reply.data.decode("utf-8", "surrogateescape")
        return self._folder

    async def _with_kept(self, result: ExecResult, kept: str) -> ExecResult:
        if not kept:
            return replace(result, dropped="no folder for temporary files can be written")
        try:
            async with self._core.lanes.lane("files") as lane:
                reply = await lane.call(function_call("kept_size", kept), limit=80)
            size = number(reply.data)
        except (ConnectionLost, Garbage):
            return replace(result, dropped="its size cannot be told")
        if size < min(result.total_bytes, self._kept_cap // 512 * 512):
            self._drop(kept)
            return replace(result, dropped="no space left for all of it")
        return replace(result, kept_path=kept, kept_bytes=size)

    def _drop(self, kept: str) -> None:
        """Remove an output soon, which nobody waits for; what is still there goes in `close`."""
        self._unneeded.add(kept)
        self._core.lanes.tasks.start_soon(self._remove, kept)

    async def _remove(self, kept: str) -> None:
        try:
            async with self._core.lanes.lane("files") as lane:
                await lane.call(function_call("rm", "-f", "--", kept), limit=0)
        except OperationError:
            return
        self._unneeded.discard(kept)


class _Request:
    """A command as it was asked for, checked."""

    def __init__(
        self,
        command: str,
        cwd: str,
        env: Mapping[str, str],
        timeout_s: float | None,
        stop: StopSignal | None,
        argv: Sequence[str] | None = None,
        stdin: bytes = b"",
    ) -> None:
        args, body = command_request(command, cwd, env, timeout_s, argv=argv, stdin=stdin)
        self.cwd = cwd
        self.timeout_s = timeout_s
        self.stop = stop
        self.stdin = bytes(stdin)
        self.argv: list[bytes] | None = args["argv"]
        self._command = body[: args["command_size"]]
        self._env: list[list[bytes]] = args["env"]
        if timeout_s is not None and not 0 < timeout_s < float("inf"):
            raise error_of(
                Fault("bad_request", f"timeout_s is {timeout_s!r}, not above 0 and finite")
            )
        texts = [self._command, *(self.argv or ()), *(value for _, value in self._env)]
        if any(b"\0" in text for text in texts):
            raise error_of(Fault("bad_request", "the command holds a NUL byte"))
        for name, _ in self._env:
            if not is_name(name) or name in _READ_ONLY:
                shown = name.decode("utf-8", "replace")
                raise OperationUnsupported("exec", f"a shell cannot set the variable {shown!r}")

    def text(self, known: Target, mark: str, cwd: bytes, kept: str, settings: bytes) -> bytes:
        """Return what the lane is asked."""
        parts = [settings]
        if self._env:
            pairs = b" ".join(name + b"=" + quoted(value) for name, value in self._env)
            parts.append(b"variables() { export %s; }" % pairs)
        if self.argv is None:
            parts.append(b"T=" + quoted(known.command_prefix + self._command))
        else:
            words = b" ".join(map(quoted, self.argv))
            parts.append(b"T=; program() { exec $apart %s; }" % words)
        call = function_call(
            "run", mark, cwd, len(self.stdin), kept, "program" if self.argv else "command_shell"
        )
        parts += [call, b"T="]
        return b"; ".join(parts)


class _Run:
    """One command that runs on a lane.

    Attributes:
        goes_on: Whether something still holds the command's output.
        cwd_refused: Whether the working folder could not be entered.
    """

    def __init__(
        self,
        core: ShellCore,
        known: Target,
        lane: Lane,
        mark: str,
        output: Output,
        request: _Request,
        grace_s: float,
    ) -> None:
        self._core = core
        self._lane = lane
        self._mark = mark
        self._output = output
        self._request = request
        self._grace_s = grace_s
        self._processes = Processes(core.lanes, has_proc=known.has_proc)
        self._word = new_word()
        self._reader = MarkReader(self._word)
        self._status: int | None = None
        self._status_at = 0.0
        self._last_output = 0.0
        self._ended = False
        self._answered = False
        self._error: Exception | None = None
        self._stop_fired = False
        self.cwd_refused = False

    @property
    def goes_on(self) -> bool:
        """See the class."""
        return self._answered and not self._ended and self._lane.lost is None

    async def follow(self, text: bytes) -> ExecResult:
        """Start the command and see it to its end.

        Raises:
            ConnectionLost: The lane ended meanwhile.
            Exception: What the receiver of the output raised.
        """
        began = anyio.current_time()
        watch = anyio.CancelScope()
        try:
            await self._lane.begin(text, self._receive, self._word)
            if self._request.stop is not None:
                self._core.lanes.tasks.start_soon(self._watch, self._request.stop, watch)
            if self._request.stdin:
                self._core.lanes.tasks.start_soon(self._lane.feed, self._request.stdin)
            result = await self._until_answer(began)
        except BaseException:
            # Also when the caller is cancelled: nothing of it may go on.
            with anyio.CancelScope(shield=True), anyio.move_on_after(_SETTLE_S):
                await self._kill()
            self._lane.retire()
            raise
        finally:
            watch.cancel()
        if self._error is not None:
            raise self._error
        return replace(
            result,
            total_bytes=self._output.total_bytes,
            total_lines=self._output.total_lines,
            duration_s=anyio.current_time() - began,
        )

    async def _until_answer(self, began: float) -> ExecResult:
        timeout_s = self._request.timeout_s
        until = began + timeout_s if timeout_s is not None else float("inf")
        await self._until(until)
        if self._core.lanes.closing:  # which may have ended it, whatever its status says
            raise ConnectionLost(self._core.target, "the backend was closed")
        if self._status is None and not self._ended:
            if self._lane.lost is not None:
                raise ConnectionLost(self._core.target, self._lane.lost)
            return await self._stopped("stopped" if self._stop_fired else "timeout")
        background = 0
        if not self._ended and self._lane.lost is None:
            background = await self._processes.count(self._mark, self._lane.pid)
        self._answer()
        return _exited(self._status, background)

    async def _stopped(self, ended: Literal["stopped", "timeout"]) -> ExecResult:
        killed = await self._kill()
        with anyio.move_on_after(_AFTERWARDS_S):
            while not self._ended and self._lane.lost is None:
                await self._lane.news(_AFTERWARDS_S)
        self._answer()
        if not self._ended:
            self._lane.retire()
        return ExecResult(
            ended=ended,
            killed="killed" if killed.confirmed else "unconfirmed",
            survivors=killed.survivors,
        )

    def _answer(self) -> None:
        if self._error is None:
            self._output.finish()
        self._answered = True

    async def _kill(self) -> Killed:
        try:
            return await self._processes.kill(self._mark, self._lane.pid, self._grace_s)
        except OperationError:
            return Killed(confirmed=False, survivors=())

    async def _until(self, until: float) -> None:
        """Wait until the command has ended as a caller sees it, or has to be ended."""
        while not self._ended and self._lane.lost is None:
            now = anyio.current_time()
            if self._status is not None:
                silence_s = _SILENCE_S - (now - max(self._last_output, self._status_at))
                rest_s = min(silence_s, _LINGER_S - (now - self._status_at))
                if rest_s <= 0:
                    return
            else:
                if self._stop_fired or self._error is not None or now >= until:
                    return
                rest_s = until - now
            due_s = self._output.due_s()
            await self._lane.news(rest_s if due_s is None else min(rest_s, due_s))
            self._tick()

    def _tick(self) -> None:
        if self._error is None:
            try:
                self._output.tick()
            except Exception as error:
                self._error = error

    async def _watch(self, stop: StopSignal, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                await stop.wait()
            except Exception as error:
                self._error = error
            self._stop_fired = True
            self._lane.wake()

    # What arrives -------------------------------------------------------------------------

    def _receive(self, chunk: bytes) -> None:
        for item in self._reader.feed(chunk):
            if not isinstance(item, Mark):
                self._last_output = anyio.current_time()
                if not self._answered and self._error is None:
                    self._feed(item)
            elif item.letter == "S" and self._status is None and item.number < 256:
                self._status = item.number
                self._status_at = anyio.current_time()
            elif item.letter == "C" and self._status is None:
                self.cwd_refused = True
            elif item.letter == "R" and not self._ended:
                self._ended = True
                self._lane.end()
            else:
                raise Garbage(f"an unexpected mark {item.letter}")

    def _feed(self, data: bytes) -> None:
        try:
            self._output.feed(data)
        except Exception as error:
            self._error = error

    async def drain(self) -> None:
        """Take the output of what goes on until all have closed it; then free the lane."""
        while not self._ended and self._lane.lost is None:
            await self._lane.news(math.inf)
        self.leave()

    def leave(self) -> None:
        """Let go of the lane, unless something of this command may be left in it."""
        if not self._ended or self._request.stdin:
            self._lane.retire()
        self._core.lanes.give_back(self._lane)


def _exited(status: int | None, background: int) -> ExecResult:
    if status is None:
        return ExecResult(ended="lost", background=background)
    number_of = status - _SIGNALLED
    if 0 < number_of <= _MOST_SIGNAL and number_of in signal.valid_signals():
        return ExecResult(ended="signalled", signal=number_of, background=background)
    return ExecResult(ended="exited", exit_code=status, background=background)
