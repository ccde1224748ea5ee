"""What a target can be made to suffer: no descriptors, stopped processes, a /tmp swept clean."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from backends.local import EngineBackend, LocalBackend
from backends.remote import bootstrap
from backends.remote.backend import RemoteBackend
from backends.remote.channel import Channel
from backends.remote.pipe import PipeChannel, open_pipe
from operations import BackendUnavailable, ConnectionLost, ExecResult, OperationError
from tests.end_to_end.processes import Process, descendants, marked, table

pytestmark = pytest.mark.anyio

KINDS = [LocalBackend, EngineBackend]
Kind = type[LocalBackend | EngineBackend]


async def run(place: Any, command: str, **options: Any) -> tuple[ExecResult, bytes]:
    chunks: list[bytes] = []
    result = await place.exec(command, cwd="/", on_data=chunks.append, **options)
    return result, b"".join(chunks)


async def tail(place: Any, command: str, **options: Any) -> ExecResult:
    result: ExecResult = await place.exec_tail(
        command,
        cwd="/",
        on_snapshot=lambda _: None,
        tail_bytes=100,
        keep_over_bytes=1000,
        keep_over_lines=100,
        **options,
    )
    return result


# What is asked for


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("timeout_s", [3e6, 1e10, 1e300])
async def test_a_time_limit_may_be_months(kind: Kind, timeout_s: float) -> None:
    """A selector that is asked to wait for so long raises, and took the engine with it."""
    async with kind() as place:
        result, printed = await run(place, "sleep 0.1; echo a", timeout_s=timeout_s)
    assert (result.exit_code, printed) == (0, b"a\n")


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"A=B": "x"}, "no variable can have the name 'A=B'"),
        ({"": "x"}, "no variable can have the name ''"),
        ({"A\0": "x"}, "no variable can have the name"),
        ({"A": "x\0y"}, "the value of the variable A holds a NUL byte"),
    ],
)
async def test_what_no_environment_can_hold_is_refused(env: dict[str, str], says: str) -> None:
    async with EngineBackend() as place:
        with pytest.raises(OperationError, match=says):
            await run(place, "echo a", env=env)


async def test_an_argument_with_a_nul_is_refused() -> None:
    async with EngineBackend() as place:
        with pytest.raises(OperationError, match="an argument holds a NUL byte"):
            await tail(place, "", argv=["echo", "a\0b"])


# Descriptors


def limited(limit: str) -> Callable[[], Any]:
    """Return what opens an engine that starts under a `ulimit`."""

    async def open_channel() -> Channel:
        argv = ["sh", "-c", f'ulimit {limit} && exec "$@"', "sh", *bootstrap.argv(sys.executable)]
        return await open_pipe(argv)

    return open_channel


async def many(place: RemoteBackend, count: int) -> list[ExecResult | OperationError]:
    outcomes: list[ExecResult | OperationError] = []

    async def one() -> None:
        try:
            outcomes.append((await run(place, "sleep 0.5"))[0])
        except OperationError as error:
            outcomes.append(error)

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(one)
    return outcomes


async def test_more_commands_than_the_usual_number_of_descriptors() -> None:
    """The engine uses what the user may have; a command gets the limits as they were."""
    async with RemoteBackend(limited("-Sn 64"), target="test:", cwd="/") as place:
        outcomes = await many(place, 60)
        assert {isinstance(one, ExecResult) and one.exit_code for one in outcomes} == {0}
        assert (await run(place, "ulimit -Sn"))[1] == b"64\n"


async def test_without_descriptors_a_command_is_refused_and_the_others_go_on() -> None:
    async with RemoteBackend(limited("-n 40"), target="test:", cwd="/") as place:
        outcomes = await many(place, 60)
        done = [one for one in outcomes if isinstance(one, ExecResult)]
        refused = [one for one in outcomes if isinstance(one, OperationError)]
        assert {one.exit_code for one in done} == {0}
        assert len(done) >= 5
        assert refused
        assert {type(one) for one in refused} == {BackendUnavailable}
        assert "open files" in str(refused[0])
        for _ in range(3):
            assert (await run(place, "echo a"))[1] == b"a\n"


# Files


@pytest.mark.parametrize("kind", KINDS)
async def test_a_setting_in_proc_is_written_in_place(kind: Kind, tmp_path: Path) -> None:
    """It is there though its folder knows of no new names, and gets what was asked and no more."""
    async with kind() as place:
        _, printed = await run(place, "sleep 60 >/dev/null 2>&1 & echo $!")
        path = f"/proc/{int(printed)}/oom_score_adj"
        written = await place.replace_file(path, b"77\n")
        assert (written.created, written.atomic) == (False, False)
        assert written.reason == "folder_not_writable"
        assert await place.read_file(path) == b"77\n"


async def test_output_is_kept_though_a_command_has_removed_what_was_kept() -> None:
    async with EngineBackend() as place:
        first = await tail(place, "seq 10000")
        assert first.kept_path is not None
        shutil.rmtree(Path(first.kept_path).parent)  # as `rm -rf /tmp/*` does
        second = await tail(place, "seq 10000")
        assert second.dropped is None
        assert second.kept_path is not None
        assert os.path.getsize(second.kept_path) == second.total_bytes
    assert not os.path.exists(os.path.dirname(second.kept_path))


# Stopped processes


class Opened:
    """Opens engines and remembers them."""

    def __init__(self) -> None:
        self.channels: list[PipeChannel] = []

    async def __call__(self) -> Channel:
        self.channels.append(await open_pipe(bootstrap.argv(sys.executable)))
        return self.channels[-1]

    def ours(self) -> dict[str, list[Process]]:
        """Return what makes up the last engine, by kind."""
        engine = self.channels[-1].pid
        found = [one for one in descendants(engine) if "sleep" not in one.command]
        spawner = [one for one in found if one.parent == engine]
        spawner_pids = {one.pid for one in spawner}
        kinds = {
            "engine": [table()[engine]],
            "spawner": spawner,
            "supervisors": [one for one in found if one.parent in spawner_pids],
        }
        return {**kinds, "all": [one for kind in kinds.values() for one in kind]}


@pytest.mark.parametrize("who", ["engine", "spawner", "supervisors", "all"])
async def test_a_stop_signal_keeps_nothing_alive(who: str) -> None:
    """A stopped process sees neither an end of file nor a deadline; a command can stop them all."""
    marker = f"600.{os.getpid()}{sum(who.encode())}"
    opened = Opened()
    async with RemoteBackend(opened, target="test:", cwd="/", lease_s=1.5) as place:
        await run(place, "true")
        with anyio.fail_after(40):
            async with anyio.create_task_group() as tasks:

                async def one() -> None:
                    try:
                        result, _ = await run(place, f"sleep {marker}; true", timeout_s=3)
                        assert result.ended == "timeout"
                    except ConnectionLost:
                        assert who in ("engine", "all")

                for _ in range(3):
                    tasks.start_soon(one)
                while len(marked(marker)) < 3:
                    await anyio.sleep(0.01)
                everything = opened.ours()
                for process in everything[who]:
                    with suppress(ProcessLookupError):
                        os.kill(process.pid, signal.SIGSTOP)
            with suppress(ConnectionLost):
                # A spare that was stopped takes a command; its time limit finds that out.
                await run(place, "true", timeout_s=1)
            result, printed = await run(place, "echo again", timeout_s=10)
            assert (result.ended, printed) == ("exited", b"again\n")
    with anyio.fail_after(15):
        while still(everything["all"]) or marked(marker):
            await anyio.sleep(0.05)


def still(processes: list[Process]) -> list[Process]:
    """Return which of them live."""
    now = table()
    return [
        one
        for one in processes
        if one.pid in now and now[one.pid].start == one.start and now[one.pid].state != "Z"
    ]
