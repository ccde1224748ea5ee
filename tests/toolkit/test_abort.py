"""An abort is seen at once and wakes whoever waits, wherever it comes from."""

from __future__ import annotations

import signal as os_signal
import threading

import anyio
import pytest

from operations import StopSignal
from toolkit.abort import AbortController, AbortSignal

pytestmark = pytest.mark.anyio


def _as_stop_signal(signal: AbortSignal) -> StopSignal:
    return signal


def test_it_is_set_at_once_and_keeps_the_first_reason():
    """Only the first abort counts."""
    controller = AbortController()
    assert not controller.signal.is_set()
    assert controller.signal.reason is None
    controller.abort("first")
    controller.abort("second")
    assert controller.signal.is_set()
    assert controller.signal.reason == "first"


def test_a_child_follows_its_parent_and_not_the_other_way_round():
    """A batch's own stop does not set off the caller's signal."""
    parent, sibling = AbortController(), AbortController()
    child = AbortController(parent.signal)
    child.abort("mine")
    assert not parent.signal.is_set()
    other = AbortController(sibling.signal)
    sibling.abort("theirs")
    assert other.signal.is_set()
    assert other.signal.reason == "theirs"


async def test_waiting_for_a_signal_that_is_set_returns_at_once():
    """There is no gap between looking and waiting."""
    controller = AbortController()
    controller.abort()
    with anyio.fail_after(10):
        await controller.signal.wait()
        await AbortController(controller.signal).signal.wait()


async def test_abort_wakes_all_waiters_also_of_children():
    """Everybody who waits is told."""
    controller = AbortController()
    child = AbortController(AbortController(controller.signal).signal)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(controller.signal.wait)
            group.start_soon(controller.signal.wait)
            group.start_soon(child.signal.wait)
            await anyio.wait_all_tasks_blocked()
            controller.abort()


async def test_abort_from_another_thread_wakes_the_loop():
    """The loop may be asleep when the abort comes."""
    controller = AbortController()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(controller.signal.wait)
            await anyio.wait_all_tasks_blocked()
            thread = threading.Timer(0.05, controller.abort)
            thread.start()
    thread.join()


async def test_abort_from_a_signal_handler_wakes_the_loop_it_interrupts():
    """The handler runs between two instructions of the loop's own thread, while it sleeps."""
    controller = AbortController()
    before = os_signal.signal(os_signal.SIGALRM, lambda *_: controller.abort("alarm"))
    try:
        os_signal.setitimer(os_signal.ITIMER_REAL, 0.05)
        with anyio.fail_after(10):
            await controller.signal.wait()
    finally:
        os_signal.signal(os_signal.SIGALRM, before)
    assert controller.signal.reason == "alarm"


async def test_cancelled_waiters_leave_nothing_behind():
    """A signal that lives for days does not collect those who once waited for it."""
    controller = AbortController()
    for _ in range(10):
        with anyio.move_on_after(0.001):
            await AbortController(controller.signal).signal.wait()
    assert controller.signal._listeners == []


def test_abort_after_the_loop_of_a_waiter_has_ended_is_harmless():
    """The waiter is gone; nobody is left to be woken."""
    controller = AbortController()

    async def leave_a_waiter() -> None:
        from toolkit.wakeups import loop_post

        post = loop_post()
        controller.signal.subscribe(lambda: post(lambda: None))

    for backend in ("asyncio", "trio"):
        anyio.run(leave_a_waiter, backend=backend)
    controller.abort()
    assert controller.signal.is_set()
