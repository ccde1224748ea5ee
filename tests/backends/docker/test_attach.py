"""Containers that somebody else runs."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest

from backends.docker import DockerBackend, daemon
from operations import BackendUnavailable, ConnectionLost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]

_SERVICE = "com.docker.compose.service=locked"


async def said(backend: Any, command: str, **options: Any) -> str:
    """Return what a command prints."""
    output: list[bytes] = []
    result = await backend.exec(command, cwd="/", on_data=output.append, **options)
    assert result.ended == "exited", result
    return b"".join(output).decode().strip()


async def eventually(condition: Callable[[], Any], limit_s: float) -> None:
    """Wait until a condition of the Docker engine's holds, which nothing tells us."""
    with anyio.fail_after(limit_s):
        while not await in_thread(condition):
            await anyio.sleep(0.05)


async def in_thread(function: Callable[..., Any], *args: Any) -> Any:
    return await anyio.to_thread.run_sync(lambda: function(*args))


async def test_a_container_is_found_by_name_and_id(container: Callable[..., str], api: Any) -> None:
    name = container()
    identity = api.inspect_container(name)["Id"]
    machines = set()
    for spelled in (name, identity, identity[:12]):
        async with DockerBackend.attach(spelled) as backend:
            await backend.replace_file("/work/a/b", b"\0\xff", make_parents=True)
            assert await backend.read_file("/work/a/b") == b"\0\xff"
            assert backend.cwd == "/work"
            machines.add(backend.facts.machine_id)
    assert machines == {f"docker:{identity}"}


async def test_a_compose_service_is_found_by_its_name(
    api: Any, compose_containers: Mapping[str, str]
) -> None:
    of_this_run = compose_containers["locked"]
    others = {c["Id"] for c in api.containers(filters={"label": _SERVICE})} - {of_this_run}
    if others:
        with pytest.raises(BackendUnavailable, match=r"containers: .*locked"):
            async with DockerBackend.attach("locked"):
                pass
        pytest.skip("another run of the tests has a service of this name")
    async with DockerBackend.attach("locked") as backend:
        assert await said(backend, "id -u; cat /proc/self/status | grep CapEff") == (
            "1000\nCapEff:\t0000000000000000"
        )


async def test_a_service_counts_more_than_an_id_that_begins_with_its_name(
    container: Callable[..., str], api: Any
) -> None:
    identity = api.inspect_container(container())["Id"]
    prefix = identity[:8]
    async with DockerBackend.attach(prefix) as backend:
        assert backend.container_id == identity
    service = container(labels={"com.docker.compose.service": prefix})
    async with DockerBackend.attach(prefix) as backend:
        assert backend.container_id == api.inspect_container(service)["Id"]


@pytest.mark.parametrize("name", [".", "..", "../json"])
async def test_what_is_no_name_is_no_container(name: str) -> None:
    with pytest.raises(BackendUnavailable, match="no container and no compose service"):
        async with DockerBackend.attach(name):
            pass


async def test_cancelled_backends_give_the_engine_back(container: Callable[..., str]) -> None:
    name = container("remotehands-test/busybox")
    for number in range(3):
        with anyio.move_on_after(0.1 * number):
            async with DockerBackend.attach(name):
                await anyio.sleep(60)
    assert daemon._shared.get().daemons == {}


async def test_user_folder_and_variables_are_as_told(container: Callable[..., str]) -> None:
    options = {"user": "1234:99", "workdir": "/tmp", "env": {"HOME": "/tmp/me", "PAGER": "most"}}
    async with DockerBackend.attach(container(), **options) as backend:
        assert backend.cwd == "/tmp"
        assert backend.facts.home == "/tmp/me"
        assert await said(backend, "id -u; id -g; echo $PAGER") == "1234\n99\nmost"
        await backend.replace_file("~/x", b"x", make_parents=True)
        assert await said(backend, "cat /tmp/me/x; stat -c %u /tmp/me/x") == "x1234"


async def test_a_removed_working_folder_does_not_hinder(container: Callable[..., str]) -> None:
    name = container(working_dir="/work/gone")
    async with DockerBackend.attach(name) as backend:
        await said(backend, "rm -r /work/gone")
    async with DockerBackend.attach(name) as backend:
        assert backend.cwd == "/work/gone"
        assert not await backend.exists("/work/gone")


async def test_what_runs_nothing_is_unavailable_and_named(
    container: Callable[..., str], api: Any
) -> None:
    name = container()

    async def refused() -> str:
        with pytest.raises(BackendUnavailable) as caught:
            async with DockerBackend.attach(name):
                pass
        return str(caught.value)

    await in_thread(api.pause, name)
    assert "is paused" in await refused()
    await in_thread(api.unpause, name)
    await in_thread(api.kill, name)
    assert "has stopped (exit status 137)" in await refused()
    await in_thread(api.remove_container, name)
    assert f"no container and no compose service '{name}'" in await refused()


@pytest.mark.parametrize("image", ["minimal", "busybox"])
async def test_a_container_without_python_works_over_its_shell(
    container: Callable[..., str], image: str
) -> None:
    name = container(f"remotehands-test/{image}")
    async with DockerBackend.attach(name, workdir="/tmp") as backend:
        assert backend.facts is not None
        assert "shell_fallback" in backend.facts.capabilities
        assert backend.facts.machine_id == f"docker:{backend.container_id}"
        await backend.write_file("/tmp/f", b"content")
        assert await backend.read_file("/tmp/f") == b"content"
        result = await backend.exec(
            "setsid sleep 71 & sleep 71", cwd="/", on_data=print, timeout_s=0.5
        )
        assert (result.ended, result.killed) == ("timeout", "killed")


@pytest.mark.parametrize(
    ("end", "told"), [("kill", "has stopped .exit status 137"), ("remove", "remov")]
)
async def test_the_end_of_a_container_during_a_call(
    container: Callable[..., str], api: Any, end: str, told: str
) -> None:
    name = container()
    ends = {"kill": api.kill, "remove": lambda name: api.remove_container(name, force=True)}
    async with DockerBackend.attach(name) as backend, anyio.create_task_group() as tasks:

        async def end_it() -> None:
            await backend.read_file("/etc/passwd")
            await in_thread(ends[end], name)

        tasks.start_soon(end_it)
        with anyio.fail_after(20), pytest.raises(ConnectionLost, match=told):
            await backend.exec("sleep 60", cwd="/", on_data=lambda _: None)
        with (
            anyio.fail_after(20),
            pytest.raises(BackendUnavailable, match=r"stopped|no container|remov"),
        ):
            await backend.read_file("/etc/passwd")
        if end == "kill":
            await in_thread(api.start, name)
            assert await backend.read_file("/etc/passwd")


async def test_a_pause_ends_calls_in_flight_and_a_resumed_container_serves_again(
    container: Callable[..., str], api: Any
) -> None:
    name = container()
    async with DockerBackend.attach(name, lease_s=3) as backend:
        await in_thread(api.pause, name)
        with anyio.fail_after(20), pytest.raises(ConnectionLost, match="is paused"):
            await backend.read_file("/etc/passwd")
        with anyio.fail_after(20), pytest.raises(BackendUnavailable, match="is paused"):
            await backend.read_file("/etc/passwd")
        await in_thread(api.unpause, name)
        assert await backend.read_file("/etc/passwd")


@pytest.fixture
def silent_engine(tmp_path: Path) -> Iterator[str]:
    """Give the address of a socket that takes connections and says nothing."""
    path = str(tmp_path / "docker.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(16)
        yield f"unix://{path}"


async def test_an_engine_that_says_nothing_is_unavailable_by_the_deadline(
    silent_engine: str,
) -> None:
    backend = DockerBackend.attach("any", engine=silent_engine, connect_timeout_s=0.5)
    with anyio.fail_after(10), pytest.raises(BackendUnavailable, match=r"within 0.5 seconds"):
        async with backend:
            pass


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        ("unix:///nowhere/docker.sock", "No such file"),
        ("tcp://127.0.0.1:1", "Connection refused"),
        ("ssh://host", "not supported"),
        ("npipe:////./pipe/docker", "not supported"),
    ],
)
async def test_an_engine_that_cannot_be_had_is_named(engine: str, reason: str) -> None:
    with pytest.raises(BackendUnavailable, match=reason):
        async with DockerBackend.attach("any", engine=engine):
            pass


async def test_operations_leave_nothing_behind(container: Callable[..., str], api: Any) -> None:
    """No descriptor, thread or exec for each of them; nothing after the close."""
    name = container()
    before = len(os.listdir("/proc/self/fd"))
    async with DockerBackend.attach(name) as backend:

        async def some() -> None:
            for index in range(70):
                await backend.write_file(f"/work/{index % 7}", b"x" * 1000)
                await backend.read_file(f"/work/{index % 7}")
                await backend.exec("true", cwd="/", on_data=lambda _: None)

        await backend.exec("true", cwd="/", on_data=lambda _: None)
        open_now, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
        await some()
        assert len(os.listdir("/proc/self/fd")) <= open_now
        assert threading.active_count() <= threads
        assert len(api.inspect_container(name)["ExecIDs"] or ()) == 1
    assert len(os.listdir("/proc/self/fd")) <= before + 2  # the SDK client of the test itself
    await eventually(lambda: not api.inspect_container(name)["ExecIDs"], 10)


async def test_many_commands_at_once(container: Callable[..., str]) -> None:
    async with DockerBackend.attach(container()) as backend, anyio.create_task_group() as tasks:
        answers: list[str] = []

        async def one(number: int) -> None:
            answers.append(await said(backend, f"sleep 0.2; echo {number}"))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for number in range(32):
                    tasks.start_soon(one, number)
    assert sorted(answers, key=int) == [str(number) for number in range(32)]


async def test_a_flood_does_not_hold_up_other_operations(container: Callable[..., str]) -> None:
    async with DockerBackend.attach(container()) as backend:
        stop = anyio.Event()
        got = 0

        def take(chunk: bytes) -> None:
            nonlocal got
            got += len(chunk)

        async with anyio.create_task_group() as tasks:

            async def flood() -> None:
                await backend.exec("yes", cwd="/", on_data=take, stop=stop)

            tasks.start_soon(flood)
            await eventually(lambda: got >= 1 << 20, 20)
            for _ in range(20):
                with anyio.fail_after(5):
                    await backend.read_file("/etc/passwd")
            stop.set()
        assert await said(backend, "grep -lx yes /proc/[0-9]*/comm | wc -l") == "0"


#: A command with its marker, and how many processes carry it; some do all to escape.
ESCAPES = {
    "sleep": ("sleep {m}", 1),
    "ignores TERM": ("trap '' TERM; sleep {m} & bash -c 'sleep {m} & wait' & wait", 2),
    "setsid": ("setsid sleep {m} & wait", 1),
    "double fork": ("(sleep {m} &); (sh -c 'setsid sleep {m} &' &); sleep {m}", 3),
    "scrubbed": ("env -i setsid sh -c 'trap \"\" TERM HUP; sleep {m} & wait' & wait", 1),
    "storm": ("i=0; while [ $i -lt 100 ]; do sleep {m} & i=$((i+1)); done; wait", 100),
}


#: The pid of the program at the top of those above the shell: the engine.
TOPMOST = "p=$PPID; while [ $p != 0 ]; do q=$p; p=$(cut -d' ' -f4 /proc/$p/stat); done; echo $q"


def _marked(api: Any, name: str, marker: str) -> int:
    """Count processes by the Docker engine's own means, which see all of the container."""
    rows = api.top(name, "-eo pid,stat,args")["Processes"]
    return sum(row[2] == f"sleep {marker}" and row[1][0] != "Z" for row in rows)


@pytest.mark.parametrize("way", ["timeout", "stop", "cancel", "close", "engine dies"])
async def test_nothing_of_a_command_outlives_it(
    container: Callable[..., str], api: Any, way: str
) -> None:
    name = container()
    markers = {escape: f"9{index}.{os.getpid()}" for index, escape in enumerate(ESCAPES)}

    def counts() -> dict[str, int]:
        return {escape: _marked(api, name, marker) for escape, marker in markers.items()}

    backend, stop = DockerBackend.attach(name), anyio.Event()
    ended: list[str] = []

    async def one(escape: str) -> None:
        text = ESCAPES[escape][0].replace("{m}", markers[escape])
        limit_s = 10 if way == "timeout" else None
        try:
            await backend.exec(text, cwd="/", on_data=lambda _: None, stop=stop, timeout_s=limit_s)
        except ConnectionLost:
            assert way in ("close", "engine dies")
        ended.append(escape)

    async with anyio.create_task_group() as tasks, backend:
        for escape in ESCAPES:
            tasks.start_soon(one, escape)
        expected = {escape: count for escape, (_, count) in ESCAPES.items()}
        await eventually(lambda: counts() == expected, 60)
        if way == "stop":
            stop.set()
        elif way == "cancel":
            tasks.cancel_scope.cancel()
        elif way == "engine dies":
            pid = await said(backend, TOPMOST)
            made = await in_thread(api.exec_create, name, ["sh", "-c", f"kill -9 {pid}"])
            await in_thread(api.exec_start, made["Id"])
        if way in ("timeout", "stop", "engine dies"):
            await eventually(lambda: len(ended) == len(ESCAPES), 30)
            await eventually(lambda: not any(counts().values()), 20)
            assert await said(backend, "echo still working") == "still working"
    await eventually(lambda: not any(counts().values()), 10)


async def test_the_engine_of_a_docker_context_is_used(
    container: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docker's own command line keeps them: by the digest of their names."""
    meta = tmp_path / "contexts" / "meta" / hashlib.sha256(b"mine").hexdigest()
    await anyio.Path(meta).mkdir(parents=True)
    host = {"Host": "unix:///var/run/docker.sock", "SkipTLSVerify": False}
    told = {"Name": "mine", "Metadata": {}, "Endpoints": {"docker": host}}
    await anyio.Path(meta / "meta.json").write_text(json.dumps(told))
    await anyio.Path(tmp_path / "config.json").write_text(json.dumps({"currentContext": "mine"}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    async with DockerBackend.attach(container()) as backend:
        assert await said(backend, "echo here") == "here"
    host["Host"] = "unix:///nowhere/of/the/context.sock"
    await anyio.Path(meta / "meta.json").write_text(json.dumps(told))
    with pytest.raises(BackendUnavailable, match="/nowhere/of/the/context"):
        async with DockerBackend.attach("any"):
            pass
    monkeypatch.setenv("DOCKER_CONTEXT", "other")
    with pytest.raises(BackendUnavailable, match="no context 'other'"):
        async with DockerBackend.attach("any"):
            pass
