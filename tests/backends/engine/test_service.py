"""Requests over a real wire to the service's handlers, with commands left out."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backends.engine import frames, service
from backends.engine.faults import Fault
from backends.engine.loop import Loop
from backends.engine.place import Place
from backends.engine.service import Body, Service
from backends.engine.session import FarSession
from backends.engine.wire import Wire
from backends.engine.workers import Workers
from backends.remote.session import DataReceived, Event, Failed, Finished, NearSession, PartReceived


class NoCommands:
    """Takes requests and leaves them to the test."""

    def __init__(self) -> None:
        self.started: list[Any] = []

    def start(self, request: Any) -> None:
        if request.args["command"] == b"boom":
            raise ZeroDivisionError
        request.on_cancel = lambda: request.result("cancelled")
        self.started.append(request)
        request.part("started")

    def start_search(self, request: Any, kind: str) -> None:
        raise Fault("invalid_pattern", "x", kind, None)


class Engine:
    """A loop in a thread with wire and service, and the near end's session in the test's."""

    def __init__(self) -> None:
        near, far = socket.socketpair()
        self.socket, self._far = near, far
        self.session = NearSession()
        self.loop = Loop()
        self.far = FarSession()
        self.commands = NoCommands()
        self.wire = Wire(self.loop, self.far, far.fileno(), far.fileno())
        self.service = Service(self.wire, self.commands, Place())
        self.wire.on_event = self.service.handle
        self.wire.on_room = self.service.more_room
        self.wire.on_end = self._end
        self.ended: str | None = None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        near.settimeout(20)

    def _run(self) -> None:
        self.wire.send(self.far.hello, {})
        self.wire.start()
        self.loop.run()

    def _end(self, reason: str) -> None:
        self.ended = reason
        self.service.abort()
        self.loop.stop()

    def send(self) -> None:
        while data := self.session.data_to_send(1 << 16):
            self.socket.sendall(data)

    def events(self) -> Iterator[Event]:
        while data := self.socket.recv(1 << 16):
            yield from self.session.receive(data)
            self.send()

    def ask(self, operation: str, arguments: dict[str, Any], body: bytes | None = None) -> Event:
        """Make a request; return its terminal event, after its data."""
        number = self.session.request(operation, arguments, body)
        self.send()
        self.data = b""
        for event in self.events():
            if isinstance(event, DataReceived):
                self.data += event.data
                self.session.consume(event.request_id, len(event.data))
                self.send()
            if isinstance(event, Finished | Failed) and event.request_id == number:
                return event
        pytest.fail("the wire ended")

    def close(self) -> None:
        self.socket.close()
        self.thread.join(20)
        assert not self.thread.is_alive()
        self._far.close()
        self.service._place.close()
        os.close(self.loop._wake_read)
        os.close(self.loop._wake_write)
        self.loop._selector.close()


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine()
    yield made
    made.close()


def test_an_unknown_operation_is_unsupported(engine: Engine) -> None:
    event = engine.ask("teleport", {})
    assert isinstance(event, Failed)
    assert event.code == "unsupported"
    assert event.arguments[0] == "teleport"


def test_an_unexpected_exception_is_internal_with_its_traceback(engine: Engine) -> None:
    event = engine.ask("exists", {})
    assert isinstance(event, Failed)
    assert event.code == "internal"
    assert "KeyError: 'path'" in event.arguments[0]


def test_a_command_that_fails_to_start_is_told(engine: Engine) -> None:
    event = engine.ask("exec", {"command_size": 4}, b"boom")
    assert isinstance(event, Failed)
    assert "ZeroDivisionError" in event.arguments[0]


def test_a_search_that_fails_to_start_is_told(engine: Engine) -> None:
    event = engine.ask("grep", {})
    assert isinstance(event, Failed)
    assert event.code == "invalid_pattern"


def test_a_command_starts_once_its_body_is_whole(engine: Engine) -> None:
    """Larger than the first credit, so that it takes grants to get there."""
    command = os.urandom(9 << 20)
    number = engine.session.request("exec", {"command_size": len(command)}, command + b"input")
    engine.send()
    assert PartReceived(number, "started") in engine.events()
    [request] = engine.commands.started
    assert request.args["command"] == command
    assert request.args["stdin"] == b"input"
    engine.session.cancel(number)
    engine.send()
    assert Finished(number, "cancelled") in engine.events()


def test_a_body_over_the_limit_is_refused(engine: Engine) -> None:
    event = engine.ask("exec", {"command_size": 1}, bytes(service.MAX_WHOLE_BODY + 1))
    assert isinstance(event, Failed)
    assert event.code == "too_large"


def test_a_large_file_goes_both_ways(engine: Engine, tmp_path: Path) -> None:
    content = os.urandom(20 << 20)
    path = os.fsencode(tmp_path / "f")
    args = {"path": path, "make_parents": False, "expected": None, "durable": False}
    assert isinstance(engine.ask("replace_file", args, content), Finished)
    got = engine.ask("read_file", {"path": path, "limit": 1 << 30, "digest": False})
    assert isinstance(got, Finished)
    assert engine.data == content


def test_a_reader_that_stops_holds_nobody_up(engine: Engine, tmp_path: Path) -> None:
    """As many large reads as there are threads stand still without credit; small ones go on."""
    path = tmp_path / "f"
    path.write_bytes(bytes(frames.FIRST_CREDIT + (1 << 20)))
    args = {"path": os.fsencode(path), "limit": 1 << 30, "digest": False}
    stuck = [engine.session.request("read_file", args) for _ in range(service.THREADS)]
    engine.send()
    came = dict.fromkeys(stuck, 0)
    for event in engine.events():
        if isinstance(event, DataReceived):
            came[event.request_id] += len(event.data)
        if set(came.values()) == {frames.FIRST_CREDIT}:
            break
    assert engine.ask("exists", {"path": b"/"}) == Finished(stuck[-1] + 1, value=True)
    for number in stuck:
        engine.session.cancel(number)
    engine.send()
    ended = set()
    for event in engine.events():
        if isinstance(event, Failed):
            assert event.code == "cancelled"
            ended.add(event.request_id)
        if ended == set(stuck):
            break


def test_a_cancelled_write_changes_nothing(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    args = {"path": os.fsencode(path), "make_parents": False, "expected": None, "durable": False}
    number = engine.session.request("replace_file", args, bytes(1 << 20))
    engine.socket.sendall(engine.session.data_to_send(1 << 17))
    engine.session.cancel(number)
    engine.send()
    assert Failed(number, "cancelled", []) in engine.events()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_the_end_of_the_wire_aborts_a_write(tmp_path: Path) -> None:
    engine = Engine()
    path = tmp_path / "f"
    args = {"path": os.fsencode(path), "make_parents": False, "expected": None, "durable": False}
    engine.session.request("replace_file", args, bytes(1 << 20))
    engine.socket.sendall(engine.session.data_to_send(1 << 17))
    engine.close()
    assert engine.ended is not None
    until = time.monotonic() + 20
    while engine.service.busy and time.monotonic() < until:
        time.sleep(0.01)
    assert os.listdir(tmp_path) == []


def test_a_broken_protocol_ends_the_engine() -> None:
    engine = Engine()
    engine.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
    engine.thread.join(20)
    assert engine.ended is not None
    assert "broke the protocol" in engine.ended
    engine.close()


def test_listing_a_large_folder_travels_in_parts(engine: Engine, tmp_path: Path) -> None:
    for n in range(2500):
        (tmp_path / f"{n:04d}-{'x' * 200}").touch()
    number = engine.session.request(
        "list_directory", {"path": os.fsencode(tmp_path), "limit": 9999}
    )
    engine.send()
    sizes = []
    for event in engine.events():
        if isinstance(event, Finished):
            assert event == Finished(number, {"total": 2500})
            break
        if hasattr(event, "value"):
            sizes.append(len(event.value["entries"]))
    assert sum(sizes) == 2500
    assert max(sizes) <= 1000


def test_workers_are_made_when_needed_and_bounded() -> None:
    workers = Workers(3)
    gate, ran = threading.Semaphore(0), []

    def call() -> None:
        gate.acquire()
        ran.append(threading.get_ident())

    before = threading.active_count()
    for _ in range(10):
        workers.submit(call)
    assert threading.active_count() - before == 3
    assert workers.busy == 10
    for _ in range(10):
        gate.release()
    until = time.monotonic() + 20
    while workers.busy and time.monotonic() < until:
        time.sleep(0.001)
    assert len(ran) == 10
    assert len(set(ran)) <= 3


def test_one_call_after_another_takes_one_worker() -> None:
    workers, before = Workers(8), threading.active_count()
    for _ in range(20):
        done = threading.Event()
        workers.submit(done.set)
        assert done.wait(20)
        while workers.busy:
            time.sleep(0.0005)
    assert threading.active_count() - before <= 2


def test_a_machine_without_room_for_threads_is_told(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine answers and goes on; once there is room, all is well again."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        event = engine.ask("exists", {"path": b"/"})
    assert isinstance(event, Failed)
    assert "no more threads" in event.arguments[1]
    assert isinstance(engine.ask("exists", {"path": b"/"}), Finished)


class NoWire:
    session = FarSession()

    def send(self, operation: Any, *args: Any) -> None:
        pass


def test_an_aborted_body_ends_its_reader() -> None:
    body = Body(NoWire(), 1, 100)
    body.feed(b"abc")
    chunks = body.chunks()
    assert next(chunks) == b"abc"
    threading.Timer(0.05, body.abort).start()
    with pytest.raises(Fault) as caught:
        next(chunks)
    assert caught.value.code == "cancelled"


def test_an_empty_body_has_no_chunks() -> None:
    body = Body(NoWire(), 1, 0)
    body.end()
    assert list(body.chunks()) == []
