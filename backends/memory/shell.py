"""Commands in memory: scripts by text, pattern or predicate, run under time limits and stops."""

from __future__ import annotations

import inspect
import re
import traceback
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import anyio
import anyio.lowlevel

from backends.memory.commands import CommandOutput, CommandRun, RecordedCommand
from operations import ExecResult, OperationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from backends.memory.access import TreeAccess
    from backends.memory.clock import Clock
    from backends.memory.commands import Handler, HandlerReturn, Matcher
    from backends.memory.outputs import Output
    from operations import StopSignal

__all__ = ["Order", "Script", "Shell"]

#: What a shell says of a command that is not there.
_NOT_SCRIPTED = 127
#: EX_SOFTWARE of sysexits.h: the fault is in the program itself, here in the handler.
_HANDLER_RAISED = 70


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What to do for the commands that fit.

    Attributes:
        matcher: Which commands.
        handler: What they do.
        survivors: Names of processes that a kill of this command is said to leave.
    """

    matcher: Matcher
    handler: Handler
    survivors: tuple[str, ...] = ()

    def match(self, command: str) -> object:
        """Return something true if the command fits."""
        if isinstance(self.matcher, str):
            return self.matcher == command and (self.matcher or True)
        if isinstance(self.matcher, re.Pattern):
            return self.matcher.fullmatch(command)
        return self.matcher(command)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One command as it was ordered; `tree` is at its working folder."""

    command: str
    argv: tuple[str, ...] | None = None
    tree: TreeAccess
    env: Mapping[str, str]
    timeout_s: float | None = None
    stdin: bytes = b""
    stop: StopSignal | None = None


@dataclass(slots=True, eq=False)
class _Run:
    """What is known about a run that goes on."""

    record: RecordedCommand
    output: Output
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    cut_short: Literal["timeout", "stopped"] | None = None
    started: bool = False
    survivors: tuple[str, ...] = ()
    raised: OperationError | None = None

    def cut(self, reason: Literal["timeout", "stopped"]) -> None:
        """End the handler, for the first reason that comes."""
        self.cut_short = self.cut_short or reason
        self.scope.cancel()

    def write(self, data: bytes) -> None:
        """Take output, until the command was cut short: what is dead prints nothing."""
        if self.cut_short is None and self.record.result is None:
            self.output.write(data)


class Shell:
    """Run commands by scripts and record them.

    Args:
        clock: What delays and time limits go by.
        env: Variables that every command gets.
    """

    def __init__(self, clock: Clock, env: Mapping[str, str]) -> None:
        self.commands: list[RecordedCommand] = []
        self._scripts: list[Script] = []
        self._clock = clock
        self._env = dict(env)

    def add(self, script: Script) -> None:
        """Script some commands; a later script is asked before an earlier one."""
        self._scripts.append(script)

    async def run(self, order: Order, output: Output) -> tuple[RecordedCommand, ExecResult]:
        """Run a command to its end, its time limit, or its caller's stop.

        Returns:
            The record, whose result is still to be set, and how it ended (without what the
            output has to keep).

        Raises:
            OperationError: The handler raised it.
        """
        run = _Run(_record(order), output)
        self.commands.append(run.record)
        started = self._clock.now()
        if order.stop is not None and order.stop.is_set():
            run.cut("stopped")
        result = await self._supervise(run, order)
        if run.raised is not None:
            raise run.raised
        if run.cut_short is not None:
            result = _cut_short(run)
        return run.record, replace(
            result,
            total_bytes=output.total_bytes,
            total_lines=output.total_lines,
            duration_s=max(0.0, self._clock.now() - started),
        )

    async def _supervise(self, run: _Run, order: Order) -> ExecResult:
        result = ExecResult(ended="lost")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run.output.pump)
            if order.timeout_s is not None:
                tasks.start_soon(self._end_in, order.timeout_s, run)
            if order.stop is not None:
                tasks.start_soon(_end_on, order.stop, run)
            with run.scope:
                await anyio.lowlevel.checkpoint()
                run.started = True
                result = await self._handle(run, order)
            tasks.cancel_scope.cancel()
        return result

    async def _end_in(self, seconds: float, run: _Run) -> None:
        await self._clock.sleep(seconds)
        run.cut("timeout")

    async def _handle(self, run: _Run, order: Order) -> ExecResult:
        """Find the script and run its handler; what that raises becomes part of the result."""
        try:
            for script in reversed(self._scripts):
                if match := script.match(order.command):
                    run.survivors = script.survivors
                    return await self._play(script.handler, self._view(run, order, match))
        except OperationError as error:
            run.record.error = run.raised = error
            return ExecResult(ended="lost")
        except (Exception, SystemExit) as error:
            run.record.error = error
            text = f"memory: the handler for {order.command!r} raised\n{traceback.format_exc()}"
            run.write(text.encode("utf-8", "surrogateescape"))
            return ExecResult(ended="exited", exit_code=_HANDLER_RAISED)
        text = f"memory: no handler for {order.command!r}; add one with backend.on_command(...)\n"
        run.write(text.encode("utf-8", "backslashreplace"))
        return ExecResult(ended="exited", exit_code=_NOT_SCRIPTED)

    def _view(self, run: _Run, order: Order, match: object) -> CommandRun:
        return CommandRun(
            command=order.command,
            argv=order.argv,
            match=match,
            cwd=order.tree.cwd,
            env={**self._env, "PWD": order.tree.cwd, **order.env},
            stdin=order.stdin,
            tree=order.tree,
            stop=order.stop or _NeverStops(),
            clock=self._clock,
            sink=run.write,
        )

    async def _play(self, handler: Handler, run: CommandRun) -> ExecResult:
        given: HandlerReturn | Awaitable[HandlerReturn]
        given = handler(run) if callable(handler) else handler
        if inspect.isawaitable(given):
            given = await given
        if isinstance(given, ExecResult):
            return given
        said = _as_output(given)
        if said.delay_s:
            await self._clock.sleep(said.delay_s)
        run.write(said.output)
        if said.signal is not None:
            return ExecResult(ended="signalled", signal=said.signal, background=said.background)
        return ExecResult(ended="exited", exit_code=said.exit_code, background=said.background)


class _NeverStops:
    """The stop signal of a command that was given none."""

    def is_set(self) -> bool:
        return False

    async def wait(self) -> None:
        await anyio.sleep_forever()


async def _end_on(stop: StopSignal, run: _Run) -> None:
    await stop.wait()
    run.cut("stopped")


def _record(order: Order) -> RecordedCommand:
    return RecordedCommand(
        command=order.command,
        argv=order.argv,
        cwd=order.tree.cwd,
        env=dict(order.env),
        timeout_s=order.timeout_s,
        stdin=order.stdin,
    )


def _cut_short(run: _Run) -> ExecResult:
    assert run.cut_short is not None
    if not run.started:
        return ExecResult(ended=run.cut_short)
    return ExecResult(
        ended=run.cut_short,
        killed="unconfirmed" if run.survivors else "killed",
        survivors=run.survivors,
    )


def _as_output(given: HandlerReturn | object) -> CommandOutput:
    """Return what a handler's value stands for.

    Raises:
        TypeError: It stands for nothing; a bool would be ambiguous.
    """
    if given is None:
        return CommandOutput()
    if isinstance(given, CommandOutput):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        return CommandOutput(exit_code=given)
    if isinstance(given, (str, bytes)):
        return CommandOutput(given)
    raise TypeError(
        f"a handler gives None, an exit code, text, bytes, CommandOutput or ExecResult, "
        f"not {type(given).__name__}"
    )
