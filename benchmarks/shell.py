"""bash against the barest subprocess that does the same."""

from __future__ import annotations

import subprocess
import time
from collections.abc import AsyncIterator
from functools import partial

import anyio
import anyio.to_thread

from benchmarks.harness import Figure, compare, single
from benchmarks.memory import grown_by
from benchmarks.place import Place, open_place

FLOOD = "head -c 52428800 /dev/zero | tr '\\0' 'x' | fold -w 99"


async def rows(*, quick: bool) -> AsyncIterator[Figure]:
    async with open_place() as place:
        yield await compare(
            "bash true",
            lambda: place.call("bash", command="true"),
            partial(_bare, "true"),
            against="subprocess.run(bash -c true)",
            goal=2,
            rounds=30 if quick else 200,
        )
        yield await compare(
            "bash printing 50 MB",
            lambda: place.call("bash", command=FLOOD),
            partial(_bare, f"{FLOOD} > {place.folder}/flood"),
            against="bash -c 'cmd > file'",
            goal=2.5,
            rounds=2 if quick else 7,
        )
        yield await single(
            "another call meanwhile, slowest", partial(_read_meanwhile, place), goal=0.05
        )
        for engine in (False, True):
            yield await single(
                f"resident memory grown by it, {'engine' if engine else 'ours'}",
                partial(grown_by, "bash", engine=engine, command=FLOOD),
                goal=15,
                unit="MB",
            )
        yield await single("200 times sleep 0.2 at once", partial(_many, place), goal=2)


async def _bare(command: str) -> None:
    await anyio.to_thread.run_sync(
        lambda: subprocess.run(["bash", "-c", command], check=True, stdin=subprocess.DEVNULL)
    )


async def _read_meanwhile(place: Place) -> float:
    (place.folder / "small.txt").write_text("small\n")
    slowest = 0.0
    async with anyio.create_task_group() as tasks:

        async def flood() -> None:
            await place.call("bash", command=FLOOD)
            tasks.cancel_scope.cancel()

        tasks.start_soon(flood)
        while True:
            started = time.perf_counter()
            await place.call("read", path="small.txt")
            slowest = max(slowest, time.perf_counter() - started)
            await anyio.sleep(0.01)
    return slowest


async def _many(place: Place) -> float:
    started = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(200):
            tasks.start_soon(partial(place.call, "bash", command="sleep 0.2"))
    return time.perf_counter() - started
