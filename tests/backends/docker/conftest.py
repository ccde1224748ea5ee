"""Containers for the tests of the docker backend, all labelled and all removed."""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LABEL = "remotehands-test"
PYTHON = "remotehands-test/python"


@pytest.fixture(scope="session")
def api() -> Iterator[Any]:
    """Give the SDK's client, or skip where no engine has the tests' images."""
    import docker

    try:
        client = docker.APIClient(version="auto", timeout=60)
        client.inspect_image(PYTHON)
    except docker.errors.DockerException as error:
        pytest.skip(f"no Docker engine with the tests' images (`scripts/services up`): {error}")
    yield client
    client.close()


@pytest.fixture
def container(api: Any) -> Iterator[Callable[..., str]]:
    """Give a function that starts a container of the python image and returns its name."""
    started = []

    def start(image: str = PYTHON, **options: Any) -> str:
        name = f"remotehands-test-{uuid.uuid4().hex[:12]}"
        api.create_container(
            image,
            ["sleep", "600"],
            name=name,
            labels={LABEL: "docker"},
            host_config=api.create_host_config(network_mode="none", init=True),
            **options,
        )
        started.append(name)
        api.start(name)
        return name

    yield start
    for name in started:
        _remove(api, name)


def _remove(api: Any, name: str) -> None:
    import docker.errors

    with contextlib.suppress(docker.errors.NotFound):
        api.remove_container(name, force=True, v=True)


# pytest-docker's own fixtures, pointed at what is there.


@pytest.fixture(scope="session")
def docker_compose_command() -> str:
    return "docker-compose"


@pytest.fixture(scope="session")
def docker_compose_file() -> str:
    return str(Path(__file__).parents[3] / "docker-compose.yml")


@pytest.fixture(scope="session")
def docker_setup() -> list[str]:
    return ["up -d --no-build"]


@pytest.fixture(scope="session")
def docker_cleanup() -> list[str]:
    return ["down -v -t 0"]
