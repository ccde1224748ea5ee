"""The local backend: files by a thread, commands by an engine that starts when it is needed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from backends.engine import reading, writing
from backends.local import EngineBackend, LocalBackend
from backends.local.env import child_environment, left_out
from operations import BackendUnavailable, GrepQuery, PathNotFound, Progress, SearchTimeout

pytestmark = pytest.mark.anyio


async def output(place: Any, command: str, **options: Any) -> str:
    chunks: list[bytes] = []
    await place.exec(command, cwd="/", on_data=chunks.append, **options)
    return b"".join(chunks).decode()


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(20):
        while not condition():  # nobody there could set an event
            await anyio.sleep(0.01)


async def test_files_need_no_entering(tmp_path: Path) -> None:
    place = LocalBackend(str(tmp_path))
    path = f"{tmp_path}/f"
    await place.write_file(path, b"one\ntwo\n")
    assert await place.read_file(path) == b"one\ntwo\n"
    window = await place.read_lines(path, start=2, max_lines=9, max_bytes=99)
    assert (window.data, window.total_lines) == (b"two\n", 2)
    versioned = await place.read_versioned(path)
    await place.replace_file(path, b"new", expected=versioned.version)
    listing = await place.list_directory(str(tmp_path), limit=9)
    assert [entry.name for entry in listing.entries] == ["f"]
    assert await place.exists(path)
    assert not await place.is_directory(path)
    assert await place.detect_image_mime_type(path) is None
    assert place.facts is not None
    with pytest.raises(PathNotFound):
        await place.access(f"{tmp_path}/g")
    with pytest.raises(BackendUnavailable, match="async with"):
        await output(place, "true")


async def test_the_engine_starts_with_the_first_command() -> None:
    async with LocalBackend() as place:
        assert await place.exists("/")
        assert place._engine._connection._client is None
        assert await output(place, "echo hi") == "hi\n"
        assert place._engine._connection._client is not None


async def test_a_killed_engine_does_not_matter_to_files_or_to_the_next_command() -> None:
    async with LocalBackend() as place:
        await output(place, "true")
        client = place._engine._connection._client
        assert client is not None
        os.kill(client._channel.pid, signal.SIGKILL)  # type: ignore[attr-defined]
        assert await place.exists("/")
        await until(lambda: client.lost)
        assert await output(place, "echo on") == "on\n"


async def test_facts_equal_those_of_the_same_machine_through_frames() -> None:
    async with LocalBackend() as local, EngineBackend() as engine:
        assert local.facts is not None
        assert engine.facts is not None
        assert local.facts.machine_id == engine.facts.machine_id
        assert local.facts.home == engine.facts.home
        assert local.facts.shell == engine.facts.shell
        assert local.facts.umask == engine.facts.umask


async def test_the_working_folder_is_the_current_one_by_default(tmp_path: Path) -> None:
    assert LocalBackend().cwd == os.getcwd()
    assert EngineBackend().cwd == os.getcwd()
    assert LocalBackend(str(tmp_path)).cwd == str(tmp_path)


async def test_a_search_runs_in_the_engine(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    async with LocalBackend() as place:
        found = await place.grep(GrepQuery(pattern="t.o", path=str(tmp_path)))
        assert [(m.path, m.line) for m in found.matches] == [("a.txt", 2)]
        assert (await place.glob("*.txt", str(tmp_path), limit=9)).paths == ("a.txt",)


# Cancellation


async def test_a_cancelled_write_settles_before_the_cancellation_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, leave = threading.Event(), threading.Event()
    order: list[str] = []
    real = writing.replace_file

    def slow(*args: Any, **options: Any) -> Any:
        entered.set()
        leave.wait(20)
        result = real(*args, **options)
        order.append("written")
        return result

    monkeypatch.setattr(writing, "replace_file", slow)
    place = LocalBackend()
    async with anyio.create_task_group() as tasks:

        async def write() -> None:
            try:
                await place.write_file(f"{tmp_path}/f", b"x")
            finally:
                order.append("cancelled")

        tasks.start_soon(write)
        await until(entered.is_set)
        tasks.cancel_scope.cancel()
        threading.Timer(0.1, leave.set).start()
    assert order == ["written", "cancelled"]


async def test_a_cancelled_read_is_left_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that hangs in a dead network mount does not hold up its caller."""
    leave = threading.Event()
    monkeypatch.setattr(reading, "access", lambda place, path: leave.wait(20))
    place = LocalBackend()
    began = time.monotonic()
    with anyio.move_on_after(0.1):
        await place.access("/x")
    assert time.monotonic() - began < 10
    leave.set()


async def test_progress_comes_on_the_loop_and_stops_with_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop_thread, ended = threading.get_ident(), threading.Event()
    seen: list[Progress] = []

    def scan(place: Any, path: Any, *args: Any, progress: Any, cancelled: Any) -> None:
        done = 0
        while not cancelled():
            done += 1
            progress(done, 100)
        progress(10**6, 100)
        ended.set()

    def on_progress(progress: Progress) -> None:
        assert threading.get_ident() == loop_thread
        seen.append(progress)

    monkeypatch.setattr(reading, "read_lines", scan)
    with anyio.move_on_after(0.2):
        await LocalBackend().read_lines(
            "/x", start=1, max_lines=1, max_bytes=1, on_progress=on_progress
        )
    await until(ended.is_set)
    assert len(seen) > 1
    assert [progress.done for progress in seen] == list(range(1, len(seen) + 1))


# Environment


def test_the_allow_list() -> None:
    host = {"PATH": "/bin", "LC_ALL": "C", "TOKEN": "x", "PYTHONPATH": "/p", "LCX": "y"}
    assert child_environment(host, inherit=False) == {"PATH": "/bin", "LC_ALL": "C"}
    assert child_environment(host, inherit=True) == host
    assert left_out(host, {"TOKEN": "given"}, inherit=False) == ("LCX", "PYTHONPATH")
    assert left_out(host, {}, inherit=True) == ()
    # What a shell or the engine sets for every command is not missed.
    assert left_out({"PWD": "/", "SHLVL": "2", "TERM": "xterm"}, {}, inherit=False) == ()


async def test_secrets_of_the_host_do_not_reach_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "geheim-4711")
    monkeypatch.setenv("LC_TIME", "C")
    look = "env; cat /proc/$PPID/environ /proc/$PPID/cmdline | tr '\\0' '\\n'"
    async with LocalBackend(env={"MINE": "1"}) as place:
        text = await output(place, look)
        assert "geheim-4711" not in text
        assert "API_TOKEN" not in text
        assert "LC_TIME=C" in text
        assert "MINE=1" in text
        assert "PATH=" in text
        assert await output(place, 'echo "$MINE$MORE"', env={"MORE": "2"}) == "12\n"


async def test_inherit_env_passes_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "geheim-4711")
    async with LocalBackend(inherit_env=True) as place:
        assert await output(place, "echo $API_TOKEN") == "geheim-4711\n"


async def test_a_login_environment_is_that_of_a_login_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ~/.profile sets is there, and what it prints does no harm."""
    (tmp_path / ".profile").write_text("export FROM_PROFILE=yes\necho hello from the profile\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/sh")
    async with LocalBackend(login_env=True) as place:
        assert await output(place, "echo $FROM_PROFILE") == "yes\n"


async def test_names_that_were_left_out_explain_a_missing_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CARGO_HOME", "/secret/value")
    async with LocalBackend() as place:
        missing = await place.exec("no-such-program", cwd="/", on_data=lambda data: None)
        assert missing.exit_code == 127
        assert "CARGO_HOME" in missing.left_out
        assert "PATH" not in missing.left_out
        assert "/secret/value" not in str(missing)
        fine = await place.exec("true", cwd="/", on_data=lambda data: None)
        assert fine.left_out == ()


async def test_nothing_in_the_current_folder_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine does not look there for its modules, whatever the environment says."""
    for name in ("selectors", "struct", "subprocess"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'hit')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    async with LocalBackend(inherit_env=True) as place:
        assert await output(place, "echo hi") == "hi\n"
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize("kind", [LocalBackend, EngineBackend])
async def test_a_pattern_that_backtracks_for_ever_ends_by_the_time_limit(
    kind: type[LocalBackend | EngineBackend], tmp_path: Path
) -> None:
    """Python's `re` cannot be interrupted: what it runs in is killed, and the next search works."""
    (tmp_path / "f").write_text("a" * 60 + "b\n")
    async with kind(str(tmp_path), settings={"ripgrep": False}) as place:
        with pytest.raises(SearchTimeout):
            await place.grep(GrepQuery(pattern="(a+)+$", path=str(tmp_path), timeout_s=0.5))
        found = await place.grep(GrepQuery(pattern="b$", path=str(tmp_path)))
        assert (len(found.matches), found.engine) == (1, "python")
