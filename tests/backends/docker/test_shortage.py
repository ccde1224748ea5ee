"""A container that runs out of memory or of room, under every tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from tests.backends.docker.boxes import LIMIT_S, Box, hands_in, kinds, nothing_left
from tests.backends.docker.fault_rounds import BROKEN

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]

MEMORY = {"mem_limit": "96m", "memswap_limit": "96m"}
EAT = "tail /dev/zero"
#: The engine's own name is not that of a python.
FIRST_TO_GO = (
    "for p in /proc/[0-9]*; do read -r n <$p/comm && [ $n = remotehands ] && "
    "[ $(cut -d' ' -f4 $p/stat) = 0 ] && echo 1000 >$p/oom_score_adj; done"
)


@pytest.fixture
def anyio_backend() -> str:
    """Run on one loop: what differs between the two is tested where it does."""
    return "asyncio"


@pytest.mark.parametrize("image", ["python", "busybox"])
async def test_a_command_that_eats_all_memory_ends_alone(
    box: Callable[..., Box], image: str
) -> None:
    place = await anyio.to_thread.run_sync(lambda: box(image, **MEMORY))
    async with hands_in(place) as hands:
        await hands.prepare()
        with anyio.fail_after(60):
            eaten = await hands.call("bash", command=f"{EAT}; echo $?", timeout=50)
            direct = await hands.call("bash", command=f"exec {EAT}", timeout=50)
        assert "137" in eaten.text, eaten.text
        assert direct.is_error, direct.text
        assert direct.error_kind not in BROKEN
        assert "SIGKILL" in direct.text, direct.text
        assert kinds(await hands.all_at_once()) == {None}


async def test_an_engine_without_memory_is_a_lost_connection(box: Callable[..., Box]) -> None:
    """What the kernel picks is not ours to choose; the command ends with the engine."""
    place = await anyio.to_thread.run_sync(lambda: box("python", **MEMORY))

    def strike() -> None:
        place.run(FIRST_TO_GO)
        place.run(f"timeout 20 {EAT}")

    async with hands_in(place) as hands:
        await hands.prepare()
        await hands.until_struck(lambda: anyio.to_thread.run_sync(strike), LIMIT_S)
        assert kinds(hands.ends()) <= BROKEN | {None}, hands.ends()
        assert hands.ends()["sleep"].error_kind == "connection_lost"
        assert "137" in hands.ends()["sleep"].text
        assert kinds(await hands.all_at_once()) == {None}
        await hands.check_files()
        await nothing_left(place)


@pytest.mark.parametrize("image", ["python", "busybox"])
async def test_a_full_workspace_leaves_every_file_as_it_was(
    box: Callable[..., Box], image: str
) -> None:
    place = await anyio.to_thread.run_sync(lambda: box(image, tmpfs={"/work": "size=1m"}))
    async with hands_in(place) as hands:
        await hands.prepare()
        old = "line\n" * 120_000
        assert not (await hands.call("write", path="old", content=old)).is_error
        write = await hands.call("write", path="old", content="new\n" * 200_000)
        fresh = await hands.call("write", path="fresh", content="new\n" * 200_000)
        change = {"oldText": "line\n" * 120_000, "newText": "long line\n" * 120_000}
        edit = await hands.call("edit", path="old", edits=[change])
        bash = await hands.call("bash", command="head -c 2000000 /dev/zero >zeros")
        for message in (write, fresh, edit, bash):
            assert message.error_kind == "failed", message.text
        for message in (write, fresh, edit):
            assert "space left" in message.text, message.text
        assert await hands.backend.read_file("/work/old") == old.encode()
        await hands.call("bash", command="rm -f zeros")
        names = {
            entry.name for entry in (await hands.backend.list_directory("/work", limit=50)).entries
        }
        assert names == {"old", "again", "edit", "grep", "log", "read"}
        assert kinds(await hands.all_at_once()) == {None}
