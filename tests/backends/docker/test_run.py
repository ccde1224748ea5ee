"""Containers of our own: hardened, and gone with us."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import pytest

from backends.docker import DockerBackend, prune
from backends.docker.labels import OWNER, abandoned, labels
from backends.docker.sandbox import image_candidates
from operations import BackendUnavailable, PathError

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

ROOT = Path(__file__).parents[3]
PYTHON = "remotehands-test/python"


async def said(backend: Any, command: str) -> str:
    """Return what a command prints."""
    output: list[bytes] = []
    await backend.exec(command, cwd=backend.cwd, on_data=output.append)
    return b"".join(output).decode().strip()


def ours(api: Any) -> set[str]:
    """Return the containers, and the volumes, that `run` of this process has left."""
    pid = f"remotehands.pid={os.getpid()}"
    containers = api.containers(all=True, filters={"label": pid})
    return {container["Id"] for container in containers}


def volumes_mounted(api: Any, since: int) -> set[str]:
    """Return the volumes that containers of this process were given."""
    until = int(time.time()) + 1
    events = api.events(since=since, until=until, filters={"type": "container"}, decode=True)
    mine = {
        event["Actor"]["ID"]
        for event in events
        if event["Actor"]["Attributes"].get("remotehands.pid") == str(os.getpid())
    }
    events = api.events(since=since, until=until, filters={"type": "volume"}, decode=True)
    return {
        event["Actor"]["ID"]
        for event in events
        if event["Actor"]["Attributes"].get("container") in mine
    }


async def test_what_is_promised_of_a_sandbox_holds_inside(api: Any) -> None:
    async with DockerBackend.run(PYTHON) as backend:
        status = dict(
            line.split(":\t", 1)
            for line in (await said(backend, "cat /proc/self/status")).splitlines()
            if ":\t" in line
        )
        assert status["Uid"].split() == ["1000"] * 4
        assert {status[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {"0" * 16}
        assert status["NoNewPrivs"] == "1"
        assert status["Seccomp"] == "2"
        assert await said(backend, "ls /sys/class/net") == "lo"
        assert "docker-init" in await said(backend, "tr '\\0' ' ' </proc/1/cmdline")
        for folder in ("/tmp", "/run", backend.cwd):
            await backend.write_file(f"{folder}/x", b"x")
        for folder in ("/", "/usr", "/etc"):
            with pytest.raises(PathError):
                await backend.write_file(f"{folder}/x", b"x")
        host = api.inspect_container(backend.container_id)["HostConfig"]
        limits = {"Memory": 2 << 30, "MemorySwap": 2 << 30, "PidsLimit": 512, "NanoCpus": 10**9}
        assert {name: host[name] for name in limits} == limits
        assert not host["Privileged"]
        assert not host["CapAdd"]


async def test_each_limit_is_relaxed_by_its_option(api: Any, tmp_path: Path) -> None:
    await anyio.to_thread.run_sync(tmp_path.chmod, 0o777)
    relaxed = {
        "user": "0:0",
        "network": "bridge",
        "memory": "256m",
        "cpus": 0.5,
        "pids": 99,
        "read_only": False,
        "capabilities": ("CHOWN",),
        "new_privileges": True,
        "init": False,
        "mount": str(tmp_path),
    }
    async with DockerBackend.run(PYTHON, workdir="/mine", **relaxed) as backend:
        await backend.write_file("/mine/x", b"x")
        await backend.write_file("/usr/x", b"x")
        assert (tmp_path / "x").read_bytes() == b"x"
        assert await said(backend, "chown 5:5 x && stat -c %u x") == "5"
        assert "NoNewPrivs:\t0" in await said(backend, "cat /proc/self/status")
        host = api.inspect_container(backend.container_id)["HostConfig"]
        assert (host["NetworkMode"], host["PidsLimit"]) == ("bridge", 99)
        assert (host["Memory"], host["NanoCpus"]) == (256 << 20, 5 * 10**8)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(TypeError, match="privileged"):
        DockerBackend.run(PYTHON, privileged=True)


async def test_closing_removes_the_container_and_its_volume(api: Any) -> None:
    volumes = len(api.volumes()["Volumes"] or ())
    async with DockerBackend.run(f"{PYTHON}/srv/app") as backend:
        assert backend.cwd == "/srv/app"
        assert len(ours(api)) == 1
        assert await said(backend, "stat -c %u:%g .") == "1000:1000"
    assert ours(api) == set()
    assert len(api.volumes()["Volumes"] or ()) == volumes


async def test_an_error_in_the_body_removes_the_container_too(api: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        async with DockerBackend.run(PYTHON):
            raise ZeroDivisionError
    assert ours(api) == set()


async def test_a_cancelled_body_removes_the_container_too(api: Any) -> None:
    with anyio.move_on_after(0) as scope:
        scope.deadline = float("inf")
        async with DockerBackend.run(PYTHON):
            scope.cancel()
            await anyio.sleep(60)
    assert ours(api) == set()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"image": "no-such-image/at/all"}, "no image 'no-such-image/at/all'"),
        ({"image": PYTHON, "runtime": "nope"}, "nope"),
        ({"image": PYTHON, "mount": "/no/such/folder"}, "no/such/folder"),
        ({"image": PYTHON, "network": "no-such"}, "network no-such not found"),
        ({"image": PYTHON, "user": "nosuch"}, "unable to find user nosuch"),
    ],
)
async def test_what_cannot_be_started_leaves_nothing(
    api: Any, options: dict[str, Any], reason: str
) -> None:
    since = int(time.time())
    with pytest.raises(BackendUnavailable, match=reason):
        async with DockerBackend.run(**options):
            pass
    assert ours(api) == set()
    names = await anyio.to_thread.run_sync(volumes_mounted, api, since)
    assert not names & {volume["Name"] for volume in api.volumes()["Volumes"] or ()}


async def test_the_container_lives_as_long_as_we_do(api: Any) -> None:
    """Beats keep it over its lease, also when it is idle."""
    async with DockerBackend.run(PYTHON, container_lease_s=2) as backend:
        await anyio.sleep(7)
        assert await said(backend, "echo here") == "here"


_OWNER = """
import anyio, sys
from backends.docker import DockerBackend

async def main():
    async with DockerBackend.run(sys.argv[1], container_lease_s=2) as backend:
        print(backend.container_id, flush=True)
        await anyio.sleep(600)

anyio.run(main)
"""


def _own_and_die(signal_number: int) -> str:
    """Return the id of a container whose owner was killed."""
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER, PYTHON],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
    ) as process:
        assert process.stdout
        container = process.stdout.readline().strip()
        assert container
        process.send_signal(signal_number)
    return container


def _gone(api: Any, container: str) -> bool:
    return not api.containers(all=True, filters={"id": container})


def test_our_death_ends_the_container(api: Any) -> None:
    container = _own_and_die(signal.SIGKILL)
    started = time.monotonic()
    while not _gone(api, container):
        assert time.monotonic() - started < 20
        time.sleep(0.1)


async def test_prune_removes_what_the_dead_have_left_and_nothing_else(
    api: Any, container: Callable[..., str]
) -> None:
    def left(pid: str) -> str:
        made = api.create_container(
            "remotehands-test/busybox",
            ["true"],
            labels={**labels(), "remotehands.pid": pid, "remotehands-test": "docker"},
        )
        return str(made["Id"])

    foreign = container()
    dead = await anyio.to_thread.run_sync(left, "999999999")
    alive = await anyio.to_thread.run_sync(left, str(os.getpid()))
    try:
        removed = await prune()
        names = {c["Id"]: c["Names"][0] for c in api.containers(all=True)}
        assert dead not in names
        assert alive in names
        assert f"/{foreign}" in names.values()
        assert removed
    finally:
        await anyio.to_thread.run_sync(lambda: api.remove_container(alive, force=True))


@pytest.mark.parametrize("pid", ["", "0", "-1", "\u00b2", "9" * 5000])
def test_a_label_that_is_no_pid_is_nobody_of_ours(pid: str) -> None:
    assert not abandoned({**labels(), "remotehands.pid": pid})


def test_an_owner_that_proc_hides_from_us_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    owned = labels()
    assert not abandoned(owned)
    # As with /proc mounted with hidepid, for a process of another user.
    monkeypatch.setattr("backends.docker.labels._start", lambda pid: None)
    assert not abandoned(owned)
    assert abandoned({**owned, "remotehands.pid": "999999999"})


def test_the_owner_stands_on_the_label() -> None:
    assert labels()[OWNER] == str(os.getuid())
    assert json.dumps(labels())


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("busybox", ("busybox", None), ("busybox", None)),
        ("a/b/work", ("a/b/work", None), ("a", "/b/work")),
        ("a/b//work/x", ("a/b", "/work/x"), ("a/b", "/work/x")),
        ("python:3/work", ("python:3/work", None), ("python:3", "/work")),
    ],
)
def test_the_longest_image_is_meant(text: str, first: tuple[str, str], last: object) -> None:
    found = image_candidates(text)
    assert (found[0], found[-1]) == (first, last)


async def test_what_was_never_started_goes_with_the_next_run(api: Any) -> None:
    """A process that was killed between making a workspace and its container leaves this."""
    dead = {**labels(), "remotehands.pid": "999999999"}
    left = api.create_container("remotehands-test/busybox", ["true"], labels=dead)["Id"]
    try:
        async with DockerBackend.run("remotehands-test/busybox"):
            pass
        found = api.containers(all=True, filters={"id": left})
        assert found == []
    finally:
        with contextlib.suppress(Exception):
            api.remove_container(left)
