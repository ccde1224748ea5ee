"""What starting costs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import AsyncIterator
from functools import partial

import anyio.to_thread

from benchmarks.harness import Figure, single


async def rows(*, quick: bool) -> AsyncIterator[Figure]:
    rounds = 3 if quick else 11
    python, cli = [sys.executable, "-c"], [sys.executable, "-m", "toolkit.cli"]
    bare = await _seconds([*python, "pass"])
    for name, argv, goal in (
        ("import toolkit (less a bare interpreter)", [*python, "import toolkit"], 0.15),
        ("toolkit --help", [*cli, "--help"], 0.3),
        ("toolkit call ls", [*cli, "call", "ls"], 0.45),
    ):
        less = bare if name.startswith("import") else 0.0
        yield await single(name, partial(_beyond, argv, less), goal=goal, rounds=rounds)


async def _beyond(argv: list[str], less: float) -> float:
    return await _seconds(argv) - less


async def _seconds(argv: list[str]) -> float:
    def run() -> float:
        started = time.perf_counter()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - started

    return await anyio.to_thread.run_sync(run)
