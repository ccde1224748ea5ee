"""The spawner and its supervisors hold nothing of the engine's, and go when it goes."""

from __future__ import annotations

import os
import signal
import socket
import time

import pytest

from backends.engine import frames, packets
from backends.engine.tree import Tree, look
from tests.backends.engine.processes import Engine, Marked


def ours(engine: Engine) -> list[int]:
    """Return the pids of the spawner and the supervisors."""
    spawner = engine.about()["spawner"]
    return [spawner, *Tree(spawner).find()]


def wait_until_ended(pids: list[int], timeout_s: float = 5) -> None:
    """Wait until none of the processes lives; zombies of a machine without init do not count."""
    deadline = time.monotonic() + timeout_s
    while any(process is not None and process.alive for process in map(look, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_they_let_go_of_all_that_the_engine_has() -> None:
    with Engine() as engine:
        engine.run(b"true")
        for pid in ours(engine):
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in (0, 1, 2)]
            assert links == ["/dev/null"] * 3
            held = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
            channel = {os.readlink(f"/proc/{engine.pid}/fd/{fd}") for fd in (0, 1)}
            assert not held & channel
            assert os.getsid(pid) != os.getsid(engine.pid)


def test_a_kill_by_the_name_of_python_misses_them() -> None:
    with Engine() as engine:
        engine.run(b"true")
        for pid in ours(engine):
            with open(f"/proc/{pid}/comm") as file:
                assert file.read() == "remotehands\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_polite_signal_to_them_ends_nothing(number: int) -> None:
    with Engine() as engine:
        running = engine.start(b"sleep 0.5; echo done")
        for pid in ours(engine)[:2]:
            os.kill(pid, number)
        assert engine.wait(running).output == b"done\n"


def test_idle_ones_go_with_the_engine_and_so_does_its_kept_output() -> None:
    marked = Marked()
    with Engine() as engine:
        kept = os.fsdecode(engine.run(b"seq 1 5000", op="exec_tail")["kept_path"])
        engine.start(f"sleep {marked.text}".encode())
        marked.appear(1)
        pids = ours(engine)
        os.kill(engine.pid, signal.SIGKILL)
        marked.vanish()
        wait_until_ended(pids)
        assert not os.path.exists(os.path.dirname(kept))


def test_supervisors_are_used_again_and_a_crowd_of_them_goes() -> None:
    with Engine() as engine:
        for _ in range(5):
            engine.run(b"true")
        before = ours(engine)
        for _ in range(20):
            engine.run(b"true")
        assert ours(engine) == before
        running = [engine.start(b"sleep 0.3") for _ in range(20)]
        for number in running:
            assert engine.wait(number)["exit_code"] == 0
        assert len(ours(engine)) > 20, "they wait a while for the next crowd"
        deadline = time.monotonic() + 30
        while len(ours(engine)) > 6:
            assert time.monotonic() < deadline
            engine.run(b"true")  # one command now and then is no crowd
            time.sleep(0.1)


def test_a_spare_that_was_killed_costs_no_command_its_answer() -> None:
    with Engine() as engine:
        engine.run(b"true")
        for pid in ours(engine)[1:]:
            os.kill(pid, signal.SIGKILL)
        answer = engine.run(b"echo hi")
        assert answer["ended"] in ("exited", "lost")
        assert engine.run(b"echo hi").output == b"hi\n"


# Searches run in workers, which are forks of supervisors ----------------------------------


def find(folder: bytes, pattern: str = "**/*.none", limit: int = 10) -> dict[str, object]:
    """Return the arguments of a search for names."""
    return {"pattern": pattern, "path": folder, "limit": limit, "timeout_s": 30.0}


def workers_of(engine: Engine) -> list[int]:
    """Return the pids of the idle workers: what supervisors have below them."""
    deadline = time.monotonic() + 5
    while engine.about()["running"]:  # an answer is there a moment before its worker is free
        assert time.monotonic() < deadline
    spawner = engine.about()["spawner"]
    return [pid for pid in Tree(spawner).find() if look(pid).parent != spawner]


def test_a_search_answers_through_its_worker(tmp_path: os.PathLike[str]) -> None:
    folder = os.fsencode(tmp_path)
    for number in range(30):
        with open(os.path.join(folder, b"f%02d.txt" % number), "w") as file:
            file.write("needle")
    with Engine() as engine:
        for _ in range(2):
            answer = engine.run(op="find", **find(folder, "*.txt"))
            paths = [
                path
                for part in answer.parts
                if "paths" in part
                for path in part["paths"].split(b"\0")
            ]
            assert paths == [b"f%02d.txt" % number for number in range(10)]
            assert answer["more"] is True
        assert engine.run(op="find", **find(folder, "[")).fault[0] == "invalid_pattern"


def test_a_search_can_be_cancelled() -> None:
    with Engine() as engine:
        number = engine.start(op="find", **find(b"/"))
        engine.say({"cancel": number})
        assert engine.wait(number, 5).fault == ["cancelled"]
        assert engine.about()["running"] == 0


def test_a_search_that_dies_is_an_error() -> None:
    with Engine() as engine:
        number = engine.start(op="find", **find(b"/"))
        deadline = time.monotonic() + 5
        workers: list[int] = []
        while not workers:
            assert time.monotonic() < deadline
            [supervisor] = engine.about()["supervisors"]
            workers = list(Tree(supervisor).find()) if supervisor else []
        os.kill(workers[0], signal.SIGKILL)
        fault = engine.wait(number, 5).fault
        assert fault[0] == "internal"
        assert "signal 9" in fault[1]


def test_one_worker_serves_one_search_after_another(tmp_path: os.PathLike[str]) -> None:
    folder = os.fsencode(tmp_path)
    with Engine() as engine:
        engine.run(op="find", **find(folder))
        [worker] = workers_of(engine)
        held = len(os.listdir(f"/proc/{worker}/fd"))
        for number in range(20):
            path = folder + b"/missing" if number % 3 == 0 else folder
            answer = engine.run(op="find", **find(path, "[" if number % 3 == 1 else "*"))
            assert (answer.fault is None) == (number % 3 == 2)
            assert workers_of(engine) == [worker]
        assert len(os.listdir(f"/proc/{worker}/fd")) == held


def test_an_idle_worker_is_nothing_that_a_command_has_left(tmp_path: os.PathLike[str]) -> None:
    with Engine() as engine:
        engine.run(op="find", **find(os.fsencode(tmp_path)))
        for _ in range(6):
            assert engine.run(b"true")["background"] == 0
        assert engine.run(b"sleep 9", timeout_s=0.2)["killed"] == "killed"
        assert engine.run(op="find", **find(os.fsencode(tmp_path)))["more"] is False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_somebody_ends_is_replaced(
    tmp_path: os.PathLike[str], number: signal.Signals
) -> None:
    with Engine() as engine:
        engine.run(op="find", **find(os.fsencode(tmp_path)))
        [worker] = workers_of(engine)
        os.kill(worker, number)
        wait_until_ended([worker])
        assert engine.run(op="find", **find(os.fsencode(tmp_path)))["more"] is False
        assert worker not in workers_of(engine)


def test_a_search_that_is_cancelled_takes_its_worker_with_it(tmp_path: os.PathLike[str]) -> None:
    with Engine() as engine:
        engine.run(op="find", **find(os.fsencode(tmp_path)))
        [worker] = workers_of(engine)
        number = engine.start(op="find", **find(b"/"))
        engine.say({"cancel": number})
        assert engine.wait(number, 5).fault == ["cancelled"]
        wait_until_ended([worker])
        assert engine.run(op="find", **find(os.fsencode(tmp_path)))["more"] is False


@pytest.mark.parametrize("busy", [True, False], ids=["busy", "idle"])
@pytest.mark.parametrize("victim", ["engine", "supervisor", "spawner"])
def test_no_death_leaves_a_worker(
    tmp_path: os.PathLike[str],
    victim: str,
    busy: bool,
) -> None:
    with Engine() as engine:
        engine.run(op="find", **find(os.fsencode(tmp_path)))
        [worker] = workers_of(engine)
        if busy:
            engine.start(op="find", **find(b"/"))
        pids = {
            "engine": engine.pid,
            "supervisor": look(worker).parent,
            "spawner": engine.about()["spawner"],
        }
        os.kill(pids[victim], signal.SIGKILL)
        wait_until_ended([worker])


def test_a_message_carries_descriptors_with_it() -> None:
    here, there = socket.socketpair()
    with here, there:
        inbox = packets.Inbox(there)
        assert inbox.read() == []
        read_fd, write_fd = os.pipe()
        packets.send(here, {"n": 1})
        packets.send(here, {"n": 2, "big": b"x" * 100_000}, [write_fd])
        os.close(write_fd)
        values = inbox.read()
        while len(values) < 2:
            values += inbox.read(wait=True)
        assert [value["n"] for value in values] == [1, 2]
        [received] = inbox.take_fds(1)
        assert not os.get_inheritable(received)
        os.write(received, b"through")
        os.close(received)
        assert os.read(read_fd, 10) == b"through"
        os.close(read_fd)
        with pytest.raises(frames.WireError):
            packets.send(here, {"too big": b"x" * frames.MAX_PAYLOAD})
        here.close()
        assert inbox.read() is None
