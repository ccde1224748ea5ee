"""Faults that users met in other tool kits with containers and far ends, and near ones."""

# ruff: noqa: N802 - a test is named after the report that it stands for

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest

from backends.docker import DockerBackend
from operations import BackendUnavailable, OperationError
from tests.conformance.places import Place, refused, said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]


@pytest.fixture
def anyio_backend() -> str:
    """Run under one loop: the conformance suite has containers under both."""
    return "asyncio"


async def in_thread(function: Callable[..., Any], *args: Any) -> Any:
    return await anyio.to_thread.run_sync(lambda: function(*args))


def place_of(backend: Any) -> Place:
    """Return a place whose files only tools touch."""
    return Place(backend, "/work", None, "/root")  # type: ignore[arg-type]


async def test_B49_all_tools_work_by_sh_where_there_is_no_bash(
    container: Callable[..., str],
) -> None:
    name = container("remotehands-test/busybox")
    async with DockerBackend.attach(name, workdir="/work") as backend:
        place = place_of(backend)
        assert "y" in said(await place.run("bash", command="x=1; [ $x = 1 ] && echo y"))
        said(await place.run("write", path="d/f.txt", content="one\ntwo\n"))
        edits = [{"old_text": "two", "new_text": "three"}]
        said(await place.run("edit", path="d/f.txt", edits=edits))
        assert "three" in said(await place.run("read", path="d/f.txt"))
        assert "d/f.txt:2: three" in said(await place.run("grep", pattern="three"))
        assert "d/f.txt" in said(await place.run("find", pattern="*.txt"))
        assert "d/" in said(await place.run("ls"))


async def test_B49_an_image_without_a_shell_is_refused_and_the_shell_named(
    container: Callable[..., str], api: Any
) -> None:
    name = container("remotehands-test/busybox")
    created = await in_thread(api.exec_create, name, ["rm", "/bin/sh"])
    await in_thread(api.exec_start, created["Id"])
    with pytest.raises(BackendUnavailable, match="sh"):
        async with DockerBackend.attach(name):
            pass


async def test_B52_a_container_that_has_stopped_is_named_and_works_once_started(
    container: Callable[..., str], api: Any
) -> None:
    name = container()
    async with DockerBackend.attach(name, workdir="/work", connect_timeout_s=5) as backend:
        place = place_of(backend)
        said(await place.run("write", path="f", content="x\n"))
        await in_thread(api.kill, name)
        with anyio.fail_after(60):
            told = refused(await place.run("read", path="f"))
            if "connection" in told and "stopped" not in told:  # what was lost is told first
                told = refused(await place.run("read", path="f"))
        assert "stopped" in told
        await in_thread(api.start, name)
        with anyio.fail_after(60):
            assert "x" in said(await place.run("read", path="f"))


async def test_B52_a_container_that_is_removed_during_a_command_is_gone(
    container: Callable[..., str], api: Any
) -> None:
    name = container()
    async with (
        DockerBackend.attach(name, workdir="/work") as backend,
        anyio.create_task_group() as tasks,
    ):
        place = place_of(backend)

        async def remove() -> None:
            await place.run("bash", command="true")
            await in_thread(lambda: api.remove_container(name, force=True))

        tasks.start_soon(remove)
        with anyio.fail_after(30):
            refused(await place.run("bash", command="sleep 60"), "connection_lost")
            refused(await place.run("bash", command="true"), "unavailable")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"path": "f"}),
        ("write", {"path": "f", "content": "y"}),
        ("bash", {"command": "true"}),
        ("grep", {"pattern": "x"}),
        ("ls", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_B52_a_container_that_is_paused_is_named_within_ten_seconds(
    container: Callable[..., str], api: Any, tool: str, arguments: dict[str, Any]
) -> None:
    name = container()
    async with DockerBackend.attach(name, workdir="/work") as backend:
        place = place_of(backend)
        said(await place.run("write", path="f", content="x\n"))
        await in_thread(api.pause, name)
        with anyio.fail_after(10):
            told = refused(await place.run(tool, **arguments), "connection_lost")
        assert "is paused" in told
        await in_thread(api.unpause, name)
        said(await place.run("read", path="f"))


@contextmanager
def silent_engine(path: str) -> Iterator[None]:
    """Take connections at a unix socket and say nothing."""
    taken = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(8)

        def take() -> None:
            while True:
                try:
                    taken.append(listener.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=take)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            for connection in taken:
                connection.close()


async def test_B80_an_engine_that_says_nothing_is_an_error_and_the_loop_lives(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "engine.sock")
    turns = 0
    with silent_engine(path):
        async with anyio.create_task_group() as tasks:

            async def live() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await anyio.sleep(0.01)

            tasks.start_soon(live)
            backend = DockerBackend.attach("c", engine=f"unix://{path}", connect_timeout_s=1)
            with anyio.fail_after(30), pytest.raises(BackendUnavailable):
                async with backend:
                    pass
            assert turns > 5
            with anyio.fail_after(30), anyio.move_on_after(0.2) as scope:
                async with DockerBackend.attach("c", engine=f"unix://{path}"):
                    pass
            assert scope.cancelled_caught
            tasks.cancel_scope.cancel()


def test_B80_no_exit_waits_for_an_engine_that_says_nothing(tmp_path: Path) -> None:
    """The client's own time limit, half a minute, is not what a Ctrl-C waits for."""
    path = str(tmp_path / "engine.sock")
    code = (
        "import anyio, sys; from backends.docker import DockerBackend\n"
        "async def main():\n"
        "    with anyio.move_on_after(1):\n"
        "        async with DockerBackend.run('i', engine=sys.argv[1]): pass\n"
        "anyio.run(main)"
    )
    with silent_engine(path):
        argv = [sys.executable, "-c", code, f"unix://{path}"]
        assert subprocess.run(argv, check=False, timeout=20).returncode == 0


@pytest.mark.slow
async def test_B81_a_quiet_command_outlives_the_clients_own_time_limit(
    container: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK's sockets give up after some time of silence: 60 seconds, here 2."""
    monkeypatch.setattr("backends.docker.daemon._SDK_TIMEOUT_S", 2)
    async with DockerBackend.attach(container(), workdir="/work") as backend:
        message = await place_of(backend).run("bash", command="sleep 5; echo over", timeout=120)
        assert "over" in said(message)


@pytest.mark.parametrize("junk", ["motd", "0", "motd\\n"])
async def test_B89_junk_before_a_size_makes_no_file_look_empty(
    container: Callable[..., str], junk: str
) -> None:
    """What a program of the target's prints is a size, or an error, and never nothing."""
    name = await in_thread(container, "remotehands-test/minimal")
    script = f"mkdir -p /work/bin; printf 'a\\nb\\nc\\n' >/work/f; cd /work/bin; printf '%s\\n' \
        '#!/bin/sh' 'printf \"{junk}\"' 'exec /usr/bin/stat \"$@\"' >stat; chmod 755 stat"
    async with DockerBackend.attach(name, workdir="/work") as backend:
        said(await place_of(backend).run("bash", command=script))
    env = {"PATH": "/work/bin:/usr/bin:/bin"}
    async with DockerBackend.attach(name, workdir="/work", env=env) as backend:
        message = await place_of(backend).run("read", path="f")
        assert message.is_error or message.text == "a\nb\nc", message


async def test_B91_commands_leave_no_descriptor_open(container: Callable[..., str]) -> None:
    name = container()

    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    async with DockerBackend.attach(name, workdir="/work") as backend:
        place = place_of(backend)
        said(await place.run("bash", command="true"))
        before = open_files()
        for round_ in range(10):
            calls = [("bash", {"command": "true"})] * 15
            calls += [("bash", {"command": "sleep 60", "timeout": 0.05})] * 3
            await place.batch(*calls, max_concurrency=8)
            with anyio.move_on_after(0.01 * round_):
                await place.run("bash", command="sleep 60")
        assert open_files() - before < 5
    assert open_files() <= before


async def test_B100_orphans_do_not_stay_as_zombies() -> None:
    """In a container of ours something reaps what its parents have left."""
    count = "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '"
    try:
        async with DockerBackend.run("remotehands-test/python") as backend:
            place = place_of(backend)
            place.cwd = backend.cwd
            commands = [("bash", {"command": "(sleep 0.1 &) ; echo started"})] * 20
            for message in await place.batch(*commands, max_concurrency=8):
                said(message)
            with anyio.fail_after(15):
                while (await place.run("bash", command=f"{count} || true")).text.split()[0] != "0":
                    await anyio.sleep(0.1)
    except BackendUnavailable as error:
        pytest.skip(str(error))


async def test_B46_a_write_that_is_cut_leaves_the_old_content(
    container: Callable[..., str], api: Any
) -> None:
    name = container()
    async with DockerBackend.attach(name, workdir="/work") as backend:
        await backend.write_file("/work/f", b"old" * 1_000_000)
        with anyio.move_on_after(0.02):
            await backend.replace_file("/work/f", b"new!" * 5_000_000)
        assert await backend.read_file("/work/f") in (b"old" * 1_000_000, b"new!" * 5_000_000)
        await in_thread(api.kill, name)
        with pytest.raises(OperationError):
            await backend.write_file("/work/f", b"after")
        await in_thread(api.start, name)
        await backend.replace_file("/work/f", b"short")
        assert await backend.read_file("/work/f") == b"short"
        listing = await backend.list_directory("/work", limit=10)
        assert [entry.name for entry in listing.entries] == ["f"]
