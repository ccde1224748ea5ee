"""Containers for the tests of the docker backend, all labelled and all removed."""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.backends.docker.boxes import Box

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

LABEL = "remotehands-test"
PYTHON = "remotehands-test/python"


@pytest.fixture
def container(api: Any) -> Iterator[Callable[..., str]]:
    """Give a function that starts a container of the python image and returns its name."""
    started = []

    def start(image: str = PYTHON, labels: Mapping[str, str] | None = None, **options: Any) -> str:
        name = f"remotehands-test-{uuid.uuid4().hex[:12]}"
        api.create_container(
            image,
            ["sleep", "600"],
            name=name,
            labels={LABEL: "docker", **(labels or {})},
            host_config=api.create_host_config(network_mode="none", init=True),
            **options,
        )
        started.append(name)
        api.start(name)
        return name

    yield start
    for name in started:
        _remove(api, name)


@pytest.fixture
def box(api: Any) -> Iterator[Callable[..., Box]]:
    """Give a function that starts a Box."""
    boxes = []

    def make(image: str, **options: Any) -> Box:
        made = Box(api, f"remotehands-test/{image}", options)
        boxes.append(made)
        made.make()
        return made

    yield make
    for made in boxes:
        made.shut()


def _remove(api: Any, name: str) -> None:
    import docker.errors

    with contextlib.suppress(docker.errors.NotFound):
        api.remove_container(name, force=True, v=True)
