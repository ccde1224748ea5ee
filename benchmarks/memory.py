"""Resident memory, from /proc, in fresh processes: `python -m benchmarks.memory TOOL JSON`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import anyio.to_thread

__all__ = ["grown_by", "resident_mb"]


async def grown_by(tool: str, *, engine: bool = False, **arguments: object) -> float:
    """Return by how many MB one call makes a fresh process (or its engine child) peak."""
    argv = [sys.executable, "-m", "benchmarks.memory", tool, json.dumps(arguments)]
    done = await anyio.to_thread.run_sync(
        lambda: subprocess.run(argv, check=True, capture_output=True, text=True)
    )
    ours, engines = map(float, done.stdout.split()[-2:])
    return engines if engine else ours


def resident_mb(pid: int | str = "self", field: str = "VmHWM") -> float:
    """Return a process's peak (VmHWM) or present (VmRSS) resident memory in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise LookupError(field)


async def _measure(tool: str, arguments: dict[str, object]) -> None:
    from benchmarks.place import open_place

    async with open_place() as place:
        (place.folder / "warm.txt").write_text("warm\n")
        await place.call("read", path="warm.txt")
        await place.call("bash", command="echo warm")
        tasks = Path("/proc/self/task").iterdir()
        engine = next(pid for task in tasks for pid in (task / "children").read_text().split())
        before = resident_mb(), resident_mb(engine)
        await place.call(tool, **arguments)
        print(resident_mb() - before[0], resident_mb(engine) - before[1])


if __name__ == "__main__":
    anyio.run(_measure, sys.argv[1], json.loads(sys.argv[2]))
