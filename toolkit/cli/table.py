"""A live table of many hosts, on a terminal: state, time and last line of each."""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

from toolkit.cli.screen import redrawn
from toolkit.cli.shown import shown
from toolkit.rendering import terminal

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from toolkit import HostStatus

__all__ = ["has_terminal", "live_table"]

_INTERVAL_S = 0.2
#: Lines of the terminal that are not for hosts: the totals, and where the cursor ends up.
_OTHER_LINES = 3
#: In which order hosts are shown when there is not room for all, and in which style.
_STATES = {
    "running": "bold",
    "connecting": "bold",
    "unreachable": "red",
    "failed": "red",
    "stopped": "yellow",
    "waiting": "dim",
    "done": "green",
}


def has_terminal() -> bool:
    """Return True where a table can be seen: standard error is a terminal that can move about."""
    return (
        sys.stderr is not None
        and sys.stderr.isatty()
        and os.environ.get("TERM") not in ("dumb", "")
    )


@contextlib.asynccontextmanager
async def live_table(
    labels: Sequence[str],
    statuses: Callable[[], Sequence[HostStatus]],
    *,
    is_paused: Callable[[], bool],
) -> AsyncIterator[None]:
    """Show a table on standard error for as long as the block runs; its last state stays there.

    Args:
        labels: What each host is called there, in printable characters.
        statuses: How things are, in the same order.
        is_paused: Tells whether something else has the terminal at the moment.
    """
    console = terminal(stderr=True)

    def view() -> RenderableType:
        return as_table(labels, statuses(), console)

    async with redrawn(console, view, interval_s=_INTERVAL_S, stays=True, is_paused=is_paused):
        yield


def as_table(
    labels: Sequence[str], statuses: Sequence[HostStatus], console: Console
) -> RenderableType:
    """Return what is shown: as many hosts as there is room for, and how many are how."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows = list(zip(labels, statuses, strict=True))
    room = max(1, console.height - _OTHER_LINES)
    if len(rows) > room:
        order = list(_STATES)
        rows = sorted(rows, key=lambda row: order.index(row[1].state))[:room]
    # Widths are given: a long last line would squeeze the other columns.
    label_width = min(max(map(len, labels)), max(8, console.width // 3))
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(no_wrap=True, overflow="ellipsis", width=label_width)
    table.add_column(no_wrap=True, width=max(map(len, _STATES)))
    table.add_column(no_wrap=True, width=len("1000.0 s"), justify="right")
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for label, status in rows:
        table.add_row(
            Text(label),
            Text(status.state, style=_STATES[status.state]),
            Text("" if status.state == "waiting" else f"{status.elapsed_s:.1f} s"),
            Text(shown(status.last_line.expandtabs()), style="dim"),
        )
    counts = Counter[str](status.state for status in statuses)
    totals = ", ".join(f"{counts[state]} {state}" for state in _STATES if counts[state])
    return Group(table, Text(totals))
