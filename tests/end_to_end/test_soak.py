"""Many commands, some ended early, leave nothing behind in us or in the engine."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from backends.local import LocalBackend
from tests.end_to_end.processes import descendants
from toolkit.abort import AbortController
from toolkit.calls import ToolCall, ToolResultMessage
from toolkit.runner import ToolRunner
from toolkit.toolset import coding_tools

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts through /proc"),
]

#: All calls; a quarter of them is ended early.
CALLS = int(os.environ.get("REMOTEHANDS_SOAK_CALLS", "200"))
AT_ONCE = 8


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def standing(scratch: Path) -> dict[str, int]:
    """Count what could leak, in this process and in those below it."""
    gc.collect()  # a backend object that is forgotten lets go of its root folder when it dies
    below = descendants(os.getpid())
    counts = {
        "own descriptors": descriptors(os.getpid()),
        "own threads": threading.active_count(),
        "processes": len(below),
        "files": sum(len(files) for _, _, files in os.walk(scratch)),
    }
    for process in below:
        try:
            counts["descriptors below"] = counts.get("descriptors below", 0) + descriptors(
                process.pid
            )
            counts["threads below"] = counts.get("threads below", 0) + threads(process.pid)
        except OSError:
            continue
    return counts


async def one(runner: ToolRunner, number: int) -> ToolResultMessage:
    """Run one call: of four, one ends early, in turn by its limit or by an abort."""
    early = number % 4 == 0
    arguments: dict[str, object] = {"command": f"seq {number % 3000}"}
    if early:
        arguments = {"command": "sleep 600 & setsid sleep 600 & wait", "timeout": 500}
    controller = AbortController()
    if early and number % 8 == 0:
        arguments["timeout"] = 0.1
    call = ToolCall(id=f"call-{number}", name="bash", arguments=arguments)
    async with anyio.create_task_group() as group:
        if early and number % 8:

            async def abort() -> None:
                await anyio.sleep(0.1)
                controller.abort("soak")

            group.start_soon(abort)
        [message] = await runner.run([call], signal=controller.signal)
    expected = None if not early else "aborted" if number % 8 else "timeout"
    assert message.error_kind == expected, message.text[-500:]
    return message


async def many(runner: ToolRunner, numbers: range) -> None:
    limit = anyio.Semaphore(AT_ONCE)

    async def bounded(number: int) -> None:
        async with limit:
            await one(runner, number)

    async with anyio.create_task_group() as group:
        for number in numbers:
            group.start_soon(bounded, number)


async def settled(look: Callable[[], dict[str, int]], wanted: dict[str, int]) -> dict[str, int]:
    """Look until nothing is above what is wanted; supervisors of a burst wait for some seconds."""
    counts = look()
    with anyio.move_on_after(20):
        while any(counts.get(name, 0) > wanted.get(name, 0) for name in counts):
            await anyio.sleep(0.05)
            counts = look()
    return counts


async def test_nothing_is_left_after_many_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    async with (
        LocalBackend(cwd=str(tmp_path)) as backend,
        ToolRunner(coding_tools(backend, cwd=str(tmp_path))) as runner,
    ):
        await many(runner, range(3 * AT_ONCE))
        before = standing(tmp_path)
        kept = before.pop("files")
        await many(runner, range(CALLS))
        after = await settled(lambda: standing(tmp_path), {**before, "files": 10**9})
        after.pop("files")
        assert {n: c for n, c in after.items() if c > before.get(n, 0)} == {}
    files = [name for _, _, names in os.walk(tmp_path) for name in names]
    assert files == [], f"kept while running: {kept}"


async def test_a_closed_backend_leaves_no_descriptor_thread_or_process(tmp_path: Path) -> None:
    async def use() -> None:
        async with (
            LocalBackend(cwd=str(tmp_path)) as backend,
            ToolRunner(coding_tools(backend, cwd=str(tmp_path))) as runner,
        ):
            await many(runner, range(4))

    await use()
    before = standing(tmp_path)
    for _ in range(5):
        await use()
    after = await settled(lambda: standing(tmp_path), before)
    assert {n: c for n, c in after.items() if c > before.get(n, 0)} == {}
