"""The engine's loop: timers in order, calls from threads and signals, descriptors."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from backends.engine.loop import Loop


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    os.close(made._wake_read)
    os.close(made._wake_write)
    made._selector.close()


def test_timers_run_in_order_of_their_time(loop: Loop) -> None:
    seen: list[str] = []
    loop.call_later(0.03, loop.stop)
    loop.call_later(0.02, lambda: seen.append("second"))
    loop.call_later(0.01, lambda: seen.append("first"))
    loop.run()
    assert seen == ["first", "second"]


def test_a_cancelled_timer_does_not_run(loop: Loop) -> None:
    seen: list[str] = []
    loop.call_later(0.001, lambda: seen.append("no")).cancel()
    loop.call_later(0.01, loop.stop)
    loop.run()
    assert not seen


def test_a_thread_wakes_the_loop(loop: Loop) -> None:
    thread = threading.Thread(target=lambda: loop.call_from_thread(loop.stop))
    loop.call_soon(thread.start)
    loop.run()
    thread.join()


def test_thousands_of_calls_from_a_thread_all_happen(loop: Loop) -> None:
    """Also when the pipe that wakes the loop is full."""
    seen: list[int] = []

    def call_often() -> None:
        for n in range(70_000):
            loop.call_from_thread(lambda n=n: seen.append(n))  # type: ignore[misc]
        loop.call_from_thread(loop.stop)

    thread = threading.Thread(target=call_often)
    thread.start()
    thread.join()
    loop.run()
    assert seen == list(range(70_000))


def test_a_signal_wakes_the_loop(loop: Loop) -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: loop.call_from_signal(loop.stop))
    try:
        timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGUSR1))
        timer.start()
        loop.run()
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_readers_and_writers_of_one_descriptor(loop: Loop) -> None:
    import socket

    left, right = socket.socketpair()
    seen: list[str] = []

    def readable() -> None:
        seen.append("read " + left.recv(10).decode())
        loop.stop()

    def writable() -> None:
        seen.append("write")
        loop.remove_writer(left.fileno())
        right.send(b"x")

    loop.add_reader(left.fileno(), readable)
    loop.add_writer(left.fileno(), writable)
    loop.run()
    loop.remove_reader(left.fileno())
    loop.remove_reader(left.fileno())
    assert seen == ["write", "read x"]
    left.close()
    right.close()


def test_a_handler_may_remove_another_of_the_same_turn(loop: Loop) -> None:
    pairs = [os.pipe(), os.pipe()]
    seen: list[int] = []

    def once(fd: int) -> None:
        seen.append(fd)
        for other, _ in pairs:
            loop.remove_reader(other)
        loop.stop()

    for read, write in pairs:
        os.write(write, b"x")
        loop.add_reader(read, lambda read=read: once(read))  # type: ignore[misc]
    loop.run()
    assert len(seen) == 1
    for fd in [fd for pair in pairs for fd in pair]:
        os.close(fd)
