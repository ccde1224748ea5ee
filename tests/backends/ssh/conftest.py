"""Servers, wires and users for the tests of the ssh backend; all are removed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.backends.ssh.proxy import Wire
from tests.sshd import Sshd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator


@pytest.fixture
def anyio_backend() -> str:
    """Run under asyncio, which asyncssh needs."""
    return "asyncio"


@pytest.fixture
def server() -> Iterator[Callable[..., Sshd]]:
    """Give a function that starts a server of the test's own."""
    started: list[Sshd] = []

    def start(options: str = "") -> Sshd:
        started.append(Sshd(options))
        started[-1].start()
        return started[-1]

    yield start
    for one in started:
        one.remove()


@pytest.fixture
async def wire(sshd: Sshd) -> AsyncIterator[Wire]:
    """Give a wire to the server that all share; its host key is known there too."""
    async with Wire(sshd.port) as made:
        yield made


@pytest.fixture
def user() -> Iterator[Callable[..., str]]:
    """Give a function that makes a user of this machine, who may log in by key."""
    made: list[str] = []

    def make(shell: str = "/bin/sh", password: str = "*", rc: dict[str, str] | None = None) -> str:
        program = shutil.which(shell)
        if program is None:
            pytest.skip(f"{shell} is not installed")
        if os.geteuid() != 0:
            pytest.skip("only root makes users")
        name = f"rh{uuid.uuid4().hex[:8]}"
        subprocess.run(
            ["useradd", "-m", "-p", password, "-s", program, name],
            check=True,
            timeout=60,
            capture_output=True,
        )
        made.append(name)
        entry = pwd.getpwnam(name)
        for file, text in (rc or {}).items():
            path = Path(entry.pw_dir, file)
            for folder in reversed(path.relative_to(entry.pw_dir).parents[:-1]):
                (Path(entry.pw_dir) / folder).mkdir(exist_ok=True)
                os.chown(Path(entry.pw_dir) / folder, entry.pw_uid, entry.pw_gid)
            path.write_text(text)
        return name

    yield make
    for name in made:
        subprocess.run(["pkill", "-KILL", "-u", name], check=False, timeout=20)
        argv = ["userdel", "-r", "-f", name]
        subprocess.run(argv, check=False, timeout=60, capture_output=True)
