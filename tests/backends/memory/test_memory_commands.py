"""Commands in memory: scripts, time limits, stops, output, records."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from backends.memory import CommandOutput, CommandRun, Directory, File, ManualClock, MemoryBackend
from operations import (
    ConnectionLost,
    ExecResult,
    OutputSnapshot,
    PathDenied,
    PathNotDirectory,
    PathNotFound,
    TooLarge,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio


class Stop:
    """A stop signal that a test fires."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def fire(self) -> None:
        """Ask to stop."""
        self._event.set()

    def is_set(self) -> bool:
        """Tell whether it was fired."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Wait until it is."""
        await self._event.wait()


async def run(backend: MemoryBackend, command: str, **options: Any) -> tuple[ExecResult, bytes]:
    """Run a command in the working folder; return how it ended and what it printed."""
    chunks: list[bytes] = []
    result = await backend.exec(command, **{"cwd": "/work", "on_data": chunks.append, **options})
    return result, b"".join(chunks)


async def run_tail(
    backend: MemoryBackend, command: str, **options: Any
) -> tuple[ExecResult, list[OutputSnapshot]]:
    """Run a command by its tail; return how it ended and the snapshots."""
    snapshots: list[OutputSnapshot] = []
    settings: dict[str, Any] = {
        "cwd": "/work",
        "on_snapshot": snapshots.append,
        "tail_bytes": 10,
        "keep_over_bytes": 20,
        "keep_over_lines": 3,
    }
    return await backend.exec_tail(command, **{**settings, **options}), snapshots


async def test_a_command_that_is_not_scripted_is_127_and_says_how_to_script_it() -> None:
    """Nothing is guessed."""
    backend = MemoryBackend()
    result, output = await run(backend, "npm test")
    assert (result.ended, result.exit_code) == ("exited", 127)
    assert output == b"memory: no handler for 'npm test'; add one with backend.on_command(...)\n"


@pytest.mark.parametrize(
    ("handler", "output", "exit_code"),
    [
        ("text \u00e9\n", "text \u00e9\n".encode(), 0),
        (b"\xff\x00", b"\xff\x00", 0),
        (CommandOutput("failed\n", exit_code=3), b"failed\n", 3),
        (lambda _: None, b"", 0),
        (lambda _: 5, b"", 5),
        (lambda _: "from a function", b"from a function", 0),
    ],
)
async def test_what_handlers_may_be(handler: Any, output: bytes, exit_code: int) -> None:
    """Text, bytes, an output, a function that gives one of them or an exit code."""
    backend = MemoryBackend(commands={"go": handler})
    result, printed = await run(backend, "go")
    assert (result.ended, result.exit_code, printed) == ("exited", exit_code, output)
    assert (result.total_bytes, result.total_lines) == (len(output), output.count(b"\n"))


async def test_commands_fit_by_text_by_whole_pattern_or_by_predicate_the_last_script_first() -> (
    None
):
    """A pattern has to fit all of the command; the handler sees what fitted."""
    backend = MemoryBackend()
    backend.on_command(lambda text: text.startswith("git"), "any git")
    backend.on_command(re.compile(r"git commit -m '(\w+)'"), lambda r: r.match[1])
    backend.on_command("git status", "clean")
    assert (await run(backend, "git status"))[1] == b"clean"
    assert (await run(backend, "git commit -m 'hello'"))[1] == b"hello"
    assert (await run(backend, "git commit -m 'hello' --amend"))[1] == b"any git"
    assert (await run(backend, "hg status"))[0].exit_code == 127
    backend.on_command("git status", "overridden")
    assert (await run(backend, "git status"))[1] == b"overridden"


async def test_a_handler_sees_cwd_environment_input_and_the_tree_from_its_cwd() -> None:
    """What is set for the call wins over what is set for the backend."""
    backend = MemoryBackend({"sub/in.txt": "abc"}, env={"A": "backend", "B": "backend"})

    @backend.on_command("tool")
    async def tool(run: CommandRun) -> int:
        run.tree.write("out.txt", run.tree.read_text("in.txt").upper() + run.env["A"])
        await run.print(run.cwd, run.env["B"], run.env["HOME"], run.env["PWD"], run.stdin)
        return 0

    snapshots: list[OutputSnapshot] = []
    await backend.exec_tail(
        "tool",
        cwd="/work/sub/../sub/",
        on_snapshot=snapshots.append,
        tail_bytes=1000,
        keep_over_bytes=1000,
        keep_over_lines=1000,
        env={"A": "call"},
        stdin=b"in",
    )
    assert backend.read_text("sub/out.txt") == "ABCcall"
    assert snapshots[-1].data == b"/work/sub backend /home/user /work/sub b'in'\n"


async def test_every_command_is_recorded_in_the_order_of_starts() -> None:
    """With what it was given and how it ended; one that runs has no result yet."""
    backend = MemoryBackend(commands={"a": "1", "b": CommandOutput(signal=9)})
    seen: list[Any] = []
    backend.on_command("c", lambda _: seen.append(backend.commands[-1].result))
    await run(backend, "a", env={"X": "1"}, timeout_s=9.0)
    await run(backend, "b", cwd="~")
    await run(backend, "c")
    first, second, third = backend.commands
    assert (first.command, first.cwd, first.env, first.timeout_s) == ("a", "/work", {"X": "1"}, 9.0)
    assert first.result is not None
    assert first.result.exit_code == 0
    assert second.result is not None
    assert (second.cwd, second.result.ended, second.result.signal) == ("/home/user", "signalled", 9)
    assert (seen, third.result is None) == ([None], False)


async def test_a_program_is_matched_by_its_quoted_words() -> None:
    """And the handler sees them one by one."""
    backend = MemoryBackend(commands={"grep -n 'a b' f": lambda r: repr(r.argv)})
    _, snapshots = await run_tail(
        backend, "ignored", argv=["grep", "-n", "a b", "f"], tail_bytes=99
    )
    assert snapshots[-1].data == b"('grep', '-n', 'a b', 'f')"
    assert backend.commands[-1].argv == ("grep", "-n", "a b", "f")


@pytest.mark.parametrize(
    ("cwd", "error"),
    [("/work/none", PathNotFound), ("/work/f", PathNotDirectory), ("/work/shut", PathDenied)],
)
async def test_a_folder_that_cannot_be_entered_is_an_error_and_nothing_runs(
    cwd: str, error: type[Exception]
) -> None:
    """The path is named as it was given."""
    backend = MemoryBackend({"f": "", "shut/": Directory(mode=0o600)}, commands={"x": "ran"})
    with pytest.raises(error) as caught:
        await run(backend, "x", cwd=cwd)
    assert caught.value.path == cwd  # type: ignore[attr-defined]
    assert backend.commands == []


async def test_a_command_over_ten_mebibytes_is_refused() -> None:
    """As on every backend."""
    with pytest.raises(TooLarge):
        await run(MemoryBackend(), "x" * (10 * 1024 * 1024 + 1))


async def test_a_time_limit_ends_the_handler_and_keeps_what_it_had_printed() -> None:
    """By the test's clock, so in no time; the handler's clean-up runs, and prints no more."""
    clock = ManualClock()
    backend = MemoryBackend(clock=clock)
    cleaned: list[bool] = []

    @backend.on_command("slow")
    async def slow(run: CommandRun) -> None:
        await run.print("before")
        try:
            await run.clock.sleep(3600)
        finally:
            cleaned.append(True)
            run.write("after")

    results = []
    async with anyio.create_task_group() as tasks:

        async def call() -> None:
            results.append(await run(backend, "slow", timeout_s=600))

        tasks.start_soon(call)
        await clock.wait_until_sleeping(2)
        clock.advance(599.5)
        await anyio.lowlevel.checkpoint()
        assert results == []
        clock.advance(0.5)
    [(result, output)] = results
    assert (result.ended, result.exit_code, result.killed) == ("timeout", None, "killed")
    assert result.duration_s == 600
    assert (output, cleaned) == (b"before\n", [True])


async def test_a_command_that_ends_in_time_is_not_a_timeout() -> None:
    """One instant before the limit."""
    clock = ManualClock()
    backend = MemoryBackend(clock=clock, commands={"x": CommandOutput("done", delay_s=9.9)})
    results = []
    async with anyio.create_task_group() as tasks:

        async def call() -> None:
            results.append(await run(backend, "x", timeout_s=10))

        tasks.start_soon(call)
        await clock.wait_until_sleeping(2)
        clock.advance(9.9)
    assert (results[0][0].ended, results[0][1]) == ("exited", b"done")


async def test_a_time_limit_in_real_time_ends_a_handler_that_waits_forever() -> None:
    """The default clock is the event loop's."""
    backend = MemoryBackend()

    @backend.on_command("hang")
    async def hang(_: CommandRun) -> None:
        await anyio.sleep_forever()

    result, _ = await run(backend, "hang", timeout_s=0.05)
    assert result.ended == "timeout"
    assert result.duration_s >= 0.05


async def test_stop_ends_the_handler_and_a_stop_before_the_start_runs_nothing() -> None:
    """The result says stopped, with what was printed."""
    backend = MemoryBackend()
    stop = Stop()
    started: list[bool] = []

    @backend.on_command("wait")
    async def wait(run: CommandRun) -> None:
        started.append(True)
        await run.print("here")
        assert not run.stop.is_set()
        stop.fire()
        await run.stop.wait()
        await anyio.sleep_forever()

    result, output = await run(backend, "wait", stop=stop)
    assert (result.ended, result.killed, output) == ("stopped", "killed", b"here\n")
    result, output = await run(backend, "wait", stop=stop)
    assert (result.ended, result.killed, output) == ("stopped", "none", b"")
    assert started == [True]


async def test_survivors_of_a_kill_can_be_told() -> None:
    """For testing what is said about them; a command that ends by itself has none."""
    backend = MemoryBackend()
    backend.on_command("daemon", CommandOutput(delay_s=60), survivors=["stuckd"])
    result, _ = await run(backend, "daemon", timeout_s=0.01)
    assert (result.killed, result.survivors) == ("unconfirmed", ("stuckd",))


async def test_cancelling_the_caller_cancels_the_handler_and_goes_on() -> None:
    """The record keeps no result."""
    backend = MemoryBackend()
    ended: list[bool] = []

    @backend.on_command("hang")
    async def hang(_: CommandRun) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(True)

    with anyio.move_on_after(0.05) as scope:
        await run(backend, "hang")
    assert (scope.cancelled_caught, ended) == (True, [True])
    assert backend.commands[-1].result is None


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(3), AssertionError("boom")])
async def test_a_handler_that_raises_is_exit_70_with_its_traceback(error: BaseException) -> None:
    """What was printed before stays, and the error can be looked at."""
    backend = MemoryBackend()

    @backend.on_command("bad")
    def bad(run: CommandRun) -> None:
        run.write("before\n")
        raise error

    result, output = await run(backend, "bad")
    assert result.exit_code == 70
    assert output.startswith(b"before\nmemory: the handler for 'bad' raised\n")
    assert type(error).__name__.encode() in output
    assert backend.commands[-1].error is error


@pytest.mark.parametrize("value", [True, 3.5, [], 256, -1])
async def test_a_value_that_means_nothing_is_a_fault_of_the_handler(value: object) -> None:
    """A bool would be ambiguous, and no exit code is above 255."""
    backend = MemoryBackend(commands={"x": lambda _: value})  # type: ignore[dict-item]
    assert (await run(backend, "x"))[0].exit_code == 70


async def test_an_operation_error_of_a_handler_is_raised_by_the_operation() -> None:
    """A connection that is lost in the middle of a command, say."""
    backend = MemoryBackend()

    @backend.on_command("x")
    async def lose(run: CommandRun) -> None:
        await run.print("half")
        raise ConnectionLost("memory:", "the test cut it")

    chunks: list[bytes] = []
    with pytest.raises(ConnectionLost):
        await backend.exec("x", cwd="/work", on_data=chunks.append)
    assert chunks == [b"half\n"]


async def test_a_handler_can_give_a_whole_result() -> None:
    """Its totals are filled in."""
    lost = ExecResult(ended="lost", background=2, total_bytes=99)
    backend = MemoryBackend(commands={"x": lambda r: r.write("abc\n") or lost})
    result, _ = await run(backend, "x")
    assert (result.ended, result.background) == ("lost", 2)
    assert (result.total_bytes, result.total_lines) == (4, 1)


async def test_chunks_arrive_one_by_one_and_in_order() -> None:
    """Each print is a chunk of its own, seen before the next."""
    backend = MemoryBackend()
    chunks: list[bytes] = []

    @backend.on_command("count")
    async def count(run: CommandRun) -> None:
        for number in range(3):
            await run.print(number)
            assert chunks[-1] == b"%d\n" % number

    await backend.exec("count", cwd="/work", on_data=chunks.append)
    assert chunks == [b"0\n", b"1\n", b"2\n"]


async def test_snapshots_come_at_once_then_every_100_ms_then_before_the_result() -> None:
    """Each holds what is new, cut to its tail, and where that is."""
    clock = ManualClock()
    backend = MemoryBackend(clock=clock)
    go_on = [anyio.Event() for _ in range(3)]

    @backend.on_command("talk")
    async def talk(run: CommandRun) -> None:
        run.write("first")
        run.write("second, too long for a tail")
        await go_on[0].wait()
        run.write("third")
        await go_on[1].wait()
        run.write("last\n")

    snapshots: list[OutputSnapshot] = []
    async with anyio.create_task_group() as tasks:

        async def call() -> None:
            await backend.exec_tail(
                "talk",
                cwd="/work",
                on_snapshot=snapshots.append,
                tail_bytes=10,
                keep_over_bytes=100,
                keep_over_lines=100,
            )

        tasks.start_soon(call)
        await clock.wait_until_sleeping(1)
        assert [s.data for s in snapshots] == [b"first"]
        clock.advance(0.1)
        while len(snapshots) < 2:
            await anyio.lowlevel.checkpoint()
        go_on[0].set()
        await clock.wait_until_sleeping(1)
        go_on[1].set()
    assert [(s.data, s.start) for s in snapshots] == [
        (b"first", 0),
        (b"for a tail", 22),
        (b"thirdlast\n", 32),
    ]
    assert (snapshots[-1].total_bytes, snapshots[-1].total_lines) == (42, 1)


async def test_a_snapshot_never_holds_more_than_its_tail_and_gaps_are_told() -> None:
    """However much is printed at once."""
    backend = MemoryBackend(commands={"x": "0123456789" * 1000})
    _, [snapshot] = await run_tail(backend, "x", tail_bytes=7)
    assert snapshot == OutputSnapshot(
        data=b"3456789", start=9993, total_bytes=10_000, total_lines=0
    )


@pytest.mark.parametrize(
    ("output", "kept"),
    [("x" * 20, False), ("x" * 21, True), ("\n" * 3, False), ("\n" * 4, True)],
)
async def test_output_over_either_limit_is_kept_where_read_can_open_it(
    output: str, kept: bool
) -> None:
    """Private to the user, and gone when the backend is left."""
    async with MemoryBackend(commands={"x": output}) as backend:
        result, _ = await run_tail(backend, "x")
        assert (result.kept_path is not None) == kept
        if result.kept_path is not None:
            assert await backend.read_file(result.kept_path) == output.encode()
            assert backend.stat(result.kept_path).mode == 0o600
            assert result.kept_bytes == len(output)
            assert result.dropped is None
    assert backend.paths("/tmp") == []


async def test_kept_output_is_capped_and_dropped_where_there_is_no_place() -> None:
    """Both are said."""
    backend = MemoryBackend(commands={"x": "y" * 100}, kept_output_limit=30)
    result, _ = await run_tail(backend, "x")
    assert (result.kept_bytes, result.total_bytes) == (30, 100)
    bare: list[Callable[[MemoryBackend], None]] = [
        lambda b: b.remove("/tmp"),
        lambda b: b.chmod("/tmp", 0o555),
    ]
    for prepare in bare:
        backend = MemoryBackend(commands={"x": "y" * 100})
        prepare(backend)
        result, _ = await run_tail(backend, "x")
        assert result.kept_path is None
        assert result.dropped


async def test_many_commands_run_at_once_and_each_has_its_own_output() -> None:
    """A hundred of them."""
    backend = MemoryBackend()

    @backend.on_command(re.compile(r"n (\d+)"))
    async def echo(run: CommandRun) -> None:
        assert isinstance(run.match, re.Match)
        for _ in range(3):
            await run.print(run.match[1])

    outputs: dict[int, bytes] = {}

    async def call(number: int) -> None:
        outputs[number] = (await run(backend, f"n {number}"))[1]

    async with anyio.create_task_group() as tasks:
        for number in range(100):
            tasks.start_soon(call, number)
    assert outputs == {n: b"%d\n" % n * 3 for n in range(100)}


async def test_seeded_modes_do_not_stop_the_hands_of_a_handler() -> None:
    """A handler stands for a program that the test has written."""
    backend = MemoryBackend({"ro": File("1", mode=0o444)})
    backend.on_command("w", lambda r: r.tree.write("ro", "2"))
    await run(backend, "w")
    assert backend.read_text("ro") == "2"


async def test_a_script_a_change_by_a_tool_and_a_look_back() -> None:
    """What the class's own example shows."""
    backend = MemoryBackend(
        {"src/main.py": "print('hi')\n", "run.sh": File("#!/bin/sh\n", mode=0o755)}
    )
    backend.on_command("pytest -q", CommandOutput("1 failed\n", exit_code=1))
    result, output = await run(backend, "pytest -q")
    await backend.replace_file("/work/src/main.py", b"print('ho')\n")
    assert (result.exit_code, output) == (1, b"1 failed\n")
    assert backend.read_text("src/main.py") == "print('ho')\n"
    assert [c.command for c in backend.commands] == ["pytest -q"]
    assert [c.operation for c in backend.calls] == ["exec", "replace_file"]
