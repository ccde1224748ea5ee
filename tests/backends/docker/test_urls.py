"""Containers as targets in text."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from backends.command import CommandBackend
from backends.docker import DockerBackend
from backends.docker.urls import attach_options, run_options
from backends.targets import open_target
from operations import BackendUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_container_a_folder_and_options() -> None:
    assert attach_options("docker://web/src/app?user=1000:1000&env=A=1&env=B=x%3Dy") == {
        "container": "web",
        "workdir": "/src/app",
        "user": "1000:1000",
        "env": {"A": "1", "B": "x=y"},
    }
    assert attach_options("docker://web") == {"container": "web"}
    assert attach_options("docker://web//src")["workdir"] == "/src"


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
        ("docker+run://i?memory=junk", "memory is a size as docker writes it, .* not 'junk'"),
        ("docker+run://i?memory=1m", "memory is at least 6 MiB, not '1m'"),
        ("docker+run://i?tmp_size=-1", "tmp_size is a size as docker writes it, .* not '-1'"),
        ("docker+run://i?cpus=0", "cpus is a number of processors from 0.01 on, not 0.0"),
        ("docker+run://i?pids=0", "pids is a whole number from 1 on, or -1 for no limit, not 0"),
        ("docker+run://i?mount=srv", "mount is an absolute path, as '/srv/project', not 'srv'"),
        ("docker+run://i?capabilities=chown", "capabilities is names in a tuple"),
        ("docker+run://i?seccomp=off", "seccomp is 'unconfined' or the text of a profile"),
        ("docker+run://i?network=", "network is 'none', 'bridge' or a network's name, not ''"),
        ("docker+run://i?user=", "user is 'uid:gid', a uid or a name, not ''"),
        ("docker+run://i?runtime=", "runtime is the name of a runtime, as 'runsc', not ''"),
        ("docker://c?user=a:b:c", "user is 'uid:gid', a uid or a name, not 'a:b:c'"),
        ("command:", "program is missing"),
        ("command:sh -c 'x", "No closing quotation"),
        ("ftp://x", "no such target"),
    ],
)
def test_what_is_wrong_with_a_url_is_named(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        open_target(url)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: DockerBackend.attach(""), "container is a name, an id or a compose service"),
        (lambda: DockerBackend.attach("c", workdir="src"), "workdir is an absolute path"),
        (lambda: DockerBackend.attach("c", env={"A=B": "1"}), "a name without '=' and NUL"),
        (lambda: DockerBackend.attach("c", env={"A": "\0"}), r"env\['A'\] is text without NUL"),
        (lambda: DockerBackend.run(""), "image is the name of an image"),
        (lambda: DockerBackend.run("i", capabilities="CHOWN"), "names in a tuple, .* not 'CHOWN'"),
        (lambda: DockerBackend.run("i", read_only="no"), "read_only is true or false, not 'no'"),
        (lambda: DockerBackend.run("i", container_lease_s=0), "container_lease_s is a number of s"),
    ],
)
def test_what_is_wrong_with_an_option_is_named(make: Callable[[], object], reason: str) -> None:
    """The value is told and what would be right, before anybody is asked."""
    with pytest.raises(ValueError, match=reason):
        make()


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
