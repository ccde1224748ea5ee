"""One parametrised fixture: every test here runs on every target, under both event loops.

A backend is opened once for all tests of a file on one target and loop, so each test also runs on
what the tests before it have left; its workspace is a new folder.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance.targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    from tests.conformance.places import Place

#: Which targets to run on, by name and separated by commas; `scripts/test` says "all".
_TOLD = os.environ.get("REMOTEHANDS_TEST_TARGETS", "local,engine,memory")
_WANTED = list(TARGETS) if _TOLD == "all" else _TOLD.split(",")
_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marks that the suite uses."""
    config.addinivalue_line(
        "markers", "needs(capability): the target must have it; skipped with a reason elsewhere"
    )
    config.addinivalue_line(
        "markers", "unprivileged: is about permissions, which a superuser passes unasked"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what a target lacks and expect what is known to differ, by the one table."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        target = TARGETS.get(callspec.params.get("target_name")) if callspec else None
        if target is None:
            continue
        for mark in item.iter_markers("needs"):
            if reason := target.lacks.get(mark.args[0]):
                item.add_marker(pytest.mark.skip(reason=reason))
        if reason := target.differs.get(item.originalname):
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on every target, under the event loops that the table names for it."""
    if "target_name" in metafunc.fixturenames:
        wanted = [(name, loop) for name in _WANTED for loop in TARGETS[name].loops]
        names = ("target_name", "anyio_backend")
        metafunc.parametrize(names, wanted, indirect=True, scope="module")


@pytest.fixture(scope="module")
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Name the event loop; one for all tests of a file, as their backend is."""
    return str(request.param)


@pytest.fixture(scope="module")
def target_name(request: pytest.FixtureRequest) -> str:
    """Name the target; for this file alone."""
    return str(request.param)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a folder of this machine, and a home in it for those whose target this machine is."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "home").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder / "home"))
        # This interpreter first: a version manager's `python3` needs the home it was set up in.
        ours = str(Path(sys.executable).parent)
        patch.setenv("PATH", os.pathsep.join([ours, os.environ["PATH"]]))
        yield folder


@pytest.fixture(scope="module")
def open_place(
    target_name: str, scratch: Path, request: pytest.FixtureRequest
) -> Callable[..., AbstractAsyncContextManager[Place]]:
    """Give a function that opens a place, with options of the backend's own."""
    target = TARGETS[target_name]
    given = [request.getfixturevalue(target.fixture)] if target.fixture else []

    def opener(**options: object) -> AbstractAsyncContextManager[Place]:
        return target.open(scratch, *given, **options)

    return opener


@pytest.fixture(scope="module")
def open_beside(
    target_name: str, open_place: Callable[..., AbstractAsyncContextManager[Place]]
) -> Callable[..., AbstractAsyncContextManager[Place]]:
    """Give a function that opens a second place, with options, where a first one's files are."""

    def opener(first: Place, **options: object) -> AbstractAsyncContextManager[Place]:
        return open_place(**TARGETS[target_name].shares(first), **options)

    return opener


@pytest.fixture(scope="module")
async def opened(
    open_place: Callable[..., AbstractAsyncContextManager[Place]],
) -> AsyncIterator[Place]:
    """Give a place that is open for all tests of the file."""
    async with open_place() as place:
        yield place


@pytest.fixture
async def place(opened: Place) -> Place:
    """Give an open place with an empty workspace."""
    return await opened.below(f"w{next(_numbers)}")
