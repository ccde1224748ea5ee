"""Commands over lanes: what is left of them when they, we or the target end."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path
from typing import Any

import anyio
import pytest

from backends.remote import shell_commands
from backends.remote.shell_backend import ShellBackend
from operations import ConnectionLost, ExecResult, OperationUnsupported, OutputSnapshot, TooLarge
from tests.backends.remote.shells import PRESENT, Shells

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]


@pytest.fixture(params=PRESENT)
def shells(request: pytest.FixtureRequest) -> Shells:
    return Shells(request.param)


def marker() -> str:
    """Return a number of seconds that no other `sleep` on this machine has."""
    return f"4{uuid.uuid4().int % 10**6:06}.{os.getpid()}"


def sleeping(seconds: str) -> list[int]:
    """Return who sleeps for so long."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if seconds.encode() in words and b"sleep" in words[-3:-1] + words[:1]:
                found.append(int(entry.name))
    return found


async def until(condition: Any, limit_s: float = 15) -> None:
    with anyio.fail_after(limit_s):
        while not condition():
            await anyio.sleep(0.02)


async def run(backend: ShellBackend, command: str, **options: Any) -> tuple[ExecResult, bytes]:
    chunks: list[bytes] = []
    with anyio.fail_after(60):
        result = await backend.exec(command, **{"cwd": "/", "on_data": chunks.append, **options})
    return result, b"".join(chunks)


async def test_a_lane_is_used_again_after_a_command(shells: Shells) -> None:
    async with shells.backend() as backend:
        for number in range(10):
            result, output = await run(backend, f"echo {number}; exit {number}")
            assert (result.exit_code, output) == (number, b"%d\n" % number)
    # Some are opened ahead.
    assert len(shells.opened) <= 4


@pytest.mark.parametrize(
    "output", [b"\x1e", b"\x1eabc R 0\n", b"no newline", bytes(range(256)) * 2000, b"\n" * 1000]
)
async def test_output_is_told_byte_for_byte(shells: Shells, tmp_path: Path, output: bytes) -> None:
    (tmp_path / "f").write_bytes(output)
    async with shells.backend() as backend:
        result, said = await run(backend, f"cat {tmp_path}/f")
    assert said == output
    assert (result.total_bytes, result.total_lines) == (len(output), output.count(b"\n"))


@pytest.mark.parametrize("status", [0, 1, 2, 127, 128, 200, 255])
async def test_an_exit_status_is_told(shells: Shells, status: int) -> None:
    async with shells.backend() as backend:
        result, _ = await run(backend, f"exit {status}")
    assert (result.ended, result.exit_code) == ("exited", status)


@pytest.mark.parametrize("name", ["HUP", "INT", "KILL", "TERM", "SEGV", "USR1"])
async def test_a_signal_is_told(shells: Shells, name: str) -> None:
    number = getattr(signal, f"SIG{name}")
    async with shells.backend() as backend:
        result, _ = await run(backend, f"kill -{name} $$")
    assert (result.ended, result.signal) == ("signalled", number)


async def test_a_syntax_error_is_a_status_with_its_words(shells: Shells) -> None:
    async with shells.backend() as backend:
        result, output = await run(backend, "if then fi; echo )")
    assert result.exit_code not in (0, None)
    assert output


async def test_the_command_is_no_part_of_the_lanes_shell(shells: Shells) -> None:
    """Neither functions nor variables nor descriptors of the lane are there."""
    command = "ls /proc/self/fd; set; command -v answer; echo W=$W T=$T RC=$?; type replace"
    async with shells.backend() as backend:
        _, output = await run(backend, command)
        assert b"\nW= T=" in output
        assert b"find_prints" not in output
        fds = output.split(b"\n")[:5]
        assert b"4" not in fds
        assert b"9" not in fds
        _, output = await run(backend, "yes | head -n 1; cd /tmp; umask 0; exit 1")
        assert output == b"y\n"
        assert b"0000" not in (await run(backend, "umask"))[1]


async def test_the_locale_is_the_targets_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Shells("sh").backend(env={"LC_ALL": "C.UTF-8"}) as backend:
        assert (await run(backend, "echo $LC_ALL"))[1] == b"C.UTF-8\n"
    async with Shells("sh").backend() as backend:
        assert (await run(backend, "echo ${LC_ALL-unset}"))[1] == b"unset\n"


@pytest.mark.parametrize("name", ["a-b", "1x", "", "A=B", "UID", "REMOTEHANDS_COMMAND_ID"])
async def test_a_variable_that_no_shell_can_set_is_refused(shells: Shells, name: str) -> None:
    async with shells.backend() as backend:
        with pytest.raises(OperationUnsupported):
            await run(backend, "true", env={name: "x"})


async def test_a_command_over_the_limit_is_refused(shells: Shells) -> None:
    async with shells.backend() as backend:
        with pytest.raises(TooLarge):
            await run(backend, ":" * (11 << 20))
        result, output = await run(backend, f": {'x' * (9 << 20)}; echo ran")
    assert (result.exit_code, output) == (0, b"ran\n")


async def test_what_the_receiver_raises_is_the_callers(shells: Shells) -> None:
    seconds = marker()

    def fail(chunk: bytes) -> None:
        raise ValueError(chunk)

    async with shells.backend() as backend:
        with pytest.raises(ValueError, match="hi"):
            await run(backend, f"echo hi; sleep {seconds}", on_data=fail)
        assert not sleeping(seconds)
        assert (await run(backend, "echo on"))[1] == b"on\n"


# What is left ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "sleep {t}",
        "trap '' TERM; sleep {t}; sleep {t}",
        "setsid sleep {t} & sleep {t}",
        "(setsid sh -c 'sleep {t} & sleep {t}' &); sleep {t}",
        "env -i setsid sleep {t} & wait",
        "(sleep {t} >/dev/null 2>&1 </dev/null &); sleep {t}",
    ],
)
async def test_a_time_limit_ends_the_whole_tree(shells: Shells, command: str) -> None:
    seconds = marker()
    async with shells.backend() as backend:
        result, _ = await run(backend, command.format(t=seconds), timeout_s=1.0)
        assert not sleeping(seconds)
    assert (result.ended, result.killed, result.survivors) == ("timeout", "killed", ())
    assert result.duration_s < 5


@pytest.mark.xfail(strict=True, reason="without a subreaper, what nobody is related to is not seen")
async def test_what_left_session_parents_and_environment_is_ended_too() -> None:
    seconds = marker()
    command = f"(env -i setsid sleep {seconds} >/dev/null 2>&1 &); sleep 0.5; sleep {seconds}1"
    try:
        async with Shells("sh").backend() as backend:
            await run(backend, command, timeout_s=1.0)
            assert not sleeping(seconds)
    finally:
        for pid in sleeping(seconds):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("how", ["held", "closed", "setsid"])
async def test_closing_ends_what_went_into_the_background(shells: Shells, how: str) -> None:
    seconds = marker()
    command = {
        "held": f"sleep {seconds} & echo hi",
        "closed": f"sleep {seconds} >/dev/null 2>&1 & echo hi",
        "setsid": f"setsid sleep {seconds} >/dev/null 2>&1 & echo hi",
    }[how]
    async with shells.backend() as backend:
        result, output = await run(backend, command)
        assert (output, result.exit_code) == (b"hi\n", 0)
        assert result.background == (1 if how == "held" else 0)
        assert result.duration_s < 5
        for number in range(12):
            assert (await run(backend, f"exit {number}"))[0].exit_code == number
        await until(lambda: sleeping(seconds))
    assert not sleeping(seconds)


async def test_background_processes_stay_if_they_are_to(shells: Shells) -> None:
    seconds = marker()
    async with shells.backend(keep_background=True) as backend:
        await run(backend, f"sleep {seconds} >/dev/null 2>&1 & sleep {seconds} & echo hi")
    left = sleeping(seconds)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert len(left) == 2


async def test_many_lanes_at_once_end_no_background_process(shells: Shells) -> None:
    """Lanes that are one too many are closed, which must not end what their commands left."""
    seconds = marker()
    async with shells.backend() as backend:
        async with anyio.create_task_group() as group:
            for _ in range(14):
                command = f"sleep 0.5; sleep {seconds} >/dev/null 2>&1 &"
                group.start_soon(run, backend, command)
        await anyio.sleep(0.5)
        assert len(sleeping(seconds)) == 14
    assert not sleeping(seconds)


async def test_the_death_of_our_process_ends_its_commands(tmp_path: Path) -> None:
    """The end of a lane's stdin is all that the target sees of it."""
    seconds = marker()
    script = f"""
        import anyio
        from tests.backends.remote.shells import Shells

        async def main():
            async with Shells("sh").backend() as backend:
                async with anyio.create_task_group() as group:
                    trapped = "trap '' TERM; setsid sleep {seconds} & wait"
                    for command in ("sleep {seconds}", trapped):
                        group.start_soon(lambda c=command: backend.exec(c, cwd="/", on_data=print))

        anyio.run(main)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT)
    try:
        await until(lambda: len(sleeping(seconds)) == 2, 30)
    finally:
        process.kill()
        process.wait()
    await until(lambda: not sleeping(seconds))


async def test_a_command_outlives_the_shell_of_its_lane(shells: Shells) -> None:
    """A `pkill sh` of somebody's costs lanes, not results."""
    async with shells.backend() as backend:

        async def kill_lanes() -> None:
            await anyio.sleep(0.5)
            for channel in shells.opened:
                os.kill(channel.pid, signal.SIGKILL)

        async with anyio.create_task_group() as group:
            group.start_soon(kill_lanes)
            result, output = await run(backend, "sleep 1; echo done; exit 3")
        assert (result.exit_code, output) == (3, b"done\n")
        assert (await run(backend, "echo on"))[1] == b"on\n"


async def test_the_end_of_a_channel_is_a_lost_connection_and_ends_the_command(
    shells: Shells,
) -> None:
    seconds = marker()
    async with shells.backend() as backend:

        async def close_channels() -> None:
            await until(lambda: sleeping(seconds))
            for channel in shells.opened:
                await channel.close()

        async with anyio.create_task_group() as group:
            group.start_soon(close_channels)
            with pytest.raises(ConnectionLost):
                await run(backend, f"sleep {seconds}")
        await until(lambda: not sleeping(seconds))
        assert (await run(backend, "echo on"))[1] == b"on\n"


async def test_without_proc_a_kill_is_unconfirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = marker()
    original = shell_commands.Processes
    monkeypatch.setattr(
        shell_commands, "Processes", lambda lanes, has_proc: original(lanes, has_proc=False)
    )
    async with Shells("sh").backend() as backend:
        result, _ = await run(backend, f"sleep {seconds}", timeout_s=0.3)
        assert (result.ended, result.killed) == ("timeout", "unconfirmed")
        # The lane's end does it.
        await until(lambda: not sleeping(seconds))


async def test_no_lane_runs_on_after_closing(shells: Shells) -> None:
    async with shells.backend() as backend:
        await run(backend, "sleep 60", timeout_s=0.2)
        await run(backend, "true")
    for channel in shells.opened:
        assert channel._process.poll() is not None


# Kept output -----------------------------------------------------------------------------


async def tail(backend: ShellBackend, command: str, **options: Any) -> Any:
    snapshots: list[OutputSnapshot] = []
    limits = {"tail_bytes": 1000, "keep_over_bytes": 5000, "keep_over_lines": 3000}
    with anyio.fail_after(60):
        result = await backend.exec_tail(
            command, **{"cwd": "/", "on_snapshot": snapshots.append, **limits, **options}
        )
    return result, snapshots


async def test_kept_output_goes_with_the_backend(shells: Shells, tmp_path: Path) -> None:
    async with shells.backend() as backend:
        await tail(backend, "echo small")
        result, _ = await tail(backend, "seq 1 5000")
        kept = Path(result.kept_path)
        folder = kept.parent
        assert kept.read_bytes() == b"".join(b"%d\n" % n for n in range(1, 5001))
        assert folder.stat().st_mode & 0o777 == 0o700
        await until(lambda: os.listdir(folder) == [kept.name])
    assert not folder.exists()


async def test_kept_output_stays_if_it_is_to(shells: Shells) -> None:
    async with shells.backend(keep_output=True) as backend:
        result, _ = await tail(backend, "seq 1 5000")
    kept = Path(result.kept_path)
    assert kept.stat().st_size == result.kept_bytes
    kept.unlink()
    kept.parent.rmdir()


async def test_kept_output_is_capped_and_the_command_goes_on(shells: Shells) -> None:
    async with shells.backend(kept_cap=1 << 20) as backend:
        result, snapshots = await tail(backend, "yes | head -c 3000000; echo end")
        assert (result.exit_code, result.total_bytes) == (0, 3_000_004)
        assert snapshots[-1].data.endswith(b"end\n")
        assert (1 << 20) - 65_536 <= result.kept_bytes <= 2 << 20


async def test_the_output_of_a_background_process_is_kept(shells: Shells) -> None:
    async with shells.backend() as backend:
        result, _ = await tail(backend, "(sleep 1.5; echo late) & echo early")
        assert result.background >= 1
        await until(lambda: Path(result.kept_path).read_bytes() == b"early\nlate\n")


@pytest.mark.parametrize("size", [1, 100_000, 3_000_000])
async def test_stdin_reaches_the_command_whole(shells: Shells, size: int) -> None:
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    async with shells.backend() as backend:
        result, snapshots = await tail(backend, "sha256sum", stdin=data)
        assert hashlib.sha256(data).hexdigest().encode() in snapshots[-1].data
        # What is not read is in nobody's way.
        result, _ = await tail(backend, "head -c 1 >/dev/null; echo hi", stdin=data)
        assert result.exit_code == 0
        assert (await run(backend, "echo on"))[1] == b"on\n"


async def test_flood_leaves_the_loop_free_and_memory_bounded(shells: Shells) -> None:
    async with shells.backend() as backend:
        longest = 0.0
        over = anyio.Event()

        async def watch_the_loop() -> None:
            nonlocal longest
            while not over.is_set():
                began = anyio.current_time()
                await anyio.sleep(0.01)
                longest = max(longest, anyio.current_time() - began)

        async with anyio.create_task_group() as group:
            group.start_soon(watch_the_loop)
            result, snapshots = await tail(backend, "yes", timeout_s=1.0)
            over.set()
    assert result.ended == "timeout"
    assert result.total_bytes > 1_000_000
    assert len(snapshots) < 30
    assert longest < 1.0
