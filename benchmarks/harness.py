"""Measure two things in turn and compare their medians, so that a drifting machine cancels out."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

__all__ = ["Figure", "compare", "program", "single"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table.

    Attributes:
        name: What was done.
        ours: Median in seconds (or the unit in `unit`).
        reference: Median of the reference, in the same run, or None.
        against: What the reference is.
        goal: Most that ours / reference (or ours, without one) may be.
        unit: "s", "MB" or "x".
        samples: How many of each were measured.
        allowance_s: Seconds that ours may take on top of that.
    """

    name: str
    ours: float
    reference: float | None
    against: str
    goal: float
    unit: str = "s"
    samples: int = 1
    allowance_s: float = 0.0

    @property
    def ratio(self) -> float:
        """Return what the goal is about."""
        return self.ours if self.reference is None else self.ours / self.reference

    @property
    def met(self) -> bool:
        """Tell whether the goal was reached in this run."""
        return self.ours <= self.goal * (self.reference or 1.0) + self.allowance_s


def program(*argv: str, cwd: Path | None = None) -> Callable[[], Awaitable[None]]:
    """Return what runs a program to its end in a thread, with its output read and dropped."""

    def run() -> None:
        subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)

    async def in_thread() -> None:
        await anyio.to_thread.run_sync(run)

    return in_thread


async def compare(
    name: str,
    ours: Callable[[], Awaitable[object]],
    reference: Callable[[], Awaitable[object]],
    *,
    against: str,
    goal: float,
    rounds: int,
    per_call: int = 1,
    ours_in_a_row: int = 1,
    allowance_s: float = 0.0,
) -> Figure:
    """Run both in turn, `rounds` times after one warm-up; one run does `per_call` things.

    Ours may run several times in a row, each measured, where the reference leaves work behind that
    goes on for a while (an exec of Docker's is being cleared away after it has answered).
    """
    times: tuple[list[float], list[float]] = ([], [])
    for round_number in range(rounds + 1):
        for kept, run, count in zip(times, (ours, reference), (ours_in_a_row, 1), strict=True):
            for _ in range(count):
                started = time.perf_counter()
                await run()
                if round_number:
                    kept.append((time.perf_counter() - started) / per_call)
    medians = [statistics.median(kept) for kept in times]
    return Figure(
        name=name,
        ours=medians[0],
        reference=medians[1],
        against=against,
        goal=goal,
        samples=rounds,
        allowance_s=allowance_s,
    )


async def single(
    name: str,
    ours: Callable[[], Awaitable[float]],
    *,
    goal: float,
    unit: str = "s",
    rounds: int = 1,
) -> Figure:
    """Take the median of a figure that `ours` measures by itself."""
    values = [await ours() for _ in range(rounds)]
    return Figure(
        name=name,
        ours=statistics.median(values),
        reference=None,
        against="",
        goal=goal,
        unit=unit,
        samples=rounds,
    )
