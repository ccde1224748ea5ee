"""A clock that a test moves."""

from __future__ import annotations

import anyio
import pytest

from backends.memory import LoopClock, ManualClock

pytestmark = pytest.mark.anyio


async def test_sleeps_end_in_the_order_of_their_times_when_the_clock_gets_there() -> None:
    """And not before."""
    clock = ManualClock(start=100)
    ended: list[int] = []

    async def sleep(seconds: int) -> None:
        await clock.sleep(seconds)
        ended.append(seconds)

    async with anyio.create_task_group() as tasks:
        for seconds in (3, 1, 2):
            tasks.start_soon(sleep, seconds)
        await clock.wait_until_sleeping(3)
        for moved, done in ((0.5, []), (0.5, [1]), (2, [1, 2, 3])):
            clock.advance(moved)
            while len(ended) < len(done):
                await anyio.lowlevel.checkpoint()
            assert sorted(ended) == done
    assert (clock.now(), clock.sleeping) == (103, 0)


async def test_a_cancelled_sleep_is_forgotten() -> None:
    """It counts no more."""
    clock = ManualClock()
    with anyio.move_on_after(0.01):
        await clock.sleep(1000)
    assert clock.sleeping == 0


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_time_does_not_go_back_nor_to_infinity(seconds: float) -> None:
    """Such an advance is refused."""
    with pytest.raises(ValueError, match="seconds"):
        ManualClock().advance(seconds)


async def test_sleeping_for_no_time_lets_others_run() -> None:
    """It is a cancellation point on both clocks."""
    for clock in (ManualClock(), LoopClock()):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await clock.sleep(0)
        assert scope.cancelled_caught


async def test_the_loops_clock_goes_by_itself() -> None:
    """Its wall time is the machine's."""
    clock = LoopClock()
    before = clock.now()
    await clock.sleep(0.01)
    assert clock.now() - before >= 0.009
    assert clock.wall_ns() > 1_600_000_000 * 10**9
