"""Targets that need no container: this machine, reached in the ways that there are."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from backends.command import CommandBackend
from backends.local import LocalBackend
from backends.memory import MemoryBackend

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture(scope="session")
def busybox_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give a folder with all of busybox's programs and no others."""
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("busybox is not installed")
    folder = tmp_path_factory.mktemp("busybox")
    subprocess.run([busybox, "--install", "-s", str(folder)], check=True)
    return str(folder)


@pytest.fixture(params=["command", "busybox", "local", "memory"])
async def target(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncIterator[Any]:
    """Give a backend of each kind."""
    if request.param == "busybox":
        folder = request.getfixturevalue("busybox_folder")
        backend: Any = CommandBackend(["env", f"PATH={folder}", "sh", "-c"])
    else:
        kinds = {
            "command": lambda: CommandBackend(["sh", "-c"]),
            "local": LocalBackend,
            "memory": MemoryBackend,
        }
        backend = kinds[request.param]()
    async with backend:
        yield backend


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Give a folder with everything in it that a folder can hold and a copy can keep."""
    top = tmp_path / "source"
    top.mkdir()
    (top / "a.txt").write_text("one\ntwo\n")
    (top / "empty").touch()
    (top / "run.sh").write_text("#!/bin/sh\n")
    (top / "run.sh").chmod(0o750)
    (top / "hollow").mkdir()
    (top / "closed").mkdir()
    (top / "closed" / "f").write_text("x")
    (top / "closed" / "f").chmod(0o444)
    (top / ("long" * 40) / ("name" * 50)).mkdir(parents=True)
    (top / ("long" * 40) / ("name" * 50) / ("of a file" * 20)).write_text("deep")
    (top / "-rf").write_text("no option")
    (top / " a 'b' \"c\"\n\\ é\t").write_text("odd")
    (top / os.fsdecode(b"\xff\xfe not utf-8")).write_text("bytes")
    (top / "large").write_bytes(os.urandom(64) * 50_001)
    os.link(top / "large", top / "hollow.hard")
    os.symlink("a.txt", top / "link")
    os.symlink("/etc/../nowhere/" + "x" * 150, top / "closed" / "broken")
    os.symlink("..", top / "up")
    for path in (top / "a.txt", top / "hollow", top / "closed"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    (top / "closed").chmod(0o555)
    return top
