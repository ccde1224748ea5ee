"""A program that works on large files in a container and tells what that has cost: NAME.

Prints one JSON object: for each step by how many MB our own peak of memory and that of the
programs at the far end have grown, and how many bytes came over the channel.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio

from backends.docker import DockerBackend
from backends.docker.stream import HijackedStream
from operations import GrepQuery, OutputSnapshot

SIZE_MB = int(os.environ.get("REMOTEHANDS_LARGE_MB", "128"))
OUTPUT_MB = 50

received = 0


class Counted(HijackedStream):
    """A stream that counts what comes."""

    async def receive(self) -> bytes:
        global received
        data = await super().receive()
        received += len(data)
        return data


def peak_mb(pid: int | str = "self") -> float:
    """Return a process's peak of resident memory since the last `forget`."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0  # a zombie


def below(name: str) -> list[int]:
    """Return the pids, as this machine counts them, of what runs in the container."""
    import docker

    api = docker.APIClient(version="auto")
    try:
        return [int(row[0]) for row in api.top(name, "-eo pid")["Processes"]]
    finally:
        api.close()


def far_mb(name: str) -> float:
    peaks = []
    for pid in below(name):
        try:
            peaks.append(peak_mb(pid))
        except OSError:
            continue
    return max(peaks)


async def main(name: str) -> dict[str, Any]:
    from backends.docker import channel

    setattr(channel, "HijackedStream", Counted)  # noqa: B010
    told: dict[str, Any] = {}
    async with DockerBackend.attach(name) as backend:
        far: Any = backend

        async def step(label: str, work: Any) -> None:
            before, far_before, bytes_before = peak_mb(), await there(), received
            began = anyio.current_time()
            result = await work()
            took = anyio.current_time() - began
            told[label] = {
                "near_mb": round(peak_mb() - before, 1),
                "far_mb": round(await there() - far_before, 1),
                "bytes": received - bytes_before,
                "result": result,
                "seconds": round(took, 1),
            }

        async def there() -> float:
            return await anyio.to_thread.run_sync(far_mb, name)

        async def warm() -> None:
            await far.write_file("/work/small", b"needle\n" * 1000)
            await far.read_lines("/work/small", start=1, max_lines=10, max_bytes=1000)
            await far.grep(query("/work/small"))
            await run("echo warm")

        async def read() -> int:
            window = await far.read_lines(
                "/work/big", start=SIZE_MB * 10_000, max_lines=100, max_bytes=50_000
            )
            return int(window.lines)

        async def grep() -> int:
            return len((await far.grep(query("/work/big"))).matches)

        async def write() -> None:
            await far.write_file("/work/written", CONTENT)

        async def run(command: str) -> int:
            last: list[OutputSnapshot] = []
            result = await far.exec_tail(
                command,
                cwd="/work",
                on_snapshot=last.append,
                tail_bytes=100_000,
                keep_over_bytes=50_000,
                keep_over_lines=2000,
            )
            return int(result.total_bytes)

        await warm()
        await run(
            "yes 'this is a line of fifty bytes, not much less or so' | "
            f"head -c {SIZE_MB << 20} >big; echo needle >>big"
        )
        await step("read", read)
        await step("grep", grep)
        await step("write", write)
        await step("output", lambda: run(f"yes one line of output | head -c {OUTPUT_MB << 20}"))
        await run("rm -f big written")
    return told


def query(path: str) -> GrepQuery:
    return GrepQuery(
        pattern="needle",
        path=path,
        glob=None,
        ignore_case=False,
        literal=True,
        context=0,
        limit=10,
        max_line_chars=500,
        timeout_s=60.0,
    )


CONTENT = b"x" * (100 << 20)

if __name__ == "__main__":
    print(json.dumps(anyio.run(main, sys.argv[1])))
