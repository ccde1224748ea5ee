"""The containers of docker-compose.yml, driven by pytest-docker: one of each per test process.

They are started when a test first asks for them and are gone when the process's tests are over,
also when starting them or a test has gone wrong.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pytest_docker.plugin import DockerComposeExecutor, get_docker_services

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

ROOT = Path(__file__).parents[1]
IMAGE = "remotehands-test/python"
#: What is worked on by Docker itself; SSH servers are started by whoever asks for them.
SERVICES = ("python", "python-minimal", "minimal", "busybox", "locked")


def pytest_configure() -> None:
    """End on SIGTERM as on Ctrl-C, so that what is to be removed is removed then too."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def api() -> Iterator[Any]:
    """Give the SDK's client, or skip where no engine has the tests' images."""
    import docker

    try:
        client = docker.APIClient(version="auto", timeout=60)
        client.inspect_image(IMAGE)
    except docker.errors.DockerException as error:
        pytest.skip(f"no Docker engine with the tests' images (`scripts/services up`): {error}")
    yield client
    client.close()


@pytest.fixture(scope="session")
def docker_compose_command() -> str:
    """Name the compose that is there: Debian's is a program of its own, others are a plugin."""
    return "docker-compose" if shutil.which("docker-compose") else "docker compose"


@pytest.fixture(scope="session")
def docker_compose_file() -> str:
    """Name the file at the root."""
    return str(ROOT / "docker-compose.yml")


@pytest.fixture(scope="session")
def docker_compose_project_name() -> str:
    """Name a project of this process alone: workers of one run do not share containers."""
    return f"remotehands-test-{os.getpid()}"


@pytest.fixture(scope="session")
def docker_cleanup() -> list[str]:
    """Remove volumes too, and wait for nobody."""
    return ["down -v -t 0"]


@pytest.fixture(scope="session")
def docker_services(
    api: Any,
    docker_compose_command: str,
    docker_compose_file: str,
    docker_compose_project_name: str,
    docker_cleanup: list[str],
) -> Iterator[Any]:
    """Start nothing yet; remove whatever was started, also if only some of it has."""
    where = (docker_compose_command, docker_compose_file, docker_compose_project_name)
    with get_docker_services(*where, [], docker_cleanup) as services:
        yield services


@pytest.fixture(scope="session")
def compose_up(
    api: Any,
    docker_services: Any,
    docker_compose_command: str,
    docker_compose_file: str,
    docker_compose_project_name: str,
) -> Callable[[Iterable[str]], dict[str, str]]:
    """Give a function that starts services and returns the container's id of each."""
    where = (docker_compose_command, docker_compose_file, docker_compose_project_name)
    label = f"com.docker.compose.project={docker_compose_project_name}"

    def up(names: Iterable[str]) -> dict[str, str]:
        DockerComposeExecutor(*where).execute(f"up -d --no-build {' '.join(names)}")
        started = {
            container["Labels"]["com.docker.compose.service"]: str(container["Id"])
            for container in api.containers(filters={"label": label})
        }
        return {name: started[name] for name in names}

    return up


@pytest.fixture(scope="session")
def compose_containers(
    compose_up: Callable[[Iterable[str]], dict[str, str]],
) -> Mapping[str, str]:
    """Give the container's id of each service that is entered by Docker itself."""
    return compose_up(SERVICES)
