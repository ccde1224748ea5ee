"""The client against a far end that the test plays frame by frame."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from backends.engine import frames
from backends.engine.session import FarSession
from backends.remote.channel import ChannelClosed
from backends.remote.client import EngineClient, StartFailed, Unanswered
from backends.remote.convert import MalformedReply
from operations import ConnectionLost, OperationUnsupported, PathNotFound

pytestmark = pytest.mark.anyio


class FarEnd:
    """A channel whose other side is here: what the client sent becomes `events`."""

    def __init__(self, *, accepts: int = 1 << 30) -> None:
        self.session = FarSession()
        self.events: list[tuple[int, int, Any]] = []
        self.closed = False
        self.report = "the engine ended with exit status 9"
        self._accepts = accepts
        self._started = False
        self._changed = anyio.Event()
        self._feed, self._out = anyio.create_memory_object_stream[bytes](math.inf)

    # The channel

    def send_nowait(self, data: bytes | memoryview) -> int:
        if self.closed:
            raise ChannelClosed("closed")
        taken = min(self._accepts, len(data))
        self._take(bytes(data[:taken]))
        return taken

    async def send(self, data: bytes | memoryview) -> None:
        if not self._started:
            self._started = True  # the bootstrap's payload
            self.session.hello({"home": b"/"})
            self.flush()
            return
        for start in range(0, len(data), 1000):
            await anyio.lowlevel.checkpoint()
            self._take(bytes(data[start : start + 1000]))

    async def receive(self) -> bytes:
        try:
            return await self._out.receive()
        except anyio.EndOfStream:
            return b""

    async def close(self) -> None:
        self.closed = True
        self._feed.close()
        self._out.close()

    async def exit_report(self) -> str:
        return self.report

    # The far end

    def _take(self, data: bytes) -> None:
        if data:
            self.events += self.session.receive(data)
            self.flush()
            self._changed.set()
            self._changed = anyio.Event()

    def flush(self) -> None:
        while data := self.session.to_send(1 << 20):
            self._feed.send_nowait(data)

    def raw(self, data: bytes) -> None:
        self._feed.send_nowait(data)

    def hang_up(self) -> None:
        self._feed.close()

    def answer(self, number: int, value: Any) -> None:
        self.session.result(number, value)
        self.flush()

    def kinds(self, number: int) -> list[int]:
        return [kind for kind, of, _ in self.events if of == number]

    async def until(self, condition: Callable[[], Any]) -> None:
        with anyio.fail_after(20):
            while not condition():
                await self._changed.wait()

    async def requests(self, count: int) -> list[int]:
        def seen() -> list[int]:
            return [number for kind, number, _ in self.events if kind == frames.REQUEST]

        await self.until(lambda: len(seen()) >= count)
        return seen()


@asynccontextmanager
async def connected(far: FarEnd, ping_s: float = 10.0) -> AsyncIterator[EngineClient]:
    client = EngineClient(far, target="test:", ping_s=ping_s)
    assert (await client.start({}))["home"] == b"/"
    async with anyio.create_task_group() as tasks:
        await tasks.start(client.run)
        try:
            yield client
        finally:
            with anyio.CancelScope(shield=True):
                await client.close(5)


async def test_answers_may_come_in_any_order() -> None:
    far = FarEnd()
    got: dict[str, Any] = {}
    async with connected(far) as client, anyio.create_task_group() as tasks:

        async def ask(name: str) -> None:
            got[name] = await client.call(name, {})

        for name in "abc":
            tasks.start_soon(ask, name)
        names = dict.fromkeys(await far.requests(3))
        for _, number, value in [e for e in far.events if e[0] == frames.REQUEST][::-1]:
            names[number] = value[0]
            far.answer(number, value[0].upper())
    assert got == {"a": "A", "b": "B", "c": "C"}


async def test_faults_become_errors() -> None:
    far = FarEnd()
    async with connected(far) as client, anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(PathNotFound) as caught:
                await client.call("access", {})
            assert caught.value.names == ("b",)

        tasks.start_soon(ask)
        [number] = await far.requests(1)
        far.session.fault(number, "not_found", [b"/a", b"/", [b"b"]])
        far.flush()


@pytest.mark.parametrize("accepts", [0, 1, 5, 1 << 30])
async def test_a_channel_may_take_as_little_as_it_likes(accepts: int) -> None:
    """What the channel does not take at once the writer sends, without a hole or a repetition."""
    far = FarEnd(accepts=accepts)
    body = bytes(range(256)) * 2000
    async with connected(far) as client, anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(lambda: client.call("write", {}, body=body))
        numbers = await far.requests(3)
        await far.until(lambda: all(frames.END in far.kinds(n) for n in numbers))
        for number in numbers:
            came = b"".join(v for k, n, v in far.events if k == frames.DATA and n == number)
            assert came == body
            far.answer(number, None)


async def test_a_cancelled_caller_returns_at_once() -> None:
    """The request is cancelled, its late answer ignored, and other calls are served."""
    far = FarEnd()
    async with connected(far) as client:
        with anyio.move_on_after(0.05) as scope:
            await client.call("read_file", {}, on_data=lambda data: None)
        assert scope.cancelled_caught
        [number] = await far.requests(1)
        await far.until(lambda: far.kinds(number) == [frames.REQUEST, frames.CANCEL])
        far.session.data(number, b"late")
        far.session.fault(number, "cancelled", [])
        far.flush()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call, "next", {})
            far.answer((await far.requests(2))[1], None)
        assert client.lost is None


async def test_a_cancelled_caller_waits_for_what_must_settle() -> None:
    far = FarEnd()
    async with connected(far) as client, anyio.create_task_group() as tasks:
        settled = False

        async def write() -> None:
            nonlocal settled
            try:
                await client.call("replace_file", {}, body=b"x", settle=True)
            finally:
                settled = True

        tasks.start_soon(write)
        [number] = await far.requests(1)
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await far.until(lambda: frames.CANCEL in far.kinds(number))
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            assert not settled
            far.answer(number, None)
    assert settled


async def test_cancelling_at_any_moment_leaves_whole_frames() -> None:
    """Callers are cancelled after 0, 1, 2 ... turns of the loop; the stream stays sound."""
    far = FarEnd(accepts=3)
    async with connected(far) as client:
        for turns in range(12):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: client.call("op", {"x": "y" * 50}, body=b"z" * 5000))
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call, "last", {})
            await far.until(lambda: any(e[2] and e[2][0] == "last" for e in far.events))
            far.answer(far.events[-1][1], None)
        numbers = [number for kind, number, _ in far.events if kind == frames.REQUEST]
        assert numbers == sorted(set(numbers))


class Stop:
    def __init__(self) -> None:
        self.event = anyio.Event()

    def is_set(self) -> bool:
        return self.event.is_set()

    async def wait(self) -> None:
        await self.event.wait()


async def test_stop_cancels_and_waits_for_the_result() -> None:
    far = FarEnd()
    stop = Stop()
    async with connected(far) as client, anyio.create_task_group() as tasks:

        async def run() -> None:
            assert await client.call("exec", {}, body=b"", stop=stop) == "stopped"

        tasks.start_soon(run)
        [number] = await far.requests(1)
        stop.event.set()
        await far.until(lambda: frames.CANCEL in far.kinds(number))
        far.answer(number, "stopped")


async def test_stop_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backends.remote.client.PATIENCE_S", 0.1)
    far = FarEnd()
    stop = Stop()
    stop.event.set()
    async with connected(far) as client:
        with pytest.raises(Unanswered):
            await client.call("exec", {}, stop=stop)


async def test_a_deadline_ends_an_unanswered_call() -> None:
    far = FarEnd()
    async with connected(far) as client:
        with pytest.raises(Unanswered):
            await client.call("exec", {}, deadline_s=0.05, settle=True)
        assert far.kinds(1) == [frames.REQUEST, frames.CANCEL]


async def test_output_that_arrives_puts_the_deadline_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a slow wire the answer may stand behind seconds of output; but not for ever."""
    monkeypatch.setattr("backends.remote.client.PATIENCE_S", 0.3)
    monkeypatch.setattr("backends.remote.client.BACKLOG_S", 1.5)
    far = FarEnd()
    async with connected(far) as client, anyio.create_task_group() as tasks:

        async def trickle() -> None:
            [number] = await far.requests(1)
            while True:
                far.session.data(number, b"x")
                far.flush()
                await anyio.sleep(0.05)

        tasks.start_soon(trickle)
        began = anyio.current_time()
        with pytest.raises(Unanswered):
            await client.call("exec", {}, on_data=lambda data: None, deadline_s=0.1)
        assert 1.4 < anyio.current_time() - began < 20
        tasks.cancel_scope.cancel()


async def test_a_call_that_has_ended_leaves_no_watcher() -> None:
    """Also when it ended before the watcher of its stop signal had begun."""
    far = FarEnd()
    async with connected(far) as client:
        with anyio.move_on_after(0):
            await client.call("exec", {}, stop=Stop())
        with pytest.raises(Unanswered):
            await client.call("exec", {}, stop=Stop(), deadline_s=0)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        names = {task.name for task in anyio.get_running_tasks() if task.name}
        assert not any("_watch" in name for name in names)


async def test_a_lost_connection_ends_calls_and_not_the_caller() -> None:
    """Every call in flight gets ConnectionLost with how the engine ended; the body goes on."""
    far = FarEnd()
    async with connected(far) as client:
        lost: list[str] = []

        async def ask() -> None:
            try:
                await client.call("op", {})
            except ConnectionLost as error:
                lost.append(str(error))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(ask)
            await far.requests(2)
            far.hang_up()
        assert len(lost) == 2
        assert "exit status 9" in lost[0]
        await anyio.lowlevel.checkpoint()
        with pytest.raises(ConnectionLost):
            await client.call("op", {})
    assert far.closed


async def test_a_farewell_says_why() -> None:
    far = FarEnd()
    async with connected(far) as client, anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(ConnectionLost, match="nothing heard for 30 seconds"):
                await client.call("op", {})

        tasks.start_soon(ask)
        await far.requests(1)
        far.session.bye("nothing heard for 30 seconds")
        far.flush()
        far.hang_up()


NONSENSE = {
    "no frames": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "an unknown request": frames.encode_frame(frames.RESULT, 99, frames.encode_value(None)),
    "data that nobody wants": frames.encode_frame(frames.DATA, 1, b"x"),
    "a malformed value": frames.encode_frame(frames.RESULT, 1, b"\xff\xff"),
    "a value that the converter refuses": frames.encode_frame(
        frames.RESULT, 1, frames.encode_value("unexpected")
    ),
    "a part that the converter refuses": frames.encode_frame(
        frames.PART, 1, frames.encode_value("unexpected")
    ),
}


@pytest.mark.parametrize("data", NONSENSE.values(), ids=NONSENSE.keys())
async def test_nonsense_from_the_far_end_is_one_clear_error(data: bytes) -> None:
    def refuse(value: Any) -> Any:
        raise MalformedReply(f"{value!r} is not what was asked for")

    far = FarEnd()
    async with connected(far) as client, anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(ConnectionLost, match="broke the protocol"):
                await client.call("op", {}, on_part=refuse, finish=refuse)

        tasks.start_soon(ask)
        await far.requests(1)
        far.raw(data)
    assert far.closed


async def test_silence_is_a_loss() -> None:
    """Nobody answers pings: a half-open wire, a paused container."""
    far = FarEnd()
    async with connected(far, ping_s=0.05) as client:
        far.flush = lambda: None  # type: ignore[method-assign]
        with anyio.fail_after(20), pytest.raises(ConnectionLost, match="nothing heard"):
            await client.call("op", {})


async def test_pings_keep_a_quiet_call_alive() -> None:
    far = FarEnd()
    async with connected(far, ping_s=0.02) as client:
        with anyio.move_on_after(0.3):
            await client.call("op", {})
        assert client.lost is None


async def test_an_error_in_a_callback_reaches_the_caller_alone() -> None:
    far = FarEnd()
    async with connected(far) as client, anyio.create_task_group() as tasks:

        async def ask() -> None:
            def fail(_: Any) -> None:
                raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await client.call("op", {}, on_part=fail)

        tasks.start_soon(ask)
        [number] = await far.requests(1)
        far.session.part(number, 1)
        far.session.part(number, 2)
        far.flush()
        await far.until(lambda: frames.CANCEL in far.kinds(number))
        far.session.fault(number, "cancelled", [])
        far.flush()


async def test_arguments_that_cannot_be_sent_are_an_error_before_any_effect() -> None:
    far = FarEnd()
    async with connected(far) as client:
        with pytest.raises(OperationUnsupported):
            await client.call("op", {"x": b"x" * (frames.MAX_PAYLOAD + 1)})
        assert client.lost is None
        assert not far.kinds(1)


async def test_closing_ends_calls_in_flight() -> None:
    far = FarEnd()
    async with anyio.create_task_group() as tasks:

        async def ask(client: EngineClient) -> None:
            with pytest.raises(ConnectionLost, match="closed"):
                await client.call("op", {})

        async with connected(far) as client:
            tasks.start_soon(ask, client)
            await far.requests(1)
    assert far.events[-1][0] == frames.BYE


async def test_a_program_that_is_no_engine_is_told_with_what_it_printed() -> None:
    far = FarEnd()
    far.session = FarSession()
    far.session.hello = lambda facts: None  # type: ignore[method-assign]
    far.raw(b"bash: python3: command not found\n")
    far.hang_up()
    client = EngineClient(far, target="test:")
    with pytest.raises(StartFailed, match=r"exit status 9.*command not found"):
        await client.start({})
    await client.abandon()
