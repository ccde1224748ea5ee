"""What commands in memory are made of: outputs, runs that handlers see, and records of calls."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

import anyio.lowlevel

from operations import ExecResult

if TYPE_CHECKING:
    from backends.memory.access import TreeAccess
    from backends.memory.clock import Clock
    from operations import StopSignal

__all__ = [
    "CommandOutput",
    "CommandRun",
    "Handler",
    "HandlerReturn",
    "Matcher",
    "RecordedCommand",
]


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """What a command prints and how it ends.

    Attributes:
        output: stdout and stderr together; text is printed as UTF-8.
        exit_code: 0-255; without meaning when `signal` is given.
        signal: Number of the signal that ends the shell, such as 9, or None.
        delay_s: Seconds by the backend's clock from the start to the output.
        background: How many processes the command is said to have left running.
    """

    output: str | bytes = b""
    _: KW_ONLY
    exit_code: int = 0
    signal: int | None = None
    delay_s: float = 0.0
    background: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.exit_code <= 255:
            raise ValueError(f"exit_code has to be 0 to 255, not {self.exit_code}")
        if self.signal is not None and not 1 <= self.signal <= 64:
            raise ValueError(f"signal has to be 1 to 64, not {self.signal}")


@dataclass(slots=True, kw_only=True, eq=False)
class CommandRun:
    """One run of a command, as its handler sees it.

    Attributes:
        command: The command's text; for an argv, its words quoted for a shell.
        argv: The program and its arguments where one was run without a shell, else None.
        match: What the matcher gave: the `re.Match` of a regular expression, the value of a
            predicate, the text itself.
        cwd: Absolute path of the working folder.
        env: Every environment variable that the command gets.
        stdin: What it would read.
        tree: The files; relative paths are against `cwd`.
        stop: Tells that the caller wants the command to end. The handler need not look at it: it
            is cancelled in any case.
        clock: The backend's clock; `await run.clock.sleep(2)` lets time go by.
    """

    command: str
    argv: tuple[str, ...] | None
    match: object
    cwd: str
    env: Mapping[str, str]
    stdin: bytes
    tree: TreeAccess
    stop: StopSignal
    clock: Clock
    sink: Callable[[bytes], None] = field(repr=False)

    def write(self, output: str | bytes) -> None:
        """Print a chunk at once; text is printed as UTF-8, and nothing is added to it."""
        data = output.encode("utf-8", "surrogateescape") if isinstance(output, str) else output
        if data:
            self.sink(bytes(data))

    async def print(self, *values: object, sep: str = " ", end: str = "\n") -> None:
        """Print values as `print` does, and let other tasks run."""
        self.write(sep.join(map(str, values)) + end)
        await anyio.lowlevel.checkpoint()


HandlerReturn = None | int | str | bytes | CommandOutput | ExecResult
Handler = (
    str | bytes | CommandOutput | Callable[[CommandRun], HandlerReturn | Awaitable[HandlerReturn]]
)
Matcher = str | re.Pattern[str] | Callable[[str], object]


@dataclass(slots=True, kw_only=True)
class RecordedCommand:
    """One command, in `MemoryBackend.commands` from its start on.

    Attributes:
        command: Its text; for an argv, its words quoted for a shell.
        argv: The argv, or None.
        cwd: Absolute path of the working folder.
        env: The variables that the caller set (not those of the backend).
        timeout_s: The caller's time limit.
        stdin: What the command could read.
        result: How it ended; None while it runs, and when it was cancelled or `exec` raised.
        error: What its handler raised, or None.
    """

    command: str
    argv: tuple[str, ...] | None
    cwd: str
    env: Mapping[str, str]
    timeout_s: float | None
    stdin: bytes
    result: ExecResult | None = None
    error: BaseException | None = None
