"""Faults on demand: failing, stalling, dropping, counted and over when they should be."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from backends.memory import Call, CommandOutput, ManualClock, MemoryBackend
from operations import ConnectionLost, GrepQuery, PathDenied, PathNotFound, StorageFull

pytestmark = pytest.mark.anyio

EVERY_OPERATION: dict[str, Any] = {
    "access": lambda b: b.access("/work/f"),
    "detect_image_mime_type": lambda b: b.detect_image_mime_type("/work/f"),
    "exec": lambda b: b.exec("true", cwd="/work", on_data=lambda _: None),
    "exec_tail": lambda b: b.exec_tail(
        "true",
        cwd="/work",
        on_snapshot=lambda _: None,
        tail_bytes=1,
        keep_over_bytes=1,
        keep_over_lines=1,
    ),
    "exists": lambda b: b.exists("/work/f"),
    "glob": lambda b: b.glob("*", "/work", limit=10),
    "grep": lambda b: b.grep(GrepQuery(pattern="old", path="/work")),
    "is_directory": lambda b: b.is_directory("/work"),
    "list_directory": lambda b: b.list_directory("/work", limit=10),
    "make_directory": lambda b: b.make_directory("/work/d"),
    "read_file": lambda b: b.read_file("/work/f"),
    "read_lines": lambda b: b.read_lines("/work/f", start=1, max_lines=1, max_bytes=10),
    "read_versioned": lambda b: b.read_versioned("/work/f"),
    "replace_file": lambda b: b.replace_file("/work/f", b"new"),
    "write_file": lambda b: b.write_file("/work/f", b"new"),
}


@pytest.mark.parametrize("operation", sorted(EVERY_OPERATION))
async def test_every_operation_can_be_made_to_fail_once(operation: Any) -> None:
    """The next call is as if nothing had been; nothing happened meanwhile."""
    backend = MemoryBackend({"f": "old"}, commands={"true": ""})
    before = backend.snapshot("/")
    rule = backend.faults.fail(operation, ConnectionLost("memory:", "cut"))
    with pytest.raises(ConnectionLost):
        await EVERY_OPERATION[operation](backend)
    assert backend.snapshot("/") == before
    assert (rule.seen, rule.hits, rule.active) == (1, 1, False)
    await EVERY_OPERATION[operation](backend)
    assert rule.hits == 1
    assert [call.operation for call in backend.calls] == [operation] * 2


async def test_faults_can_be_for_one_path_after_some_calls_a_number_of_times() -> None:
    """Paths are compared as absolute normal text."""
    backend = MemoryBackend({"a": "", "b": "", "c": ""})
    rule = backend.faults.fail("read_file", PathDenied("a"), path="./a", after=1, times=2)
    outcomes = []
    for path in ("/work/a", "/work/b", "/work/x/../a", "/work//a", "/work/a"):
        try:
            await backend.read_file(path)
            outcomes.append("read")
        except PathDenied:
            outcomes.append("denied")
    assert outcomes == ["read", "read", "denied", "denied", "read"]
    assert (rule.seen, rule.hits) == (3, 2)


async def test_a_fault_for_always_ends_with_its_block_or_when_it_is_removed() -> None:
    """And `clear` ends all of them."""
    backend = MemoryBackend({"f": ""})
    with backend.faults.fail("*", StorageFull("/work/f"), times=None) as rule:
        for _ in range(3):
            with pytest.raises(StorageFull):
                await backend.read_file("/work/f")
        with pytest.raises(StorageFull):
            await backend.write_file("/work/f", b"")
    await backend.read_file("/work/f")
    assert (rule.hits, backend.faults.rules) == (4, (rule,))
    backend.faults.fail("read_file", OSError, times=None)
    backend.faults.clear()
    await backend.read_file("/work/f")
    assert backend.faults.rules == ()


async def test_each_call_gets_an_error_of_its_own() -> None:
    """Equal, but not the same object; a class or function makes one each."""
    backend = MemoryBackend({"f": ""})
    caught = []
    backend.faults.fail("read_file", PathDenied("/work/f", "injected"), times=2)
    backend.faults.fail("read_file", lambda: PathNotFound("/work/f"), after=2)
    for _ in range(3):
        try:
            await backend.read_file("/work/f")
        except OSError as error:
            caught.append(error)
    assert [str(e) for e in caught[:2]] == ["/work/f: injected"] * 2
    assert caught[0] is not caught[1]
    assert isinstance(caught[2], PathNotFound)


async def test_a_dropped_write_has_happened_or_not_as_was_asked() -> None:
    """The caller sees one and the same error."""
    backend = MemoryBackend({"f": "old"})
    backend.faults.drop("replace_file", when="before")
    with pytest.raises(ConnectionLost):
        await backend.replace_file("/work/f", b"new")
    assert backend.read_text("f") == "old"
    backend.faults.drop("replace_file", when="after")
    with pytest.raises(ConnectionLost):
        await backend.replace_file("/work/f", b"new")
    assert backend.read_text("f") == "new"


async def test_a_dropped_answer_can_be_an_error_too() -> None:
    """What the operation would have raised is lost with it."""
    backend = MemoryBackend()
    backend.faults.drop("read_file")
    with pytest.raises(ConnectionLost):
        await backend.read_file("/work/none")


async def test_faults_for_one_command() -> None:
    """Others run."""
    backend = MemoryBackend(commands={"a": "", "b": ""})
    backend.faults.drop("exec", command="b", when="after")
    for command in ("a", "b"):
        try:
            await backend.exec(command, cwd="/work", on_data=lambda _: None)
        except ConnectionLost:
            assert command == "b"
    assert [c.command for c in backend.commands] == ["a", "b"]
    assert backend.calls[-1] == Call(operation="exec", path="/work", command="b")


async def test_a_stall_by_time_goes_by_the_backends_clock() -> None:
    """The operation happens when it is over, not before."""
    clock = ManualClock()
    backend = MemoryBackend({"f": "old"}, clock=clock)
    backend.faults.stall("write_file", 30)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(backend.write_file, "/work/f", b"new")
        await clock.wait_until_sleeping()
        clock.advance(29.9)
        await anyio.lowlevel.checkpoint()
        assert backend.read_text("f") == "old"
        clock.advance(0.1)
    assert backend.read_text("f") == "new"


async def test_a_stall_until_an_event_holds_up_one_call_only() -> None:
    """Other calls pass meanwhile."""
    backend = MemoryBackend({"f": "1", "g": "2"})
    go_on = anyio.Event()
    order: list[str] = []

    async def read(path: str) -> None:
        await backend.read_file(path)
        order.append(path)

    backend.faults.stall("read_file", until=go_on, path="f")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, "/work/f")
        await anyio.wait_all_tasks_blocked()
        await read("/work/g")
        go_on.set()
    assert order == ["/work/g", "/work/f"]


async def test_a_stall_without_an_end_is_ended_by_cancellation() -> None:
    """And the operation has not happened."""
    backend = MemoryBackend({"f": "old"})
    backend.faults.stall("write_file")
    with anyio.move_on_after(0.05) as scope:
        await backend.write_file("/work/f", b"new")
    assert scope.cancelled_caught
    assert backend.read_text("f") == "old"


async def test_rules_act_in_the_order_they_were_made() -> None:
    """A stall, then a failure."""
    clock = ManualClock()
    backend = MemoryBackend({"f": ""}, clock=clock)
    backend.faults.stall("read_file", 5)
    backend.faults.fail("read_file", PathDenied("/work/f"))
    async with anyio.create_task_group() as tasks:

        async def read() -> None:
            with pytest.raises(PathDenied):
                await backend.read_file("/work/f")

        tasks.start_soon(read)
        await clock.wait_until_sleeping()
        clock.advance(5)


async def test_a_misspelt_operation_and_senseless_numbers_are_refused() -> None:
    """Such a rule would never act."""
    faults = MemoryBackend().faults
    with pytest.raises(ValueError, match="read_flie"):
        faults.fail("read_flie", OSError)  # type: ignore[arg-type]
    for numbers in ({"times": 0}, {"after": -1}):
        with pytest.raises(ValueError, match="times"):
            faults.drop("exec", **numbers)  # type: ignore[arg-type]


async def test_the_tests_own_hands_meet_no_faults_and_are_not_recorded() -> None:
    """Only operations do."""
    backend = MemoryBackend({"f": "1"}, commands={"x": CommandOutput("")})
    backend.faults.fail("*", OSError, times=None)
    backend.write("f", "2")
    assert backend.read_text("f") == "2"
    assert backend.calls == []
