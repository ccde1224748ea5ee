"""A Docker engine that is killed, and one that starts again: never the machine's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest

from tests.backends.docker.boxes import LIMIT_S, Box, hands_in, kinds, nothing_left
from tests.backends.docker.fault_rounds import BROKEN
from tests.backends.docker.second_engine import SecondEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="lends its Python"),
]

#: To hand over a whole image takes longer than the test: this machine's own Python is lent.
PYTHON = {"binds": ["/usr:/usr:ro", "/usr/lib:/lib:ro", "/usr/lib64:/lib64:ro"]}


@pytest.fixture
def anyio_backend() -> str:
    """Run on one loop: what differs between the two is tested where it does."""
    return "asyncio"


@pytest.fixture(params=[False, True], ids=["containers end", "containers live on"])
def second(request: pytest.FixtureRequest, api: Any) -> Iterator[SecondEngine]:
    engine = SecondEngine(live_restore=request.param)
    try:
        engine.start().close()
        engine.load(api.get_image("remotehands-test/busybox"))
        yield engine
    finally:
        engine.close()


async def test_the_death_of_the_docker_engine_under_all_tools(
    second: SecondEngine, request: pytest.FixtureRequest
) -> None:
    in_thread = anyio.to_thread.run_sync
    api = await in_thread(second.client)
    boxes = [Box(api, "remotehands-test/busybox", options) for options in (PYTHON, {})]
    for box in boxes:
        await in_thread(box.make)
    env = {"PATH": "/bin:/usr/bin"}
    async with (
        hands_in(boxes[0], engine=second.url, env=env) as with_python,
        hands_in(boxes[1], engine=second.url) as without,
    ):
        assert "shell_fallback" not in with_python.backend.facts.capabilities
        both = [with_python, without]
        for hands in both:
            await hands.prepare()
        ready: list[None] = []
        killed = anyio.Event()

        async def strike() -> None:
            """Kill the engine when both are busy."""
            ready.append(None)
            if len(ready) == len(both):
                await in_thread(second.kill)
                killed.set()
            await killed.wait()

        async with anyio.create_task_group() as tasks:
            for hands in both:
                tasks.start_soon(hands.until_struck, strike, LIMIT_S)
        for hands in both:
            assert kinds(hands.ends()) <= BROKEN, hands.ends()
            with anyio.fail_after(LIMIT_S):
                broken = await hands.all_at_once()
            assert kinds(broken) == {"unavailable"}, broken
            assert all("cannot be reached" in message.text for message in broken.values()), broken
        await in_thread(lambda: second.start().close())
        for hands, box in zip(both, boxes, strict=True):
            await in_thread(box.start)
            with anyio.fail_after(LIMIT_S):
                mended = await hands.all_at_once()
            assert kinds(mended) == {None}, mended
            await hands.check_files()
            await nothing_left(box)
    api.close()
