"""What lives on this machine, by /proc: how tests prove that a kill left nothing."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True)
class Process:
    """One process; pid and start together are never used twice."""

    pid: int
    start: int
    parent: int
    state: str
    command: str


def table() -> dict[int, Process]:
    """Return all processes of the machine by pid."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            stat = Path("/proc", name, "stat").read_text()
            command = Path("/proc", name, "cmdline").read_bytes()
        except OSError:
            continue  # ended meanwhile
        fields = stat[stat.rindex(")") + 2 :].split()
        found[int(name)] = Process(
            pid=int(name),
            start=int(fields[19]),
            parent=int(fields[1]),
            state=fields[0],
            command=command.replace(b"\0", b" ").decode(errors="replace"),
        )
    return found


def command_lines() -> list[str]:
    """Return the command line of each process of the machine that lives."""
    return [process.command for process in table().values()]


def marked(marker: str, processes: Iterable[Process] | None = None) -> list[Process]:
    """Return those of the processes (all that live) with `marker` in their command line."""
    looked_at = table().values() if processes is None else processes
    return [process for process in looked_at if marker in process.command]


def descendants(pid: int) -> list[Process]:
    """Return all processes below `pid`, in no order."""
    processes = table()
    below: dict[int, list[Process]] = {}
    for process in processes.values():
        below.setdefault(process.parent, []).append(process)
    found, waiting = [], [pid]
    while waiting:
        children = below.get(waiting.pop(), [])
        found += children
        waiting += [child.pid for child in children]
    return found


def chain(pid: int, top: int) -> list[int]:
    """Return the pids from `pid` up to just below `top`."""
    processes = table()
    line = [pid]
    while processes[line[-1]].parent != top:
        line.append(processes[line[-1]].parent)
        assert line[-1] > 1, f"{pid} is not below {top}"
    return line


def remaining(processes: Iterable[Process]) -> list[Process]:
    """Return those that still live (a zombie waiting for its parent does not)."""
    now = table()
    return [
        now[process.pid]
        for process in processes
        if process.pid in now
        and now[process.pid].start == process.start
        and now[process.pid].state not in "ZX"
    ]


def wait_until(condition: Callable[[], object], seconds: float) -> bool:
    """Return True as soon as `condition()` holds, False when it never did in that time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
