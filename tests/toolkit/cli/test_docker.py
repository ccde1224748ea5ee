"""`toolkit check`, `toolkit demo` and `toolkit docker prune` where containers are."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from backends.docker.labels import labels
from tests.toolkit.cli.commands import TOOLKIT, toolkit, wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What each service's image lacks, as `weaker` names it.
WEAKER = {
    "python": set(),
    "python-minimal": {"kill", "search speed"},
    "minimal": {"kill", "search"},
    "busybox": {"kill", "search", "shell"},
    "locked": {"working folder"},
}


def made_by(api: Any, pid: int) -> list[Any]:
    return list(api.containers(all=True, filters={"label": f"remotehands.pid={pid}"}))


def temporary(api: Any, container: str) -> str:
    """Return the names in a container's /tmp."""
    made = api.exec_create(container, ["ls", "-a", "/tmp"])
    return str(api.exec_start(made["Id"]).decode())


# check


@pytest.mark.parametrize("service", WEAKER)
def test_each_kind_of_container_tells_what_is_weaker(
    service: str, compose_containers: Mapping[str, str], tmp_path: Path
) -> None:
    container = compose_containers[service]
    target = f"docker://{container}{'/usr' if service == 'locked' else '/tmp'}"
    done = toolkit("check", target, "--format", "json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert {weakness["promise"] for weakness in told["weaker"]} == WEAKER[service]
    assert told["answered_whole"] is True
    assert told["kind"] == ("shell" if service in ("minimal", "busybox") else "engine")
    assert told["kill_promise"] == ("weaker" if "kill" in WEAKER[service] else "complete")
    assert told["system"]["machine_id"] == f"docker:{container}"
    about = told["about"]["container"]
    assert (about["id"], about["network"], about["init"]) == (container, "none", True)
    assert about["read_only"] is (service == "locked")
    assert about["capabilities_dropped"] == (["ALL"] if service == "locked" else [])
    assert about["memory"] == (1 << 30 if service == "locked" else None)
    assert told["user"]["uid"] == (1000 if service == "locked" else 0)
    assert told["about"]["docker"]["engine"]
    assert told["about"]["docker"]["api"]


def test_a_read_only_root_is_told_to_root_too_and_no_secret_is(
    compose_containers: Mapping[str, str], tmp_path: Path
) -> None:
    target = f"docker://{compose_containers['locked']}/usr?user=0&env=TOKEN=s3cr3t"
    done = toolkit("check", target, cwd=tmp_path)
    assert "/usr, read-only" in done.stdout
    assert "env=TOKEN=..." in done.stdout.splitlines()[0]
    assert "s3cr3t" not in done.stdout


def test_a_container_of_our_own_is_told_with_its_limits_and_gone_afterwards(
    api: Any, tmp_path: Path
) -> None:
    target = "docker+run://remotehands-test/python?pids=100"
    with subprocess.Popen(
        [*TOOLKIT, "check", target], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    for words in ("network none", "read only yes", "dropped ALL", "memory 2.0 GiB", "pids 100"):
        assert words in stdout
    assert "Nothing is weaker here." in stdout
    assert made_by(api, process.pid) == []


@pytest.mark.parametrize("service", ["python", "busybox"])
def test_kept_outputs_of_a_container_are_counted_and_removed(
    service: str, api: Any, compose_containers: Mapping[str, str], tmp_path: Path
) -> None:
    target = f"docker://{compose_containers[service]}"
    long = toolkit("call", "bash", "command=seq 100000", "--on", target, cwd=tmp_path)
    assert long.returncode == 0
    assert "remotehands" in temporary(api, compose_containers[service])
    told = json.loads(toolkit("check", target, "--format", "json", cwd=tmp_path).stdout)
    assert (told["kept"]["files"], told["kept"]["bytes"]) == (1, 588895)
    done = toolkit("check", target, "--remove-kept", cwd=tmp_path)
    assert "no output of commands; 1 removed" in done.stdout
    assert "remotehands" not in temporary(api, compose_containers[service])


@pytest.mark.parametrize("command", [["check"], ["demo", "--on"]])
def test_an_interrupt_removes_a_container_of_our_own(
    command: list[str], api: Any, tmp_path: Path
) -> None:
    target = "docker+run://remotehands-test/python"
    with subprocess.Popen(
        [*TOOLKIT, *command, target],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_for(lambda: made_by(api, process.pid) != [])
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (130, "")
    wait_for(lambda: made_by(api, process.pid) == [])


# demo


def test_the_demo_repairs_the_project_in_a_container_of_its_own(api: Any, tmp_path: Path) -> None:
    target = "docker+run://remotehands-test/python"
    with subprocess.Popen(
        [*TOOLKIT, "demo", "--on", target], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 0, stdout
    assert "FAILED" in stdout
    assert "the tests pass: yes" in stdout
    assert "+    return (price * (100 - percent) + 50) // 100" in stdout
    assert made_by(api, process.pid) == []


@pytest.mark.parametrize(("service", "tested"), [("python", True), ("busybox", False)])
def test_the_demo_leaves_nothing_in_a_container_of_somebody_elses(
    service: str,
    tested: bool,
    api: Any,
    compose_containers: Mapping[str, str],
    tmp_path: Path,
) -> None:
    target = f"docker://{compose_containers[service]}"
    done = toolkit("demo", "--on", target, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("the tests pass: yes" in done.stdout) is tested
    assert ("no python3 runs here" in done.stdout) is not tested
    assert "+    return (price * (100 - percent) + 50) // 100" in done.stdout
    assert "remotehands" not in temporary(api, compose_containers[service])


# docker prune


def left_behind(api: Any, name: str) -> None:
    """Make a container as a process that has ended would have left it."""
    api.create_container(
        "remotehands-test/busybox",
        ["true"],
        name=name,
        labels={**labels(), "remotehands.pid": "999999999", "remotehands-test": "docker"},
    )


@pytest.mark.parametrize("output", ["text", "json"])
def test_prune_tells_what_it_has_removed(output: str, api: Any, tmp_path: Path) -> None:
    name = f"remotehands-test-{uuid.uuid4().hex[:12]}"
    left_behind(api, name)
    done = toolkit("docker", "prune", "--format", output, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    if output == "json":
        told = json.loads(done.stdout)
        assert name in told["removed"]
        assert told["error"] is None
    else:
        assert f"removed {name}" in done.stdout.splitlines()
    assert api.containers(all=True, filters={"name": name}) == []


@pytest.mark.parametrize(
    ("engine", "said"),
    [("unix:///no/such.sock", "/no/such.sock"), ("smoke://signals", "not supported")],
)
def test_without_an_engine_prune_says_so(engine: str, said: str, tmp_path: Path) -> None:
    done = toolkit("docker", "prune", "--engine", engine, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert said in done.stderr
    done = toolkit("docker", "prune", "--engine", engine, "--format", "json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert (done.returncode, told["removed"]) == (3, [])
    assert said in told["error"]


def test_prune_takes_the_engine_that_docker_would_use(tmp_path: Path) -> None:
    env = {**os.environ, "DOCKER_HOST": "unix:///from/the/environment.sock"}
    done = toolkit("docker", "prune", cwd=tmp_path, env=env)
    assert done.returncode == 3
    assert "/from/the/environment.sock" in done.stderr
