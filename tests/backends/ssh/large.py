"""A program that works on large files over SSH and tells what that has cost.

Prints one JSON object: for each step by how many MB our own peak of memory and the largest at the
far end (its server and its engine) have grown, and how many MB came to us.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from backends.ssh import SshBackend
from operations import GrepQuery
from tests.sshd import Sshd, children

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

SIZE_MB = int(os.environ.get("REMOTEHANDS_LARGE_MB", "32"))
#: What is written; with the full size of 1024, 100 MB.
WRITTEN_MB = min(100, SIZE_MB)
LINE = b"this is a line of fifty bytes, not much less or so\n"


class Counted(SshBackend):
    """An SshBackend that counts what comes over its channel."""

    received = 0

    async def _open_program(self, *args: Any) -> Any:
        channel: Any = await super()._open_program(*args)
        receive = channel.receive

        async def counted() -> bytes:
            data: bytes = await receive()
            self.received += len(data)
            return data

        channel.receive = counted
        return channel


def peak_mb(pid: int | str = "self") -> float:
    """Return a process's peak of resident memory; of one that has gone, nothing."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


async def main(server: Sshd, folder: str) -> dict[str, Any]:
    told: dict[str, Any] = {}
    backend = Counted.connect("box", config=server.config(), cwd=folder)
    assert isinstance(backend, Counted)
    async with backend:

        async def step(label: str, work: Callable[[], Awaitable[Any]]) -> None:
            before, far_before, received = peak_mb(), far_mb(), backend.received
            began = anyio.current_time()
            result = await work()
            told[label] = {
                "near_mb": round(peak_mb() - before, 1),
                "far_mb": round(far_mb() - far_before, 1),
                "received_mb": round((backend.received - received) / 1e6, 2),
                "seconds": round(anyio.current_time() - began, 1),
                "result": result,
            }

        def far_mb() -> float:
            return max(peak_mb(pid) for pid in children(os.getpid()))

        async def read(file: str = "big", start: int = SIZE_MB * 10_000) -> int:
            window = await backend.read_lines(
                f"{folder}/{file}", start=start, max_lines=100, max_bytes=50_000
            )
            return window.lines

        async def grep(file: str = "big") -> int:
            query = GrepQuery(pattern="needle", path=f"{folder}/{file}", timeout_s=100.0)
            return len((await backend.grep(query)).matches)

        async def write() -> None:
            await backend.write_file(f"{folder}/written", content)

        # Each once before, so that what they import is not counted.
        await backend.write_file(f"{folder}/small", LINE * 1000)
        await read("small", 1)
        await grep("small")
        content = b"x" * (WRITTEN_MB << 20)
        fill(Path(folder, "big"))
        await step("read", read)
        await step("grep", grep)
        await step("write", write)
        assert Path(folder, "written").read_bytes() == content
    return told


def fill(file: Path) -> None:
    with file.open("wb") as out:
        for _ in range(SIZE_MB):
            out.write(LINE * ((1 << 20) // len(LINE)))
        out.write(b"needle\n")


if __name__ == "__main__":
    host = Sshd()
    try:
        host.start()
        with tempfile.TemporaryDirectory(prefix="remotehands-large-") as at:
            print(json.dumps(anyio.run(main, host, at)))
    finally:
        host.remove()
