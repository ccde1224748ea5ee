"""Many sandboxes, many operations, large files: what they cost, and that nothing is left."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest

from backends.docker import DockerBackend
from toolkit.calls import ToolCall
from toolkit.runner import ToolRunner
from toolkit.toolset import coding_tools

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[3]
SANDBOXES = int(os.environ.get("REMOTEHANDS_SANDBOXES", "12"))
OPERATIONS = int(os.environ.get("REMOTEHANDS_OPERATIONS", "1000"))
#: The event loop's own thread, the Docker engine's eight, and what pytest has.
THREADS = 12
#: A container's beat, the lanes that are kept idle, and those that a burst adds.
DESCRIPTORS_EACH = 9


@pytest.fixture
def anyio_backend() -> str:
    """Run on one loop: what differs between the two is tested where it does."""
    return "asyncio"


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


async def work(runner: ToolRunner) -> None:
    """Write a file, and then read it, change it and run a command, all at once."""
    [made] = await runner.run(
        [ToolCall(id="w", name="write", arguments={"path": "f", "content": "one\ntwo\n"})]
    )
    assert not made.is_error, made.text
    change = {"path": "f", "edits": [{"oldText": "two", "newText": "2"}]}
    messages = await runner.run(
        [
            ToolCall(id="r", name="read", arguments={"path": "f"}),
            ToolCall(id="e", name="edit", arguments=change),
            ToolCall(id="b", name="bash", arguments={"command": "echo here"}),
        ]
    )
    assert [message.error_kind for message in messages] == [None] * 3, messages


async def test_many_sandboxes_at_once(api: Any) -> None:
    """Each costs a few descriptors and no thread; closing leaves no container and no volume."""

    def ours() -> list[Any]:
        label = f"remotehands.pid={os.getpid()}"
        return list(api.containers(all=True, filters={"label": label}))

    ready = 0
    all_ready, all_done, leave = anyio.Event(), anyio.Event(), anyio.Event()

    async def one() -> None:
        nonlocal ready
        image = "remotehands-test/busybox"
        async with (
            DockerBackend.run(image, memory="64m", tmp_size="16m") as backend,
            ToolRunner(coding_tools(backend)) as runner,
        ):
            ready += 1
            if ready == SANDBOXES:
                all_ready.set()
            await all_ready.wait()
            await work(runner)
            ready -= 1
            if ready == 0:
                all_done.set()
            await leave.wait()

    before, threads = descriptors(), threading.active_count()
    async with anyio.create_task_group() as tasks:
        for _ in range(SANDBOXES):
            tasks.start_soon(one)
        await all_done.wait()
        assert len(await anyio.to_thread.run_sync(ours)) == SANDBOXES
        # 25 connections are what the SDK keeps for itself.
        assert descriptors() - before <= SANDBOXES * DESCRIPTORS_EACH + 25
        assert threading.active_count() - threads <= THREADS
        leave.set()
    assert await anyio.to_thread.run_sync(ours) == []
    gc.collect()
    assert descriptors() <= before + 3  # the SDK client of the test itself


@pytest.mark.parametrize("image", ["python", "busybox"])
async def test_a_thousand_operations_leave_no_trace(
    container: Callable[..., str], api: Any, image: str
) -> None:
    """No descriptor, thread, memory, process or exec of the Docker engine for any of them."""
    name = await anyio.to_thread.run_sync(container, f"remotehands-test/{image}")
    count = OPERATIONS if image == "python" else OPERATIONS // 4
    async with DockerBackend.attach(name, workdir="/work") as backend:

        async def one(number: int) -> None:
            path = f"/work/{number % 5}"
            kind = number % 5
            if kind == 0:
                await backend.write_file(path, b"x" * 2000)
            elif kind == 1:
                await backend.read_file("/work/0")
            elif kind == 2:
                await backend.exec("true", cwd="/", on_data=lambda _: None)
            elif kind == 3:
                await backend.list_directory("/work", limit=10)
            else:
                await backend.exists(path)

        async def many(total: int) -> None:
            async def some(first: int) -> None:
                for number in range(first, total, 4):
                    await one(number)

            async with anyio.create_task_group() as tasks:
                for first in range(4):
                    tasks.start_soon(some, first)

        def standing() -> dict[str, float]:
            gc.collect()
            return {
                "descriptors": descriptors(),
                "threads": threading.active_count(),
                "execs": len(api.inspect_container(name)["ExecIDs"] or ()),
                "processes": len(api.top(name, "-eo pid")["Processes"]),
            }

        await backend.write_file("/work/0", b"x")
        await many(100)
        standing()  # has connections of its own, from now on
        before, memory = standing(), resident_mb()
        await many(count)
        after = standing()
        # Lanes are opened when many come at once, and as many kept. An engine needs one exec; what
        # it forks ahead may be there or not.
        room = 8 if image == "busybox" else 0
        before["processes"] += 2
        for what, amount in before.items():
            assert after[what] <= amount + room, (before, after)
        grown_mb = resident_mb() - memory
        print(f"{image}: {count} operations, {before} -> {after}, {grown_mb:.1f} MB more")
        assert grown_mb < 10


@pytest.mark.parametrize("image", ["python", "busybox"])
def test_large_files_are_in_nobody_s_memory(container: Callable[..., str], image: str) -> None:
    """A window of a large file, a search in it, 100 MB written, 50 MB of output."""
    name = container(f"remotehands-test/{image}")
    done = subprocess.run(
        [sys.executable, "-m", "tests.backends.docker.large", name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["read"]["result"] == 100
    assert told["output"]["result"] == 50 << 20
    for step, figures in told.items():
        assert figures["near_mb"] < 16, (step, figures)
        assert figures["far_mb"] < 16, (step, figures)
        if step != "output" or image == "python":
            # Of output over lanes the whole crosses, and is cut here.
            assert figures["bytes"] < 4 << 20, (step, figures)
