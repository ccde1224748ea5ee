"""Nothing that a command started outlives it, however the end comes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.end_to_end.driving import driving
from tests.end_to_end.processes import Process, descendants, remaining, wait_until

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="counts through /proc"),
    pytest.mark.timeout(180),
]

#: Command with its marker as {m}, and how many processes must be seen to carry the marker.
COMMANDS = {
    "sleep": ("sleep {m}", 1),
    "ignores TERM": ("trap '' TERM; sleep {m} & bash -c 'sleep {m} & wait' & wait", 2),
    "setsid": ("setsid sleep {m} & wait", 1),
    "double fork": ("(sleep {m} &); (sh -c 'setsid sleep {m} &' &); sleep {m}", 3),
    "nohup": ("nohup sleep {m} >/dev/null 2>&1 & wait", 1),
    "scrubbed": ("env -i setsid sh -c 'trap \"\" TERM HUP; sleep {m} & wait' & wait", 1),
    "storm": ("i=0; while [ $i -lt 500 ]; do sleep {m} & i=$((i+1)); done; wait", 500),
    "flood": ("yes {m}", 1),
}
BACKGROUND = {
    "sleep": ("sleep {m} & echo hi", 1),
    "nohup": ("nohup sleep {m} >/dev/null 2>&1 & echo hi", 1),
    "scrubbed": ("env -i setsid sh -c 'trap \"\" TERM HUP; sleep {m} & wait' & echo hi", 1),
    "double fork": ("(sh -c 'setsid sleep {m} &' &); echo hi", 1),
}


def gone(processes: list[Process]) -> bool:
    """Return True once none of them lives; five seconds at the most."""
    return wait_until(lambda: not remaining(processes), 5)


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
@pytest.mark.parametrize(
    ("way", "kind"), [("timeout", "timeout"), ("stop", "aborted"), ("cancel", None)]
)
def test_the_end_of_a_call_is_the_end_of_its_processes(
    loop: str, way: str, kind: str | None
) -> None:
    with driving(loop, way, COMMANDS) as run:
        run.see_all()
        run.go()
        if kind:
            assert [run.next()["kind"] for _ in COMMANDS] == [kind] * len(COMMANDS)
        assert run.next()["cancelled"] is (kind is None)
        assert run.none_left(), run.counts()
        assert "still working" in run.next()["after"]
        assert run.next() == {"closed": True}
        assert run.process.wait(10) == 0


def test_our_own_death_ends_everything() -> None:
    """The engine, its spawner and supervisors end too, not only what commands started."""
    with driving("asyncio", "kill", COMMANDS) as run:
        run.see_all()
        everything = descendants(run.process.pid)
        assert len(everything) > sum(run.expected.values())
        run.process.kill()
        run.process.wait()
        assert gone(everything), remaining(everything)
        assert run.none_left(), run.counts()


def test_the_engines_death_ends_every_command() -> None:
    with driving("asyncio", "kill", COMMANDS) as run:
        run.see_all()
        everything = descendants(run.process.pid)
        engine = run.below("sleep")[-1]
        os.kill(engine, signal.SIGKILL)
        assert run.none_left(), run.counts()
        kinds = {run.next()["kind"] for _ in COMMANDS}
        assert kinds == {"connection_lost"}
        assert run.next()["over"]
        assert run.next() == {"after": "still working", "attempts": 1}
        assert gone(everything), remaining(everything)


def test_the_death_of_supervisors_ends_their_commands() -> None:
    with driving("asyncio", "kill", COMMANDS) as run:
        run.see_all()
        supervisors = {run.below(name)[-3] for name in COMMANDS}
        assert len(supervisors) == len(COMMANDS)
        for pid in supervisors:
            os.kill(pid, signal.SIGKILL)
        assert run.none_left(), run.counts()
        for _ in COMMANDS:
            assert run.next()["kind"] is not None
        assert run.next()["over"]
        assert "still working" in run.next()["after"]


def test_the_spawners_death_ends_every_command() -> None:
    """The engine ends too; a call that meets it as it goes is lost, the next one is not."""
    with driving("asyncio", "kill", COMMANDS) as run:
        run.see_all()
        os.kill(run.below("sleep")[-2], signal.SIGKILL)
        assert run.none_left(), run.counts()
        for _ in COMMANDS:
            assert run.next()["kind"] is not None
        assert run.next()["over"]
        assert "still working" in run.next()["after"]


@pytest.mark.parametrize("end", ["close", "kill"])
def test_background_processes_end_with_the_backend(end: str) -> None:
    """What finished commands left running lives until the backend closes, or its owner dies."""
    way = "background" if end == "kill" else "close"
    with driving("asyncio", way, BACKGROUND) as run:
        if end == "kill":
            for _ in BACKGROUND:
                assert run.next()["kind"] is None
            assert run.next()["over"]
            assert "still working" in run.next()["after"]
            run.see_all()
            run.process.kill()
        else:
            run.go()
            assert wait_until(lambda: run.process.poll() is not None, 60)
        assert run.none_left(), run.counts()
