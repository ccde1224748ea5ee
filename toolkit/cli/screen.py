"""Calls on a terminal: what runs and how far it is, then what came of it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from toolkit import (
    AgentToolResult,
    Event,
    MessageEnd,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from toolkit.rendering import call_view, result_view, terminal

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = ["Screen", "on_terminal", "redrawn"]

_INTERVAL_S = 0.1
#: Lines that a running call shows of what it has so far: alone, and as one of many.
_LINES_ALONE, _LINES_OF_MANY = 12, 1
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def on_terminal() -> bool:
    """Return True where standard output is a terminal that can move about, and may be coloured.

    NO_COLOR (no-color.org) asks for plain text.
    """
    out = sys.stdout
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "")
    return out is not None and out.isatty() and not plain


@contextlib.asynccontextmanager
async def redrawn(
    console: Console,
    view: Callable[[], RenderableType],
    *,
    interval_s: float = _INTERVAL_S,
    stays: bool,
    is_paused: Callable[[], bool] = lambda: False,
) -> AsyncIterator[None]:
    """Show a view, drawn again and again for as long as the block runs.

    Args:
        console: Where; what the block prints there comes above it.
        view: Gives it.
        interval_s: Seconds between two drawings.
        stays: Leave the last one there.
        is_paused: Tells whether something else has the terminal at the moment.
    """
    from rich.live import Live

    live = Live(
        view(),
        console=console,
        auto_refresh=False,
        transient=not stays,
        redirect_stdout=False,
        redirect_stderr=False,
    )

    def draw() -> None:
        if is_paused():
            return
        with contextlib.suppress(OSError):  # a terminal that is gone is no reason to end
            live.update(view(), refresh=True)

    async def redraw() -> None:
        while True:
            await anyio.sleep(interval_s)
            draw()

    with contextlib.suppress(OSError):
        live.start()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(redraw)
            yield
            tasks.cancel_scope.cancel()
    finally:
        draw()
        with contextlib.suppress(OSError):
            live.stop()


@dataclass(slots=True)
class _Running:
    """A call that runs."""

    name: str
    args: Any
    began: float = field(default_factory=time.monotonic)
    partial: AgentToolResult | None = None


class Screen:
    """A listener that shows calls on standard output, as they run and when they have ended.

    Args:
        calls: Show the call above its result; False where the person has just typed it.
        max_lines: Most lines of a result; None for all.
    """

    def __init__(self, *, calls: bool, max_lines: int | None) -> None:
        self._calls = calls
        self._max_lines = max_lines
        self._console = terminal()
        self._running: dict[str, _Running] = {}
        self._args: dict[str, Any] = {}
        self._began = time.monotonic()
        self._ended: Counter[str] = Counter()

    def listen(self, event: Event) -> None:
        """Take an event of the runner."""
        if isinstance(event, ToolExecutionStart):
            self._running[event.tool_call_id] = _Running(event.tool_name, event.args)
        elif isinstance(event, ToolExecutionUpdate):
            if event.tool_call_id in self._running:
                self._running[event.tool_call_id].partial = event.partial_result
        elif isinstance(event, ToolExecutionEnd):
            running = self._running.pop(event.tool_call_id, None)
            self._args[event.tool_call_id] = running.args if running else {}
        elif isinstance(event, MessageEnd):
            self._show(event)

    def live(
        self, *, is_paused: Callable[[], bool]
    ) -> contextlib.AbstractAsyncContextManager[None]:
        """Show what runs for as long as the block does, but while something else is on screen."""
        return redrawn(self._console, self._view, stays=False, is_paused=is_paused)

    def summary(self) -> str:
        """Return in one line how many calls ended how."""
        total = sum(self._ended.values())
        kinds = [f"{count} {kind}" for kind, count in self._ended.most_common()]
        took = time.monotonic() - self._began
        told = f"{total} call{'' if total == 1 else 's'} in {took:.1f} s"
        return f"{told}: {', '.join(kinds)}" if kinds else told

    def _show(self, event: MessageEnd) -> None:
        message = event.message
        kind = "done" if not message.is_error else (message.error_kind or "failed")
        self._ended[kind.replace("_", " ")] += 1
        args = _mapping(self._args.pop(message.tool_call_id, {}))
        with contextlib.suppress(OSError):
            if self._calls:
                self._console.print(call_view(message.tool_name, args))
            self._console.print(
                result_view(message.tool_name, args, message, max_lines=self._max_lines)
            )
            if self._calls:
                self._console.print()

    def _view(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        lines = _LINES_ALONE if len(self._running) == 1 else _LINES_OF_MANY
        now = time.monotonic()
        turn = _SPINNER[int(now / _INTERVAL_S) % len(_SPINNER)]
        shown: list[RenderableType] = []
        room = max(1, self._console.height - 2) // (1 + min(lines, _LINES_OF_MANY))
        for running in list(self._running.values())[:room]:
            line = Text(no_wrap=True, overflow="ellipsis")
            line.append(f"{turn} {now - running.began:.1f} s  ", "dim")
            called = call_view(running.name, _mapping(running.args))
            if isinstance(called, Text):
                line.append(called)
            shown.append(line)
            if running.partial is not None:
                args = _mapping(running.args)
                shown.append(result_view(running.name, args, running.partial, max_lines=lines))
        return Group(*shown)


def _mapping(args: Any) -> dict[str, Any]:
    return args if isinstance(args, dict) else {}
