"""A target without Python: the same backend goes on over lanes of its shell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from backends.remote import bootstrap
from backends.remote.backend import RemoteBackend
from backends.remote.channel import Channel
from backends.remote.fallback import OPERATIONS, lacks_python
from backends.remote.pipe import open_pipe
from backends.remote.shell_backend import ShellBackend
from operations import BackendUnavailable

pytestmark = pytest.mark.anyio

WITHOUT = {"PATH": "/nowhere", "HOME": "/root"}
WITH = {"PATH": "/usr/bin:/bin", "HOME": "/root"}


class Target:
    """A machine whose shell finds no Python, and counts what it is asked to run."""

    def __init__(self) -> None:
        self.engines = 0
        self.lanes = 0

    async def engine(self) -> Channel:
        self.engines += 1
        return await open_pipe(bootstrap.shell_argv(), env=WITHOUT)

    async def lane(self, argv: Sequence[str]) -> Channel:
        self.lanes += 1
        return await open_pipe(argv, env=WITH)

    def backend(self, **options: object) -> RemoteBackend:
        return RemoteBackend(self.engine, target="t:", cwd="/tmp", **options)  # type: ignore[arg-type]


async def test_every_operation_goes_over_the_shell(tmp_path: Path) -> None:
    target = Target()
    output: list[bytes] = []
    async with target.backend(open_lane=target.lane, env={"FOO": "bar"}) as backend:
        assert backend.facts is not None
        assert "shell_fallback" in backend.facts.capabilities
        await backend.write_file(f"{tmp_path}/f", b"content")
        assert await backend.read_file(f"{tmp_path}/f") == b"content"
        await backend.exec("echo $FOO", cwd="/", on_data=output.append)
        for name in OPERATIONS:
            assert isinstance(getattr(backend, name).__self__, ShellBackend)
    assert output == [b"bar\n"]
    assert target.engines == 1


async def test_a_backend_can_be_opened_again() -> None:
    target = Target()
    backend = target.backend(open_lane=target.lane)
    for _ in range(2):
        async with backend:
            assert await backend.is_directory("/")
    with pytest.raises(BackendUnavailable):
        await backend.is_directory("/")


async def test_without_lanes_it_says_what_is_missing() -> None:
    with pytest.raises(BackendUnavailable, match="no python3 here"):
        async with Target().backend():
            pass


async def test_another_failure_is_no_reason_to_fall_back() -> None:
    target = Target()

    async def fail() -> Channel:
        raise OSError("no route to host")

    backend = RemoteBackend(fail, target="t:", cwd="/", open_lane=target.lane)
    with pytest.raises(BackendUnavailable, match="no route"):
        async with backend:
            pass
    assert target.lanes == 0


async def test_a_shell_that_lacks_the_tools_is_told() -> None:
    async def bare(argv: Sequence[str]) -> Channel:
        return await open_pipe(argv, env=WITHOUT)

    target = Target()
    with pytest.raises(BackendUnavailable, match="the target lacks"):
        async with target.backend(open_lane=bare):
            pass


def test_the_list_of_operations_is_complete() -> None:
    def public(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_") and name != "facts"}

    assert set(OPERATIONS) == public(ShellBackend)
    assert set(OPERATIONS) <= public(RemoteBackend)
    assert lacks_python(BackendUnavailable("t", "ended with exit status 127: no python3 here"))
