"""bash: run a shell command."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from operations import (
    BashOperations,
    ExecResult,
    OperationError,
    OperationUnsupported,
    OutputSnapshot,
    PathError,
)
from toolkit.failures import ToolFailure
from toolkit.live_output import LiveOutput
from toolkit.optional import OptionalOperations, optional_operations
from toolkit.paths import check_cwd, retell
from toolkit.rendering import call_view, result_view
from toolkit.texts.command_report import report_command, report_output
from toolkit.texts.output import OutputTail
from toolkit.texts.truncate import MAX_BYTES, MAX_LINES, format_size, over_limit, utf8_size
from toolkit.tool import AgentTool, AgentToolResult, OnUpdate, ToolDefinition, wrap_tool_definition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.abort import AbortSignal

__all__ = ["BashArguments", "create_bash_tool", "create_bash_tool_definition"]

MAX_COMMAND_BYTES = 10 * 1024 * 1024


class BashArguments(BaseModel):
    """Arguments of bash."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: str = Field(
        description="Command for the shell: one line or a whole script, up to 10 MB. It starts in "
        "the working folder, without a terminal, with nothing on stdin."
    )
    timeout: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="Seconds after which it is ended, with all that it started.",
    )


def create_bash_tool_definition(
    cwd: str,
    *,
    operations: BashOperations,
    default_timeout_s: float | None = 120.0,
    max_timeout_s: float | None = None,
    env: Mapping[str, str] | None = None,
    max_lines: int = MAX_LINES,
    max_bytes: int = MAX_BYTES,
) -> ToolDefinition[BashArguments]:
    """Define the bash tool.

    Args:
        cwd: Folder on the target that commands start in.
        operations: Where commands run.
        default_timeout_s: Limit of a command that names none, in seconds; None for no limit.
        max_timeout_s: The longest limit that a command may name, in seconds; None for any.
        env: Variables set on top of the target's own.
        max_lines: Most lines of output in a result, 1 or more.
        max_bytes: Most bytes of UTF-8 of output in a result, 4 or more.

    Raises:
        TypeError: `operations` lacks a method, or is a mock without a spec.
        ValueError: `cwd` is not absolute, or a limit is not above 0 and finite.
    """
    check_cwd(cwd)
    for name, value in (("default_timeout_s", default_timeout_s), ("max_timeout_s", max_timeout_s)):
        if value is not None and not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name} must be above 0 and finite, not {value!r}")
    if max_timeout_s is not None:
        default_timeout_s = min(default_timeout_s or max_timeout_s, max_timeout_s)
    runner = _Runner(
        cwd=cwd,
        operations=operations,
        optional=optional_operations(operations, "exec"),
        default_timeout_s=default_timeout_s,
        max_timeout_s=max_timeout_s,
        env=env,
        max_lines=max_lines,
        max_bytes=max_bytes,
    )
    return ToolDefinition(
        name="bash",
        label="Bash",
        description=_description(runner),
        parameters=BashArguments,
        execute=runner.execute,
        prompt_snippet="run a shell command",
        prompt_guidelines=(
            "Use bash to run programs and tests; use read, grep, find and ls to look at files.",
            "Each bash call starts anew in the working folder: `cd` and variables do not last.",
            "Give a timeout to commands that may take long; never wait for input.",
        ),
        render_call=partial(call_view, "bash"),
        render_result=partial(result_view, "bash"),
    )


def create_bash_tool(
    cwd: str,
    *,
    operations: BashOperations,
    default_timeout_s: float | None = 120.0,
    max_timeout_s: float | None = None,
    env: Mapping[str, str] | None = None,
    max_lines: int = MAX_LINES,
    max_bytes: int = MAX_BYTES,
) -> AgentTool[BashArguments]:
    """Create the bash tool; see `create_bash_tool_definition`."""
    return wrap_tool_definition(
        create_bash_tool_definition(
            cwd,
            operations=operations,
            default_timeout_s=default_timeout_s,
            max_timeout_s=max_timeout_s,
            env=env,
            max_lines=max_lines,
            max_bytes=max_bytes,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runner:
    cwd: str
    operations: BashOperations
    optional: OptionalOperations
    default_timeout_s: float | None
    max_timeout_s: float | None
    env: Mapping[str, str] | None
    max_lines: int
    max_bytes: int

    async def execute(
        self,
        _tool_call_id: str,
        params: BashArguments,
        signal: AbortSignal,
        on_update: OnUpdate,
        _context: Any,
    ) -> AgentToolResult:
        timeout_s = _timeout(params.timeout, self.default_timeout_s, self.max_timeout_s)
        _check_command(params.command)
        tail = OutputTail(2 * self.max_bytes)
        live = LiveOutput(lambda: on_update(self._so_far(tail)))
        try:
            result = await self._run(params.command, timeout_s, signal, tail, live)
        except PathError as error:
            told = retell(error, self.cwd, "/", noun="folder")
            raise ToolFailure(f"the working folder {told}", kind=told.kind) from error
        live.finish()
        report = report_command(
            result,
            tail,
            max_lines=self.max_lines,
            max_bytes=self.max_bytes,
            timeout_s=timeout_s,
            abort_reason=signal.reason,
        )
        return AgentToolResult.text(
            report.text,
            details=report.details,
            is_error=report.error is not None,
            error_kind=report.error,
            structured_content=report.structured,
        )

    def _so_far(self, tail: OutputTail) -> AgentToolResult:
        cut, left_out = report_output(
            tail, max_lines=self.max_lines, max_bytes=self.max_bytes, final=False
        )
        details = {"total_bytes": tail.total_bytes, "total_lines": tail.total_lines}
        return AgentToolResult.text(cut.text, details=details | {"truncated": left_out})

    async def _run(
        self,
        command: str,
        timeout_s: float | None,
        signal: AbortSignal,
        tail: OutputTail,
        live: LiveOutput,
    ) -> ExecResult:
        def on_snapshot(snapshot: OutputSnapshot) -> None:
            tail.add_snapshot(
                snapshot.data, snapshot.start, snapshot.total_bytes, snapshot.total_lines
            )
            live.changed()

        if self.optional.tail is not None:
            try:
                return await self.optional.tail.exec_tail(
                    command,
                    cwd=self.cwd,
                    on_snapshot=on_snapshot,
                    tail_bytes=2 * self.max_bytes,
                    # A byte that is not UTF-8 takes three to show.
                    keep_over_bytes=self.max_bytes // 3,
                    keep_over_lines=self.max_lines,
                    timeout_s=timeout_s,
                    env=self.env,
                    stop=signal,
                )
            except OperationUnsupported:
                pass
        return await self._run_plainly(command, timeout_s, signal, tail, live)

    async def _run_plainly(
        self,
        command: str,
        timeout_s: float | None,
        signal: AbortSignal,
        tail: OutputTail,
        live: LiveOutput,
    ) -> ExecResult:
        """Run on a place that sends all output; news between two chunks is shown in time."""

        def on_data(data: bytes) -> None:
            tail.add(data)
            live.changed()

        async with live.running():
            try:
                return await self.operations.exec(
                    command,
                    cwd=self.cwd,
                    on_data=on_data,
                    timeout_s=timeout_s,
                    env=self.env,
                    stop=signal,
                )
            except OperationError as error:  # else the task group would wrap it
                failure = error
        raise failure


def _timeout(asked: float | None, default: float | None, most: float | None) -> float | None:
    if asked is None:
        return default
    if not (asked > 0 and math.isfinite(asked)):
        raise ToolFailure(
            f"timeout must be above 0 and finite, not {asked!r}", kind="invalid_arguments"
        )
    if most is not None and asked > most:
        raise ToolFailure(
            f"timeout {asked:g} is over the maximum of {most:g} seconds; nothing was run",
            kind="invalid_arguments",
        )
    return asked


def _check_command(command: str) -> None:
    if not command.strip():
        raise ToolFailure("the command is empty", kind="invalid_arguments")
    if "\x00" in command:
        raise ToolFailure("a command cannot have a NUL; nothing was run", kind="invalid_arguments")
    size = utf8_size(command)
    if size > MAX_COMMAND_BYTES:
        raise ToolFailure(
            f"the command: {over_limit(size, MAX_COMMAND_BYTES)}; use write for large content",
            kind="too_large",
        )


def _description(runner: _Runner) -> str:
    facts = runner.optional.facts()
    shell = "bash (sh where there is none)"
    if facts is not None and facts.shell is not None:
        shell = facts.shell
    default_s, most_s = runner.default_timeout_s, runner.max_timeout_s
    limits = "no time limit" if default_s is None else f"a time limit of {default_s:g} seconds"
    if most_s is not None:
        limits += f" (at most {most_s:g})"
    return (
        f"Run a command with {shell} in the working folder, with {limits} unless timeout says "
        "otherwise, and show what it printed (stdout and stderr together), "
        f"of a long output the last {format_size(runner.max_bytes)}. It has no terminal and no "
        "input; a process that it leaves in the background goes on."
    )
