"""Containers as targets in text."""

from __future__ import annotations

import subprocess
import sys

import pytest

from backends.command import CommandBackend
from backends.docker import DockerBackend
from backends.docker.urls import attach_options, run_options
from backends.targets import open_target
from operations import BackendUnavailable


def test_a_container_a_folder_and_options() -> None:
    assert attach_options("docker://web/src/app?user=1000:1000&env=A=1&env=B=x%3Dy") == {
        "container": "web",
        "workdir": "/src/app",
        "user": "1000:1000",
        "env": {"A": "1", "B": "x=y"},
    }
    assert attach_options("docker://web") == {"container": "web"}


def test_each_limit_of_a_sandbox_is_an_option() -> None:
    url = "docker+run://a/b//w?network=bridge&memory=4g&cpus=2&pids=9&read_only=no&capabilities=A,B"
    assert run_options(url) == {
        "image": "a/b//w",
        "network": "bridge",
        "memory": "4g",
        "cpus": 2.0,
        "pids": 9,
        "read_only": False,
        "capabilities": ("A", "B"),
    }


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("docker://", "container is missing"),
        ("docker+run://?network=none", "image is missing"),
        ("docker://c?network=none", "no option 'network'; there are engine, env, user"),
        ("docker://c?env=A", "env is NAME=value, not 'A'"),
        ("docker+run://i?pids=many", "pids is a whole number, not 'many'"),
        ("docker+run://i?init=perhaps", "init is true or false, not 'perhaps'"),
        ("docker+run://i?cpus=nan", "cpus is a number, not 'nan'"),
        ("command:", "program is missing"),
        ("command:sh -c 'x", "No closing quotation"),
        ("ftp://x", "no such target"),
    ],
)
def test_what_is_wrong_with_a_url_is_named(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        open_target(url)


def test_targets_become_backends() -> None:
    assert isinstance(open_target("docker://c/dir", cwd="/x"), DockerBackend)
    assert open_target("docker://c/dir").cwd == "/dir"
    assert open_target("docker://c/dir", cwd="/x").cwd == "/x"
    assert isinstance(open_target("docker+run://i?memory=1g", env={"A": "1"}), DockerBackend)
    assert isinstance(open_target("command:sudo -n -u other"), CommandBackend)


def test_naming_a_container_loads_no_client_of_docker() -> None:
    """It takes a tenth of a second, which those who use it pay when they connect."""
    code = (
        "import sys; from backends.targets import open_target; open_target('docker://c');"
        "open_target('docker+run://i'); sys.exit('docker' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.anyio
@pytest.mark.parametrize("engine", ["tcp://[::1", "tcp://127.0.0.1:99999", "tcp://127.0.0.1"])
async def test_an_engine_that_cannot_be_is_refused_as_one(engine: str) -> None:
    with pytest.raises(BackendUnavailable, match=r"IPv6|[Pp]ort"):
        async with DockerBackend.attach("c", engine=engine):
            pass
