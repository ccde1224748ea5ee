"""`toolkit run`: batches of calls from JSON lines, answered as they come."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import anyio
import anyio.to_thread

from toolkit import (
    AbortSignal,
    Event,
    TextContent,
    ToolCall,
    ToolResultMessage,
    ToolRunner,
    coding_tools,
    event_to_dict,
)
from toolkit.cli.session import EXIT_USAGE, abort_on_interrupt

if TYPE_CHECKING:
    from backends.targets import Backend

__all__ = ["RunOptions", "run_lines"]

EXIT_INTERRUPTED = 130
#: A line that is longer is malformed; a 10 MB command with every character escaped fits.
MAX_LINE = 96 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How batches are run and what is printed."""

    events: bool
    tool_execution: Literal["parallel", "sequential"]
    on_error: Literal["continue", "cancel"]
    max_concurrency: int


async def run_lines(backend: Backend, file: str, options: RunOptions) -> int:
    """Answer each line of `file` ("-": standard input) in turn.

    Returns:
        0 when every line was answered (errors are answers), 2 if the file cannot be read, 130
        after an interrupt.
    """
    try:
        descriptor = 0 if file == "-" else os.open(file, os.O_RDONLY)
    except OSError as error:
        print(f"toolkit: {file}: {error.strerror}", file=sys.stderr)
        return EXIT_USAGE
    runner = ToolRunner(
        coding_tools(backend),
        listeners=[_print_event] if options.events else [],
        tool_execution=options.tool_execution,
        on_error=options.on_error,
        max_concurrency=options.max_concurrency,
    )
    async with abort_on_interrupt() as signal, runner:
        number = 0
        async for line in _lines_until(descriptor, signal):
            number += 1
            if line.strip():
                await _answer(runner, line, number, signal, events=options.events)
            if signal.is_set():
                return EXIT_INTERRUPTED
    return EXIT_INTERRUPTED if signal.is_set() else 0


async def _answer(
    runner: ToolRunner, line: bytes, number: int, signal: AbortSignal, *, events: bool
) -> None:
    try:
        calls = parse_line(line, number)
    except ValueError as error:
        _print(_malformed(number, str(error)).to_json())
        return
    messages = await runner.run(calls, signal=signal)
    if not events:  # message_end carries them there
        for message in messages:
            _print(message.to_json())


def parse_line(line: bytes, number: int) -> list[ToolCall]:
    """Turn one JSON line into the calls of a batch; a call without an id gets one by its place.

    Raises:
        ValueError: It is not JSON, or not a call or list of calls.
    """
    if len(line) > MAX_LINE:
        raise ValueError(f"line of {len(line)} bytes is over the limit of {MAX_LINE}")
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
    name, call_id = item.get("name"), item.get("id", default_id)
    if not isinstance(name, str) or not name:
        raise ValueError(f"{wanted}; here 'name' is {str(name)[:80]!r}")
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


def _print_event(event: Event) -> None:
    _print(json.dumps(event_to_dict(event), ensure_ascii=False, separators=(",", ":")))


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def _lines_until(descriptor: int, signal: AbortSignal) -> AsyncIterator[bytes]:
    """Yield lines as they arrive; end at the end of the file or when the signal fires."""
    buffer = bytearray()
    while True:
        chunk = await _read_or_stop(descriptor, signal)
        if not chunk:
            break
        buffer += chunk
        *lines, rest = bytes(buffer).split(b"\n") if b"\n" in chunk else [bytes(buffer)]
        for line in lines:
            yield line
            if signal.is_set():
                return
        buffer = bytearray(rest)
    if buffer and not signal.is_set():
        yield bytes(buffer)


async def _read_or_stop(descriptor: int, signal: AbortSignal) -> bytes:
    """Return the next bytes, or b"" at the end of the file or when the signal fires first."""
    if stat.S_ISREG(os.fstat(descriptor).st_mode):  # always ready, and epoll refuses it
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
