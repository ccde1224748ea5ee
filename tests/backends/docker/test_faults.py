"""What every tool says, and leaves, when the place it acts on breaks under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from tests.backends.docker.boxes import LIMIT_S, Box, hands_in, kinds, nothing_left
from tests.backends.docker.fault_rounds import BROKEN

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]


@pytest.fixture
def anyio_backend() -> str:
    """Run on one loop: what differs between the two is tested where it does."""
    return "asyncio"


@dataclass(frozen=True)
class Fault:
    """A way to break a container.

    Attributes:
        strike: Does it.
        mend: Brings the container back.
        told: What an error then says of the container; None when it can be used at once.
    """

    strike: Callable[[Box], object]
    mend: Callable[[Box], object]
    told: str | None


#: The process of the engine has its own name, so that `pkill python` misses it.
KILL_ENGINE = (
    "for p in /proc/[0-9]*; do read -r n <$p/comm && [ $n = remotehands ] && "
    "[ $(cut -d' ' -f4 $p/stat) = 0 ] && kill -9 ${p#/proc/}; done"
)
FAULTS = {
    "stopped": Fault(
        lambda box: box.api.stop(box.name, timeout=0),
        lambda box: box.api.start(box.name),
        "has stopped (exit status",
    ),
    "killed": Fault(
        lambda box: box.api.kill(box.name),
        lambda box: box.api.start(box.name),
        "has stopped (exit status 137)",
    ),
    "paused": Fault(
        lambda box: box.api.pause(box.name),
        lambda box: box.api.unpause(box.name),
        "is paused",
    ),
    "removed": Fault(Box.remove, Box.make, "there is no container"),
    "engine killed": Fault(lambda box: box.run(KILL_ENGINE), lambda _box: None, None),
}
MATRIX = [(image, fault) for image in ("python", "busybox") for fault in FAULTS]
MATRIX.remove(("busybox", "engine killed"))  # there is none: its lanes are shells


@pytest.mark.parametrize(("image", "name"), MATRIX)
async def test_a_fault_under_all_tools(box: Callable[..., Box], image: str, name: str) -> None:
    """Each call gets an answer that says what is wrong; nothing is half done, or done twice."""
    fault = FAULTS[name]
    place = await anyio.to_thread.run_sync(box, image)
    async with hands_in(place) as hands:
        await hands.prepare()
        await hands.until_struck(lambda: anyio.to_thread.run_sync(fault.strike, place), LIMIT_S)
        # Where only the engine died, a call that came a moment later has another one.
        expected = BROKEN if fault.told else BROKEN | {None}
        assert kinds(hands.ends()) <= expected, hands.ends()
        assert hands.ends()["sleep"].error_kind == "connection_lost"
        if fault.told is not None:
            with anyio.fail_after(LIMIT_S):
                broken = await hands.all_at_once()
            assert kinds(broken) == {"unavailable"}, broken
            assert all(fault.told in message.text for message in broken.values()), broken
        await anyio.to_thread.run_sync(fault.mend, place)
        with anyio.fail_after(LIMIT_S):
            mended = await hands.all_at_once()
        assert kinds(mended) == {None}, mended
        if image == "python":
            # Ours: one at first and one again. The other is what killed the engine.
            count = 2 if fault.told else 3
            assert await anyio.to_thread.run_sync(place.programs_started) == count
        await hands.check_files()
        await nothing_left(place)
