"""A far end that lies: one clear error, bounded memory, nothing of ours hangs or is cancelled."""

from __future__ import annotations

import sys
import textwrap
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from backends.engine import frames
from backends.engine.frames import encode_frame, encode_value
from backends.remote import backend as remote_backend
from backends.remote import client
from backends.remote.channel import Channel
from backends.remote.pipe import open_pipe
from backends.remote.session import MAX_NOISE
from operations import BackendUnavailable, ConnectionLost, ExecResult, GrepQuery, OperationError
from tests.backends.remote.hostile import (
    CALLS,
    FACTS,
    HONEST,
    FarEnds,
    answer,
    backend,
    frame,
    hello,
    honest,
)

pytestmark = pytest.mark.anyio

NESTED = b"l\x00\x00\x00\x01" * 30 + b"n"
JUNK: list[Any] = [
    None,
    True,
    -1,
    (1 << 63) - 1,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "x" * 100_000,
    "\0\x1b[2J",
    b"",
    b"/" * 100_000,
    b"\xff\0",
    [],
    [None] * 5000,
    [[], {}],
    {},
    {"x": 1},
]

#: What no engine sends, whatever it was asked.
LIES: dict[str, Callable[[int], bytes]] = {
    "length": lambda n: frames.HEADER.pack(frames.MAX_PAYLOAD + 1, frames.RESULT, n),
    "largest length": lambda n: frames.HEADER.pack(0xFFFFFFFF, frames.DATA, n),
    "unknown type": lambda n: frames.HEADER.pack(0, 99, n),
    "type zero": lambda n: frames.HEADER.pack(0, 0, n),
    "a request": lambda n: frame(frames.REQUEST, n, ["access", {}, None]),
    "a cancel": lambda n: frame(frames.CANCEL, n),
    "an end": lambda n: encode_frame(frames.END, n),
    "a ping": lambda _: encode_frame(frames.PING, 0),
    "hello again": lambda _: frame(frames.HELLO, 0, FACTS),
    "pongs": lambda _: encode_frame(frames.PONG, 0) * 10,
    "another id": lambda n: frame(frames.RESULT, n + 1, None),
    "id zero": lambda _: frame(frames.RESULT, 0, None),
    "answered twice": lambda n: honest(n, "exists") + honest(n, "exists"),
    "a part after the end": lambda n: honest(n, "exists") + frame(frames.PART, n, {}),
    "data that was not asked for": lambda n: encode_frame(frames.DATA, n, b"x"),
    "credit for no body": lambda n: frame(frames.CREDIT, n, 1),
    "no value": lambda n: encode_frame(frames.RESULT, n, b""),
    "half a value": lambda n: encode_frame(frames.RESULT, n, b"i\0\0"),
    "two values": lambda n: encode_frame(frames.RESULT, n, b"nn"),
    "a long list": lambda n: encode_frame(frames.PART, n, b"l\xff\xff\xff\xff"),
    "a deep list": lambda n: encode_frame(frames.PART, n, NESTED),
    "no text": lambda n: encode_frame(frames.RESULT, n, b"s\0\0\0\1\xff"),
    "a key that is none": lambda n: encode_frame(frames.RESULT, n, b"m\0\0\0\1nn"),
    "a fault of one part": lambda n: frame(frames.FAULT, n, ["denied"]),
    "a fault without a code": lambda n: frame(frames.FAULT, n, [1, []]),
    "a farewell of no text": lambda _: frame(frames.BYE, 0, 5),
    "no bool": lambda n: frame(frames.RESULT, n, "yes"),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("step", [1, 1 << 20])
async def test_a_lie_ends_the_connection_and_the_next_operation_has_another(
    lie: str, step: int
) -> None:
    far = FarEnds(lambda number, _: LIES[lie](number), lying=1, step=step)
    with anyio.fail_after(20):
        async with backend(far) as place:
            if lie in ("answered twice", "a part after the end"):
                with suppress(ConnectionLost):
                    await place.exists("/a")  # the truth may be seen before the lie
                await anyio.wait_all_tasks_blocked()
            else:
                with pytest.raises(ConnectionLost, match="broke the protocol") as caught:
                    await place.exists("/a")
                assert len(str(caught.value)) < 500
            assert await place.exists("/a") is True
    assert len(far.opened) == 2
    assert all(channel.closed for channel in far.opened)


def mutations(value: Any) -> Iterator[Any]:
    """Yield the value with one thing in it replaced by junk, or left out."""
    yield from JUNK
    if isinstance(value, dict):
        for key, held in value.items():
            yield {name: item for name, item in value.items() if name != key}
            for other in mutations(held):
                yield {**value, key: other}
    elif isinstance(value, list):
        for at, held in enumerate(value):
            yield value[:at] + value[at + 1 :]
            for other in mutations(held):
                yield [*value[:at], other, *value[at + 1 :]]


@pytest.mark.parametrize("operation", HONEST)
async def test_every_field_of_every_answer_may_be_junk(operation: str) -> None:
    """It is an answer after all, or one error of ours; the backend goes on either way."""
    parts, result = HONEST[operation]
    answers = [(parts, other) for other in mutations(result)]
    for at, part in enumerate(parts):
        answers += [([*parts[:at], other, *parts[at + 1 :]], result) for other in mutations(part)]
    waiting = iter(answers)
    far = FarEnds(lambda number, _: answer(number, *next(waiting)))
    with anyio.fail_after(120):
        async with backend(far) as place:
            for _ in answers:
                with suppress(OperationError):
                    await CALLS[operation](place)
    assert [name for _, name in far.requests()] == [operation] * len(answers)


@pytest.mark.parametrize(
    "code", ["not_found", "denied", "is_directory", "too_large", "internal", "x"]
)
async def test_every_argument_of_a_fault_may_be_junk(code: str) -> None:
    faults = [[], *([one] for one in JUNK), *([b"/a", one] for one in JUNK)]
    faults += [[b"/a", b"/", one] for one in JUNK]
    waiting = iter(faults)
    far = FarEnds(lambda number, _: frame(frames.FAULT, number, [code, next(waiting)]))
    async with backend(far) as place:
        for _ in faults:
            with pytest.raises(OperationError) as caught:
                await place.access("/a")
            assert not isinstance(caught.value, ConnectionLost)
    assert len(far.opened) == 1


@pytest.mark.parametrize("operation", HONEST)
@pytest.mark.parametrize("step", [1, 2, 3, 10, 13])
async def test_an_honest_answer_may_be_split_anywhere(operation: str, step: int) -> None:
    def reply(number: int, name: str) -> bytes:
        data = encode_frame(frames.DATA, number, b"xyz")
        return data * (name in ("exec", "read_file")) + honest(number, name)

    far = FarEnds(reply, b"Welcome!\r\n" + hello(), step=step)
    async with backend(far) as place:
        await CALLS[operation](place)
        assert await place.read_file("/a") == b"xyz"
    assert len(far.opened) == 1


GREETINGS: dict[str, bytes] = {
    "too much noise": b"y\n" * MAX_NOISE,
    "no facts": hello({"version": frames.VERSION}),
    "another version": hello({**FACTS, "version": 99}),
    "a home that is none": hello({**FACTS, "home": b"here"}),
    "a home with a NUL": hello({**FACTS, "home": b"/\0"}),
    "a home of another type": hello({**FACTS, "home": 5}),
    "a huge name": hello({**FACTS, "machine_id": "x" * 1000}),
    "many capabilities": hello({**FACTS, "capabilities": ["x"] * 5000}),
    "a mask that is none": hello({**FACTS, "umask": -1}),
    "a result first": frames.HELLO_MARK + frame(frames.RESULT, 1, None),
    "a lie about its length": frames.HELLO_MARK + frames.HEADER.pack(1 << 30, frames.HELLO, 0),
    "pongs behind it": hello() + encode_frame(frames.PONG, 0) * 9,
}


@pytest.mark.parametrize("greeting", GREETINGS)
@pytest.mark.parametrize("step", [7, 1 << 18])
async def test_a_wrong_hello_is_an_error_that_says_so(greeting: str, step: int) -> None:
    far = FarEnds(greeting=GREETINGS[greeting], step=step)
    with anyio.fail_after(60):
        async with backend(far) as place:
            # What comes with the hello may also be read after it.
            with pytest.raises((BackendUnavailable, ConnectionLost)) as caught:
                await place.exists("/a")
            assert len(str(caught.value)) < 1000
    assert all(channel.closed for channel in far.opened)
    assert len(far.opened) == 1


async def test_no_hello_is_an_error_when_the_time_is_over() -> None:
    far = FarEnds(greeting=b"Welcome!")
    async with backend(far, connect_timeout_s=0.1) as place:
        with pytest.raises(BackendUnavailable, match=r"did not answer within 0\.1 seconds"):
            await place.exists("/a")


async def test_those_who_wait_for_a_connection_share_its_failure() -> None:
    """One attempt for all: the last of twenty does not wait for twenty time limits in a row."""
    far = FarEnds(greeting=b"")
    failures = []
    async with backend(far, connect_timeout_s=0.2) as place:
        with anyio.fail_after(2):
            async with anyio.create_task_group() as tasks:

                async def ask() -> None:
                    with pytest.raises(BackendUnavailable) as caught:
                        await place.exists("/a")
                    failures.append(caught.value)

                for _ in range(20):
                    tasks.start_soon(ask)
        assert len(far.opened) == 1
        with pytest.raises(BackendUnavailable):
            await place.exists("/a")
        assert len(far.opened) == 2  # the next operation tries once more
    assert len(set(map(id, failures))) == 20  # an exception belongs to one raiser


async def test_after_a_loss_there_is_one_new_connection_and_nothing_is_sent_twice() -> None:
    far = FarEnds(lambda *_: b"", lying=1)
    lost = []
    async with backend(far) as place, anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(ConnectionLost):
                await place.exists("/a")
            lost.append(1)
            assert await place.exists("/b") is True

        for _ in range(20):
            tasks.start_soon(ask)
        while len(list(far.requests())) < 20:
            await anyio.lowlevel.checkpoint()
        far.opened[0].hang_up()
    assert len(lost) == 20
    assert [len(channel.requests) for channel in far.opened] == [20, 20]


async def test_a_farewell_ends_everything_though_the_far_end_stays() -> None:
    far = FarEnds(lambda *_: frame(frames.BYE, 0, "nothing heard for 30 seconds"), lying=1)
    with anyio.fail_after(5):
        async with backend(far) as place:
            with pytest.raises(ConnectionLost, match="has ended: nothing heard for 30 seconds"):
                await place.read_file("/a")
            assert await place.exists("/a") is True
    assert [channel.closed for channel in far.opened] == [True, True]


async def test_a_caller_can_leave_a_far_end_that_never_answers() -> None:
    far = FarEnds(lambda *_: b"")
    with anyio.fail_after(20):
        async with backend(far) as place:
            for name, call in CALLS.items():
                if name in ("exec", "exec_tail", "replace_file", "make_directory"):
                    continue  # these wait until what they did is settled
                with anyio.move_on_after(0.02) as scope:
                    await call(place)
                assert scope.cancelled_caught, name


async def test_a_command_that_is_never_answered_ends_by_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "SETTLE_S", 0.1)
    monkeypatch.setattr(client, "PATIENCE_S", 0.1)
    monkeypatch.setattr(remote_backend, "PATIENCE_S", 0.1)
    stop = anyio.Event()
    far = FarEnds(lambda *_: b"")
    with anyio.fail_after(10):
        async with backend(far) as place:
            result = await place.exec("x", cwd="/", on_data=print, timeout_s=0.1)
            assert result == ExecResult(ended="timeout", killed="unconfirmed")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_fire, stop)
                result = await place.exec("x", cwd="/", on_data=print, stop=stop)
            assert result == ExecResult(ended="stopped", killed="unconfirmed")
            with anyio.move_on_after(0.1) as scope:
                await place.exec("x", cwd="/", on_data=print)
            assert scope.cancelled_caught


async def _fire(stop: anyio.Event) -> None:
    await anyio.sleep(0.05)
    stop.set()


async def test_an_answer_after_the_caller_has_left_is_nobodys() -> None:
    far = FarEnds(lambda *_: b"", lying=1)
    async with backend(far) as place:
        with anyio.move_on_after(0.02):
            await place.exists("/a")
        [(number, _)] = far.requests()
        far.opened[0].say(frame(frames.PART, number, {"x": 1}) + honest(number, "exists"))
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(0.02) as scope:
            await place.exists("/a")
        assert scope.cancelled_caught
    assert len(far.opened) == 1  # that was no lie


@pytest.mark.parametrize("method", ["send_nowait", "send", "receive", "close", "exit_report"])
async def test_a_channel_that_fails_in_its_own_way_is_a_lost_connection(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a transport's library raises: no task of ours is cancelled, and leaving ends."""
    far = FarEnds(lambda *_: b"", lying=1)

    def fails(*_: object) -> Any:
        raise RuntimeError("a library's own")

    with anyio.fail_after(20):
        async with backend(far) as place:
            async with anyio.create_task_group() as tasks:

                async def ask() -> None:
                    with pytest.raises(ConnectionLost):
                        await place.replace_file("/a", b"x" * 1_000_000)

                tasks.start_soon(ask)
                while not list(far.requests()):
                    await anyio.sleep(0.001)
                monkeypatch.setattr(far.opened[0], method, fails)
                far.opened[0].say(b"")
                if method in ("send_nowait", "send"):
                    with pytest.raises(ConnectionLost):
                        await place.replace_file("/b", b"x" * 1_000_000)
                else:
                    far.opened[0].hang_up()
            assert await place.exists("/a") is True
    monkeypatch.undo()
    await far.opened[0].close()


# Memory

FLOODS: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "empty data": ("read_file", lambda n: encode_frame(frames.DATA, n, b"") * 100_000),
    "tiny data": ("read_file", lambda n: encode_frame(frames.DATA, n, b"ab") * 400_000),
    "data beyond the window": (
        "read_lines",
        lambda n: encode_frame(frames.DATA, n, b"x" * 1000) * 9000,
    ),
    "data beyond the credit": ("exec", lambda n: encode_frame(frames.DATA, n, b"x" * 65536) * 900),
    "rows of nothing": (
        "list_directory",
        lambda n: frame(frames.PART, n, {"entries": [[[]] * 200_000]}) * 3,
    ),
    "many rows": ("find", lambda n: frame(frames.PART, n, {"paths": b"a\0" * 100_000})),
    "large rows": (
        "grep",
        lambda n: frame(frames.PART, n, {"final": [[b"a", 1, "x" * 900_000, True, [], []]]}),
    ),
    "much context": (
        "grep",
        lambda n: frame(frames.PART, n, {"final": [[b"a", 1, "x", True, [[1, "y"]] * 40_000, []]]}),
    ),
    "a snapshot larger than its tail": (
        "exec_tail",
        lambda n: frame(
            frames.PART, n, {"data": b"x" * 101, "start": 0, "total_bytes": 101, "total_lines": 0}
        ),
    ),
}


@pytest.mark.parametrize("flood", FLOODS)
async def test_what_is_kept_of_a_flood_is_bounded(flood: str) -> None:
    operation, flooding = FLOODS[flood]
    # What is under way in this test's own channel does not count.
    pieces = [flooding(number) for number in (1, 2, 3)]
    far = FarEnds(lambda number, _: pieces[number - 1], step=1 << 18)
    async with backend(far) as place:
        tracemalloc.start()
        try:
            with anyio.move_on_after(4) as scope:
                with pytest.raises(ConnectionLost, match="broke the protocol"):
                    await CALLS[operation](place)
                scope.cancel()
            kept, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    if flood == "tiny data":  # which is no lie
        assert scope.cancelled_caught
    assert kept < 12 << 20, f"{kept >> 10} KiB"
    assert peak < 60 << 20, f"{peak >> 10} KiB"


# Time

_FLOODER = """
    import os, sys

    sys.path.insert(0, {root!r})
    from backends.engine import frames as f

    def exactly(size):
        data = b""
        while len(data) < size:
            data += os.read(0, size - len(data))
        return data

    def say(data):
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(1, rest):]

    for _ in range(3):
        exactly(int(exactly(10)))
    say({hello!r})
    reader, number = f.FrameReader(), None
    while number is None:
        for kind, request_id, payload in reader.feed(os.read(0, 65536)):
            if kind == f.REQUEST:
                number = request_id
    flood = f.encode_frame({kind}, number, {payload!r})
    flood *= 1 + (1 << 18) // len(flood)
    while True:
        say(flood)
"""


@pytest.mark.parametrize(
    ("kind", "payload"),
    [(frames.PART, encode_value({"x": 1})), (frames.DATA, b"x" * 60_000)],
    ids=["parts", "data"],
)
async def test_a_flood_leaves_the_event_loop_to_others(
    kind: int, payload: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Output that comes faster than it is taken in: timers fire and other tasks run."""
    monkeypatch.setattr(client, "SETTLE_S", 0.1)
    script = textwrap.dedent(_FLOODER).format(
        root=str(Path(__file__).parents[3]), hello=hello(), kind=kind, payload=payload
    )

    async def open_channel() -> Channel:
        return await open_pipe([sys.executable, "-c", script])

    turns = 0
    with anyio.fail_after(60):
        async with backend(open_channel) as place, anyio.create_task_group() as tasks:

            async def count() -> None:
                nonlocal turns
                while True:
                    await anyio.sleep(0.01)
                    turns += 1

            tasks.start_soon(count)
            with anyio.move_on_after(1.0) as scope:
                if kind == frames.PART:
                    await place.grep(GrepQuery(pattern="x", path="/"))
                else:
                    await place.exec("yes", cwd="/", on_data=len)
            assert scope.cancelled_caught
            tasks.cancel_scope.cancel()
    assert turns >= 2, "a loop that is held takes no turn at all"
