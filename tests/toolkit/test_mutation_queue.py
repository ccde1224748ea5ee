"""Writers of one file take turns, first come first served, and nobody is ever stuck."""

from __future__ import annotations

import random
import threading

import anyio
import anyio.lowlevel
import pytest

from toolkit.mutation_queue import _queues, mutation_queue

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _no_key_is_left():
    yield
    assert _queues == {}


async def test_writers_of_one_key_take_turns_in_the_order_they_came():
    """First come, first served."""
    order: list[int] = []
    inside = 0

    async def write(number: int) -> None:
        nonlocal inside
        async with mutation_queue("k"):
            inside += 1
            assert inside == 1
            await anyio.sleep(0.001)
            order.append(number)
            inside -= 1

    async with anyio.create_task_group() as group, mutation_queue("k"):
        for number in range(20):
            group.start_soon(write, number)
            await anyio.wait_all_tasks_blocked()
    assert order == list(range(20))


async def test_different_keys_do_not_wait_for_each_other():
    """Two files are two queues."""
    with anyio.fail_after(10):
        async with mutation_queue(("m", "/a")), mutation_queue(("m", "/b")):
            pass


async def test_a_newcomer_does_not_overtake_those_who_wait():
    """Not even in the instant in which the turn is handed on."""
    order = []

    async def write(name: str) -> None:
        async with mutation_queue("k"):
            order.append(name)

    async with anyio.create_task_group() as group:
        async with mutation_queue("k"):
            group.start_soon(write, "waiter")
            await anyio.wait_all_tasks_blocked()
        await write("newcomer")
    assert order == ["waiter", "newcomer"]


async def test_a_body_that_raises_hands_the_turn_on():
    """An error of one writer is none of the next."""
    with pytest.raises(ValueError, match="x"):
        async with mutation_queue("k"):
            raise ValueError("x")
    with anyio.fail_after(10):
        async with mutation_queue("k"):
            pass


async def test_a_cancelled_waiter_leaves_the_queue():
    """The one behind it is next."""
    reached = anyio.Event()

    async def write() -> None:
        async with mutation_queue("k"):
            reached.set()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group, mutation_queue("k"):
            async with anyio.create_task_group() as doomed:
                doomed.start_soon(write)
                await anyio.wait_all_tasks_blocked()
                group.start_soon(write)
                await anyio.wait_all_tasks_blocked()
                doomed.cancel_scope.cancel()
            assert not reached.is_set()
    assert reached.is_set()


async def test_a_turn_that_comes_together_with_a_cancellation_is_handed_on():
    """It must not be lost with the one who was cancelled."""
    reached = anyio.Event()

    async def write() -> None:
        async with mutation_queue("k"):
            reached.set()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            scope = anyio.CancelScope()

            async def doomed() -> None:
                with scope:
                    async with mutation_queue("k"):
                        await anyio.sleep(3600)

            async with mutation_queue("k"):
                group.start_soon(doomed)
                await anyio.wait_all_tasks_blocked()
                group.start_soon(write)
                await anyio.wait_all_tasks_blocked()
            scope.cancel()
    assert reached.is_set()


async def test_random_cancellations_never_leave_anybody_stuck():
    """A storm of writers, of which many are cancelled at odd moments."""
    chance = random.Random(7)
    done = inside = 0

    async def write(delay: float, patience: float) -> None:
        nonlocal done, inside
        await anyio.sleep(delay)
        with anyio.move_on_after(patience):
            async with mutation_queue(chance.choice("ab")):
                inside += 1
                assert inside <= 2
                try:
                    await anyio.sleep(0.0005)
                finally:
                    inside -= 1
        done += 1

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for _ in range(300):
                group.start_soon(write, chance.random() * 0.05, chance.random() * 0.05)
    assert done == 300


def test_two_event_loops_in_two_threads_take_turns():
    """asyncio in one, trio in the other, and neither waits for ever."""
    inside = 0
    most = 0
    guard = threading.Lock()

    async def write() -> None:
        nonlocal inside, most
        for _ in range(50):
            async with mutation_queue("shared"):
                with guard:
                    inside += 1
                    most = max(most, inside)
                await anyio.lowlevel.checkpoint()
                with guard:
                    inside -= 1

    async def write_all() -> None:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for _ in range(4):
                    group.start_soon(write)

    threads = [
        threading.Thread(target=lambda name=name: anyio.run(write_all, backend=name))
        for name in ("asyncio", "trio")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert most == 1
