"""The processes of a command on a target without Python: seen through /proc, ended by signals.

What belongs to a command: what bears its mark in the environment it was started with, what stands
below the lane that started it in a session of its own, and what stands below any of these. What
left its session, lost its parents and scrubbed its environment before anybody looked is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import anyio

from backends.remote.lanes import Lanes
from backends.remote.shell_quote import function_call

__all__ = ["Killed", "Processes"]

#: One look at all processes has at most so many bytes.
_MOST_BYTES = 16 << 20
#: A name has at most 15 bytes, whatever they are.
_STAT = re.compile(
    rb"^(\d{1,9}) \((.{0,64}?)\) ([A-Za-z]) (\d{1,9}) (-?\d{1,9}) (-?\d{1,9}) "
    rb"(?:-?\d+ ){15}(\d{1,20})",
    re.DOTALL | re.MULTILINE,
)
_MARKED = re.compile(rb"/proc/(\d{1,9})/environ")
_KILL_S = 1.5
_POLL_S = 0.05
_LOOK_S = 3.0


class Killed(NamedTuple):
    """What a kill came to: whether nothing lives, and the names of what was seen to."""

    confirmed: bool
    survivors: tuple[str, ...]


class _Process(NamedTuple):
    pid: int
    name: str
    parent: int
    session: int
    started: int


class Processes:
    """Look at a target's processes and signal them, over lanes of their own.

    Args:
        lanes: The lanes.
        has_proc: Whether the target has a /proc to look at.
    """

    def __init__(self, lanes: Lanes, *, has_proc: bool) -> None:
        self._lanes = lanes
        self._has_proc = has_proc

    async def kill(self, mark: str, lane_pid: int | None, grace_s: float) -> Killed:
        """End all of a command: TERM, a grace, then KILL until nothing is left.

        Args:
            mark: Its mark, or the beginning of the marks of several.
            lane_pid: The lane that runs it; None to go by the mark alone.
            grace_s: Seconds between TERM and KILL.

        Raises:
            OperationError: The target could not be asked.
        """
        if not self._has_proc:
            return Killed(confirmed=False, survivors=())
        known: dict[int, _Process] = {}
        if not await self._look(mark, lane_pid, known):
            return Killed(confirmed=True, survivors=())
        await self._signal("TERM", known)
        until = anyio.current_time() + grace_s
        # No event tells of a far end.
        while await self._look(mark, lane_pid, known) and anyio.current_time() < until:  # noqa: ASYNC110
            await anyio.sleep(_POLL_S)
        until = anyio.current_time() + _KILL_S
        while living := await self._look(mark, lane_pid, known):
            if anyio.current_time() > until:
                return Killed(
                    confirmed=False, survivors=tuple(sorted({p.name for p in living})[:20])
                )
            # Stopped first, so that nothing forks while the others are looked for.
            await self._signal("STOP", known)
            await self._look(mark, lane_pid, known)
            await self._signal("KILL", known)
        return Killed(confirmed=True, survivors=())

    async def count(self, mark: str, lane_pid: int) -> int:
        """Return how many processes of a command live; 0 where they cannot be seen."""
        return len(await self._look(mark, lane_pid, {})) if self._has_proc else 0

    async def _look(
        self, mark: str, lane_pid: int | None, known: dict[int, _Process]
    ) -> list[_Process]:
        """Add what is new to `known`, drop what has ended, and return it all."""
        async with self._lanes.lane("kills") as lane:
            request = function_call("processes", mark)
            reply = await lane.call(request, limit=_MOST_BYTES, idle_s=_LOOK_S)
        stats, _, marked = reply.data.rpartition(b"\x1e")
        there = {process.pid: process for process in _processes(stats)}
        roots = {int(pid) for pid in _MARKED.findall(marked)}
        for pid, process in list(known.items()):
            now = there.get(pid)
            if now is None or now.started != process.started:
                del known[pid]
        roots.update(known)
        lane_session = there[lane_pid].session if lane_pid in there else None
        if lane_pid is not None and lane_session is not None:
            below = _below({lane_pid}, there.values())
            roots |= {p.pid for p in below if p.session != lane_session}
        found = _below(roots, there.values())
        found += [there[pid] for pid in roots if pid in there]
        known.update({process.pid: process for process in found})
        return list(known.values())

    async def _signal(self, name: str, processes: dict[int, _Process]) -> None:
        if not processes:
            return
        # The oldest first: a shell that sees its child end by a signal would say so.
        oldest = sorted(processes.values(), key=lambda process: (process.started, process.pid))
        pids = [process.pid for process in oldest]
        async with self._lanes.lane("kills") as lane:
            await lane.call(function_call("signal", name, *pids), limit=0, idle_s=_LOOK_S)


def _processes(stats: bytes) -> Iterable[_Process]:
    """Yield the living processes in the contents of /proc/*/stat."""
    for pid, name, state, parent, _, session, started in _STAT.findall(stats):
        if state not in b"ZXx":
            shown = name.decode("utf-8", "replace")
            yield _Process(int(pid), shown, int(parent), int(session), int(started))


def _below(roots: set[int], processes: Iterable[_Process]) -> list[_Process]:
    """Return what stands below some processes, without these."""
    children: dict[int, list[_Process]] = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process)
    found: list[_Process] = []
    seen, todo = set(roots), list(roots)
    while todo:
        for child in children.get(todo.pop(), ()):
            if child.pid not in seen:
                seen.add(child.pid)
                todo.append(child.pid)
                found.append(child)
    return found
