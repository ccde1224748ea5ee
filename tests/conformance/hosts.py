"""Targets behind an SSH server: a bare sshd on a loopback port of this machine."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from backends.ssh import SshBackend
from tests.conformance.places import Place
from tests.conformance.seeders import HostSeeder
from tests.sshd import Sshd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@asynccontextmanager
async def over_ssh(scratch: Path, _program: str, **options: Any) -> AsyncIterator[Place]:
    """Open a place behind a server of its own, whose users' home is in the scratch folder."""
    workspace, home = scratch / "workspace", scratch / "home"
    workspace.mkdir(exist_ok=True)
    home.mkdir(exist_ok=True)
    server = Sshd(f"SetEnv HOME={home}\n")
    try:
        await anyio.to_thread.run_sync(server.start)
        kind = {"cwd": str(workspace), "config": server.config(), **options}
        async with SshBackend.connect("box", **kind) as backend:
            yield Place(backend, backend.cwd, HostSeeder(), str(home))
    finally:
        await anyio.to_thread.run_sync(server.remove)
