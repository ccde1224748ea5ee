"""A remote backend over a pipe to a real engine: life cycle, losses, transfers, leftovers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from backends.local import EngineBackend
from backends.remote import backend as backend_module
from backends.remote import bootstrap
from backends.remote.backend import RemoteBackend
from backends.remote.channel import Channel
from backends.remote.pipe import PipeChannel, open_pipe
from operations import (
    BackendUnavailable,
    ConnectionLost,
    ExecResult,
    InvalidPattern,
    OperationUnsupported,
    PathError,
    PathNotFound,
    TooLarge,
)

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]


def alive(pid: int) -> bool:
    """Tell whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def gone(pids: list[int], limit_s: float = 10) -> bool:
    until = time.monotonic() + limit_s
    while any(map(alive, pids)):
        if time.monotonic() > until:
            return False
        await anyio.sleep(0.02)
    return True


class Pipes:
    """Opens engines as EngineBackend does, and remembers their channels."""

    def __init__(self) -> None:
        self.opened: list[PipeChannel] = []

    async def __call__(self) -> Channel:
        channel = await open_pipe(bootstrap.argv(sys.executable))
        self.opened.append(channel)
        return channel

    @property
    def pid(self) -> int:
        return self.opened[-1].pid


def backend(opener: Any, **options: Any) -> RemoteBackend:
    return RemoteBackend(opener, target="test:", cwd="/tmp", **options)


async def run(place: RemoteBackend, command: str, **options: Any) -> tuple[ExecResult, bytes]:
    chunks: list[bytes] = []
    result = await place.exec(command, cwd="/", on_data=chunks.append, **options)
    return result, b"".join(chunks)


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(20):
        while not condition():  # nobody there could set an event
            await anyio.sleep(0.01)


async def until_printed(printed: list[bytes]) -> bytes:
    await until(lambda: b"".join(printed).endswith(b"\n"))
    return b"".join(printed)


# Life cycle


async def test_entering_connects_and_tells_facts() -> None:
    pipes = Pipes()
    place = backend(pipes)
    assert place.facts is None
    async with place:
        assert place.facts is not None
        assert place.facts.home == str(Path.home())
        assert place.facts.platform == "linux"
    assert await gone([pipes.pid])


async def test_before_entering_the_error_tells_how() -> None:
    with pytest.raises(BackendUnavailable, match="async with"):
        await EngineBackend().exists("/")


async def test_after_leaving_the_error_tells_how() -> None:
    async with EngineBackend() as place:
        pass
    with pytest.raises(BackendUnavailable, match="async with"):
        await place.exists("/")


async def test_a_backend_can_be_entered_again_but_not_twice() -> None:
    place = EngineBackend()
    for _ in range(2):
        async with place:
            assert await place.exists("/")
            with pytest.raises(BackendUnavailable, match="in use"):
                await place.__aenter__()


async def test_an_exception_in_the_body_comes_out_as_it_is() -> None:
    async def use() -> None:
        async with EngineBackend() as place:
            await place.exists("/")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await use()


async def test_leaving_ends_running_commands() -> None:
    pids: list[int] = []

    async def sleep(place: RemoteBackend, printed: list[bytes]) -> None:
        with pytest.raises(ConnectionLost, match="closed"):
            await place.exec("echo $$; sleep 300", cwd="/", on_data=printed.append)

    async with anyio.create_task_group() as tasks:
        printed: list[bytes] = []
        async with EngineBackend() as place:
            tasks.start_soon(sleep, place, printed)
            pids.append(int(await until_printed(printed)))
    assert not alive(pids[0])


async def test_leaving_under_cancellation_leaves_nothing() -> None:
    pipes = Pipes()
    printed: list[bytes] = []
    pid = 0

    async def sleep(place: RemoteBackend) -> None:
        await place.exec("echo $$; sleep 300", cwd="/", on_data=printed.append)

    with anyio.CancelScope() as scope:
        async with backend(pipes) as place, anyio.create_task_group() as tasks:
            tasks.start_soon(sleep, place)
            pid = int(await until_printed(printed))
            scope.cancel()
    assert scope.cancelled_caught
    assert not alive(pid)
    assert await gone([pipes.pid])


@pytest.mark.parametrize("delay_s", [0.0, 0.001, 0.02, 0.05, 0.1, 0.2])
async def test_cancelling_while_it_connects_leaves_nothing(delay_s: float) -> None:
    pipes = Pipes()
    with anyio.move_on_after(delay_s):
        async with backend(pipes):
            await anyio.sleep_forever()
    assert await gone([channel.pid for channel in pipes.opened])


NO_ENGINES = {
    "it fails": (["/bin/sh", "-c", "echo oh no >&2; exit 3"], "exit status 3: oh no"),
    "it is silent": (["/bin/sh", "-c", "echo a banner; cat >/dev/null"], "did not answer within"),
    "it is killed": (["/bin/sh", "-c", "kill -9 $$"], "ended by SIGKILL"),
    "it is missing": (["/nowhere/python3"], "No such file"),
    "it babbles": (["/bin/sh", "-c", "yes"], "no hello within"),
}


@pytest.mark.parametrize(("argv", "says"), NO_ENGINES.values(), ids=NO_ENGINES.keys())
async def test_what_is_no_engine_is_unavailable(argv: list[str], says: str) -> None:
    opened: list[PipeChannel] = []

    async def opener() -> Channel:
        opened.append(await open_pipe(argv))
        return opened[-1]

    with pytest.raises(BackendUnavailable, match=says):
        async with backend(opener, connect_timeout_s=2.0):
            pass
    assert await gone([channel.pid for channel in opened])


async def test_noise_before_the_hello_is_no_trouble() -> None:
    """A login shell prints a banner first."""

    async def opener() -> Channel:
        line = "echo Welcome; printf '\\000\\001'; " + bootstrap.shell_line()
        return await open_pipe(["/bin/sh", "-c", line])

    async with backend(opener) as place:
        assert await place.exists("/")


# Losses


async def test_a_killed_engine_is_a_lost_connection_and_the_next_call_works() -> None:
    """What was in flight is told as lost and not done again; its tree is gone."""
    pipes = Pipes()
    printed: list[bytes] = []
    async with backend(pipes) as place:

        async def sleep() -> None:
            with pytest.raises(ConnectionLost, match="SIGKILL"):
                await place.exec("echo $$; sleep 300", cwd="/", on_data=printed.append)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sleep)
            pid = int(await until_printed(printed))
            os.kill(pipes.pid, signal.SIGKILL)
        assert await gone([pid])
        assert (await run(place, "echo again"))[1] == b"again\n"
        assert len(pipes.opened) == 2


async def test_nothing_is_sent_twice(tmp_path: Path) -> None:
    """A command whose connection dies under it has run once, also after reconnecting."""
    log = tmp_path / "log"
    pipes = Pipes()
    async with backend(pipes) as place:
        for _ in range(3):
            with pytest.raises(ConnectionLost):
                await run(place, f"echo ran >>{log}; kill -9 {pipes.pid}; sleep 300")
            assert await place.exists("/")
    assert log.read_text() == "ran\n" * 3


async def test_many_callers_after_a_loss_share_one_new_connection() -> None:
    pipes = Pipes()
    async with backend(pipes) as place:
        os.kill(pipes.pid, signal.SIGKILL)
        client = place._connection._client
        assert client is not None
        await until(lambda: client.lost)
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(place.exists, "/")
        assert len(pipes.opened) == 2


async def test_the_lease_ends_an_engine_that_hears_nothing() -> None:
    """The wire is open but silent: after the lease the engine and its commands are gone."""
    pipes = Pipes()
    printed: list[bytes] = []
    async with backend(pipes, lease_s=1.0) as place:

        async def sleep() -> None:
            with pytest.raises(ConnectionLost, match="nothing heard for 1 seconds"):
                await place.exec("echo $$; setsid sleep 300", cwd="/", on_data=printed.append)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sleep)
            pid = int(await until_printed(printed))
            pipes.opened[0].send_nowait = len  # type: ignore[method-assign,assignment]
        assert await gone([pid, pipes.pid])


async def test_an_engine_that_says_nothing_is_lost() -> None:
    pipes = Pipes()
    async with backend(pipes, lease_s=0.6) as place:
        os.kill(pipes.pid, signal.SIGSTOP)
        with anyio.fail_after(30), pytest.raises(ConnectionLost, match="nothing heard"):
            await place.exists("/")
        os.kill(pipes.pid, signal.SIGCONT)
        assert await place.exists("/")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_the_engine_cleanly(number: signal.Signals) -> None:
    pipes = Pipes()
    printed: list[bytes] = []
    async with backend(pipes) as place:

        async def sleep() -> None:
            with pytest.raises(ConnectionLost, match=f"signal {int(number)}"):
                await place.exec("echo $$; sleep 300", cwd="/", on_data=printed.append)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sleep)
            pid = int(await until_printed(printed))
            os.kill(pipes.pid, number)
        assert await gone([pid, pipes.pid])


def test_when_our_process_is_killed_nothing_stays(tmp_path: Path) -> None:
    """SIGKILL of the near end: the engine and a command that left its session are gone."""
    script = tmp_path / "near.py"
    script.write_text(
        textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(ROOT)!r})
        import anyio
        from backends.local import LocalBackend
        async def main():
            async with LocalBackend() as place:
                await place.exec(
                    "setsid sleep 300 & echo $! $$ $PPID; sleep 300", cwd="/",
                    on_data=lambda data: (sys.stdout.buffer.write(data), sys.stdout.flush()),
                )
        anyio.run(main)
        """)
    )
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE)
    assert process.stdout
    pids = [int(word) for word in process.stdout.readline().split()]
    assert all(map(alive, pids))
    process.kill()
    process.wait()
    process.stdout.close()
    until = time.monotonic() + 10
    while any(map(alive, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(alive, pids))


# Commands and cancellation


def processes_with(word: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("delay_s", [0.0, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.3])
async def test_cancelling_a_command_at_any_moment_leaves_nothing(delay_s: float) -> None:
    """When the cancellation goes on, nothing of the command lives."""
    marker = f"3{os.getpid()}{time.monotonic_ns() % 10**6}"
    async with EngineBackend() as place:
        with anyio.move_on_after(delay_s):
            await run(place, f"sleep {marker} & setsid sleep {marker}; wait")
        assert not processes_with(marker)
        assert (await run(place, "echo on"))[1] == b"on\n"


class Stop:
    def __init__(self) -> None:
        self.event = anyio.Event()

    def is_set(self) -> bool:
        return self.event.is_set()

    async def wait(self) -> None:
        await self.event.wait()


async def test_stop_before_the_start_runs_nothing(tmp_path: Path) -> None:
    stop = Stop()
    stop.event.set()
    async with EngineBackend() as place:
        result, _ = await run(place, f"touch {tmp_path}/ran", stop=stop)
    assert result.ended == "stopped"
    assert not (tmp_path / "ran").exists()


async def test_stop_keeps_what_was_printed() -> None:
    stop = Stop()
    printed: list[bytes] = []

    def on_data(data: bytes) -> None:
        printed.append(data)
        stop.event.set()

    async with EngineBackend() as place:
        result = await place.exec("echo before; sleep 300", cwd="/", on_data=on_data, stop=stop)
    assert (result.ended, result.killed, printed) == ("stopped", "killed", [b"before\n"])


async def test_a_raising_callback_ends_its_command_alone() -> None:
    def fail(_: bytes) -> None:
        raise ZeroDivisionError

    async with EngineBackend() as place:
        with pytest.raises(ZeroDivisionError):
            await place.exec("echo x; sleep 300", cwd="/", on_data=fail)
        assert await place.exists("/")


# Transfers


async def test_small_reads_are_answered_beside_a_hundred_megabytes(tmp_path: Path) -> None:
    """100 MB written and read back whole, with reads of 1 KB going on all the while."""
    large = os.urandom(1 << 20) * 100
    (tmp_path / "small").write_bytes(b"x" * 1024)
    times: list[float] = []
    async with EngineBackend() as place:

        async def read_small() -> None:
            while True:
                began = time.monotonic()
                assert len(await place.read_file(f"{tmp_path}/small")) == 1024
                times.append(time.monotonic() - began)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read_small)
            await place.write_file(f"{tmp_path}/large", large)
            assert await place.read_file(f"{tmp_path}/large") == large
            tasks.cancel_scope.cancel()
    assert len(times) >= 5
    assert sorted(times)[len(times) // 2] < 1.0


async def test_a_cancelled_write_leaves_one_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    new = bytes(30 << 20)
    async with EngineBackend() as place:
        for delay_s in (0.0, 0.001, 0.005, 0.02):
            path.write_bytes(b"old")
            with anyio.move_on_after(delay_s):
                await place.write_file(str(path), new)
            assert path.stat().st_size in (3, len(new))
            assert os.listdir(tmp_path) == ["f"]


# What cannot be asked


NONSENSE: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "a path of 10 MB": (lambda p: p.read_file("/" + "x" * 10_000_000), PathError),
    "half a character": (lambda p: p.read_file("/\ud800"), PathError),
    "an empty path": (lambda p: p.read_file(""), PathError),
    "a relative path": (lambda p: p.read_file("relative"), PathError),
    "a NUL": (lambda p: p.read_file("/a\0b"), PathError),
    "half a character in a glob": (lambda p: p.glob("\ud800", "/", limit=1), InvalidPattern),
    "a glob of 10 MB": (lambda p: p.glob("x" * 10_000_000, "/", limit=1), TooLarge),
    "a command over 10 MiB": (lambda p: run(p, "x" * (10 << 20) + "x"), TooLarge),
    "half a character in a command": (lambda p: run(p, "echo \ud800"), OperationUnsupported),
    "variables of 10 MB": (lambda p: run(p, "true", env={"A": "x" * 10_000_000}), TooLarge),
    "no such folder": (lambda p: p.exec("true", cwd="/no/where", on_data=print), PathNotFound),
}


@pytest.mark.parametrize(("ask", "error"), NONSENSE.values(), ids=NONSENSE.keys())
async def test_nonsense_is_an_error_and_the_connection_stays(
    ask: Callable[[Any], Any], error: type[Exception]
) -> None:
    pipes = Pipes()
    async with backend(pipes) as place:
        with pytest.raises(error):
            await ask(place)
        assert await place.exists("/")
        assert len(pipes.opened) == 1


# Nothing grows


async def test_nothing_grows_over_many_operations(tmp_path: Path) -> None:
    """Descriptors and threads, here and in the engine, after 500 operations of all kinds."""
    path = f"{tmp_path}/f"
    pipes = Pipes()
    async with backend(pipes) as place:

        def counts() -> list[int]:
            return [
                len(os.listdir(f"/proc/{pid}/{what}"))
                for pid in (os.getpid(), pipes.pid)
                for what in ("fd", "task")
            ]

        async def use(times: int) -> None:
            for n in range(times):
                await place.write_file(path, b"x" * n)
                await place.read_file(path)
                await place.list_directory(str(tmp_path), limit=5)
                with anyio.move_on_after(0.0005):
                    await place.read_lines(path, start=1, max_lines=1, max_bytes=10)
                if n % 5 == 0:
                    await run(place, "true")

        await use(20)
        before = counts()
        await use(120)
        after = counts()
    # One more thread is a pool's, not a leak's: pools are filled as calls happen to overlap.
    assert all(a <= b + 2 for a, b in zip(after, before, strict=True)), (before, after)


async def test_a_commands_limit_holds_for_a_connection_that_does_not_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def open_channel() -> Channel:
        await anyio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(backend_module, "CONNECT_LEAST_S", 0.1)
    backend = RemoteBackend(open_channel, target="box:", cwd="/", connect_on_enter=False)
    with anyio.fail_after(10):
        async with backend:
            with pytest.raises(BackendUnavailable, match="nothing was run"):
                await backend.exec("echo x", cwd="/", on_data=lambda _: None, timeout_s=0.05)
