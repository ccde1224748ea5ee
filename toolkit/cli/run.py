"""`toolkit run`: batches of calls from JSON lines, answered as they come."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import time
from collections.abc import AsyncIterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import anyio
import anyio.to_thread

from toolkit import (
    AbortSignal,
    Event,
    Listener,
    TextContent,
    ToolCall,
    ToolResultMessage,
    ToolRunner,
    event_to_dict,
)
from toolkit.cli.output import Output
from toolkit.cli.screen import Screen
from toolkit.cli.session import EXIT_USAGE, abort_on_interrupt

if TYPE_CHECKING:
    from backends.targets import Backend
    from toolkit.cli.control import Control
    from toolkit.cli.log import EventLog

__all__ = ["RunOptions", "read_script", "run_lines"]

EXIT_ERROR, EXIT_INTERRUPTED = 1, 130
#: A line that is longer is malformed; a 10 MB command with every character escaped fits.
MAX_LINE = 96 << 20
#: What is shown of one result on a terminal.
_SHOWN_LINES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How batches are run and what is printed.

    Attributes:
        events: Print every event, not only result messages.
        rendered: Show calls and results as people like them, instead of JSON.
    """

    events: bool
    rendered: bool
    tool_execution: Literal["parallel", "sequential"]
    on_error: Literal["continue", "cancel"]
    max_concurrency: int


async def run_lines(
    backend: Backend,
    file: str,
    options: RunOptions,
    url: str,
    control: Control,
    log: EventLog | None = None,
) -> int:
    """Answer each line of `file` ("-": standard input) in turn.

    It ends early after an interrupt, and when nobody takes its output any more: a call whose
    result nobody can see is not run.

    Returns:
        0 when every line was answered (errors are answers), 1 if standard output fails, 2 if the
        file cannot be read, 130 after an interrupt.
    """
    try:
        descriptor = _open(file)
    except OSError as error:
        print(f"toolkit: {file}: {error.strerror}", file=sys.stderr)
        return EXIT_USAGE
    async with abort_on_interrupt() as interrupt:
        out = Output(utf8=True, on_lost=lambda: interrupt.abort("nobody reads the output any more"))

        def print_event(event: Event) -> None:
            told = event_to_dict(event)
            out.line(json.dumps(told, ensure_ascii=False, separators=(",", ":")))

        screen = Screen(calls=True, max_lines=_SHOWN_LINES) if options.rendered else None
        listeners: list[Listener] = [] if log is None else [log.listen]
        if screen is not None:
            listeners.append(screen.listen)
        elif options.events:
            listeners.append(print_event)
        runner = control.runner(
            backend,
            url,
            listeners,
            tool_execution=options.tool_execution,
            on_error=options.on_error,
            max_concurrency=options.max_concurrency,
        )
        live = nullcontext() if screen is None else screen.live(is_paused=lambda: control.is_asking)
        async with runner, live:
            lines = _lines_until(descriptor, interrupt.signal)
            # Listeners tell of messages where there are any for that.
            told = screen is not None or options.events
            await _answer(runner, lines, interrupt.signal, out, told=told)
        if screen is not None:
            print(f"toolkit: {screen.summary()}", file=sys.stderr)
        if out.lost is None and interrupt.signal.is_set():
            return EXIT_INTERRUPTED
        return out.exit_code(0 if out.lost is None else EXIT_ERROR)


def _open(file: str) -> int:
    """Return a descriptor to read calls from.

    Raises:
        OSError: There is nothing to read at.
    """
    if file == "-":
        if sys.stdin is None:  # closed; the number may be something else's by now
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return 0
    descriptor = os.open(file, os.O_RDONLY)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return descriptor


def read_script(file: str) -> list[list[ToolCall]]:
    """Return the batches of all lines of `file` ("-": standard input), read to its end.

    Raises:
        OSError: It cannot be read.
        ValueError: A line is malformed, or there is no call.
    """
    script = []
    with open(_open(file), "rb", closefd=file != "-") as opened:
        for number, line in enumerate(iter(lambda: opened.readline(MAX_LINE + 1), b""), 1):
            try:
                if line.strip():
                    script.append(parse_line(line, number))
            except ValueError as error:
                raise ValueError(f"{file}, line {number}: {error}; nothing was run") from None
    if not any(script):
        raise ValueError(f"{file}: there is no call in it")
    return script


async def _answer(
    runner: ToolRunner,
    lines: AsyncIterator[bytes],
    signal: AbortSignal,
    out: Output,
    *,
    told: bool,
) -> None:
    number = 0
    async for line in lines:
        number += 1
        if not line.strip():
            continue
        try:
            calls = parse_line(line, number)
        except ValueError as error:
            out.line(_malformed(number, str(error)).to_json())
            continue
        messages = await runner.run(calls, signal=signal)
        if not told:
            for message in messages:
                out.line(message.to_json())


def parse_line(line: bytes, number: int) -> list[ToolCall]:
    """Turn one JSON line into the calls of a batch; a call without an id gets one by its place.

    Raises:
        ValueError: It is not JSON, or not a call or list of calls.
    """
    if len(line) > MAX_LINE:
        raise ValueError(f"it is longer than {MAX_LINE} bytes")
    try:
        parsed = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    items = parsed if isinstance(parsed, list) else [parsed]
    return [_call(item, f"{number}.{index}") for index, item in enumerate(items, 1)]


def _call(item: Any, default_id: str) -> ToolCall:
    wanted = 'a call is {"id": "1", "name": "read", "arguments": {"path": "a.txt"}}'
    if not isinstance(item, dict):
        raise ValueError(f"{wanted}, not {str(item)[:80]!r}")
    name, call_id = item.get("name"), item.get("id")
    if not isinstance(name, str) or not name:
        raise ValueError(f"{wanted}; here 'name' is {str(name)[:80]!r}")
    if call_id is None:
        call_id = default_id
    if not isinstance(call_id, str | int) or isinstance(call_id, bool):
        raise ValueError(f"{wanted}; here 'id' is {str(call_id)[:80]!r}")
    return ToolCall(id=str(call_id), name=name, arguments=item.get("arguments"))


def _malformed(number: int, problem: str) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=f"line-{number}",
        tool_name="",
        content=[TextContent(text=f"line {number}: {problem}")],
        is_error=True,
        error_kind="invalid_arguments",
        timestamp=int(time.time() * 1000),
    )


async def _lines_until(descriptor: int, signal: AbortSignal) -> AsyncIterator[bytes]:
    """Yield lines as they arrive; end at the end of the file or when the signal fires.

    Of a line over `MAX_LINE` only so much is kept that it can be seen to be over it.
    """
    line = bytearray()
    while chunk := await _read_or_stop(descriptor, signal):
        first, *others = chunk.split(b"\n")
        line += first[: MAX_LINE + 1 - len(line)]
        for other in others:
            yield bytes(line)
            if signal.is_set():
                return
            line = bytearray(other[: MAX_LINE + 1])
    if line and not signal.is_set():
        yield bytes(line)


async def _read_or_stop(descriptor: int, signal: AbortSignal) -> bytes:
    """Return the next bytes, or b"" at the end of the file or when the signal fires first."""
    kind = os.fstat(descriptor).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or os.isatty(descriptor)):
        # Files and /dev/null are always ready, and epoll refuses them.
        return await anyio.to_thread.run_sync(os.read, descriptor, 1 << 20)
    ready = False
    async with anyio.create_task_group() as tasks:

        async def wait_for_data() -> None:
            nonlocal ready
            await anyio.wait_readable(descriptor)
            ready = True
            tasks.cancel_scope.cancel()

        async def wait_for_signal() -> None:
            await signal.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(wait_for_data)
        tasks.start_soon(wait_for_signal)
    return os.read(descriptor, 1 << 16) if ready else b""
