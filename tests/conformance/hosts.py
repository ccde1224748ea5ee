"""Targets behind an SSH server: a bare sshd on a loopback port of this machine, or a container."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from backends.docker import DockerBackend
from backends.ssh import SshBackend
from tests.conformance.containers import ShellSeeder
from tests.conformance.places import Place
from tests.conformance.seeders import BelowRoot, HostSeeder
from tests.sshd import Sshd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from tests.servers import Server


@asynccontextmanager
async def over_ssh(scratch: Path, _program: str, **options: Any) -> AsyncIterator[Place]:
    """Open a place behind a server of its own, whose users' home is in the scratch folder."""
    workspace, home = scratch / "workspace", scratch / "home"
    workspace.mkdir(exist_ok=True)
    home.mkdir(exist_ok=True)
    server = Sshd(home=home)
    try:
        await anyio.to_thread.run_sync(server.start)
        cwd = options.get("root", str(workspace))
        kind = {"cwd": cwd, "config": server.config(), **options}
        async with SshBackend.connect("box", **kind) as backend:
            yield Place(backend, backend.cwd, HostSeeder(), str(home))
    finally:
        await anyio.to_thread.run_sync(server.remove)


@asynccontextmanager
async def over_sftp(scratch: Path, _program: str, **options: Any) -> AsyncIterator[Place]:
    """Open a place behind a server that gives SFTP and nothing else, in a chroot if we may."""
    async with _sftp_root() as root:
        chroot = f"ChrootDirectory {root}\n" if root else ""
        folders = ("/workspace", "/home") if root else (f"{scratch}/workspace", f"{scratch}/home")
        for folder in folders:
            Path(root + folder).mkdir(exist_ok=True)
        server = Sshd(
            f"Subsystem sftp internal-sftp\nForceCommand internal-sftp -d {folders[1]}\n{chroot}"
        )
        try:
            await anyio.to_thread.run_sync(server.start)
            kind = {"cwd": folders[0], "config": server.config(), **options}
            async with SshBackend.connect("box", **kind) as backend:
                yield Place(backend, backend.cwd, HostSeeder(root), folders[1])
        finally:
            await anyio.to_thread.run_sync(server.remove)


@asynccontextmanager
async def _sftp_root() -> AsyncIterator[str]:
    """Give a folder that sshd takes for a root: nobody else may write to any above it."""
    if os.geteuid() != 0:
        yield ""
        return
    root = tempfile.mkdtemp(prefix="remotehands-sftp-", dir="/run")
    try:
        Path(root).chmod(0o755)
        yield root
    finally:
        await anyio.to_thread.run_sync(shutil.rmtree, root)


def in_server(service: str, shell: str) -> Callable[..., AbstractAsyncContextManager[Place]]:
    """Return what opens a place as a new user of a server in a container.

    Args:
        service: Its name.
        shell: The login shell of its users.
    """

    @asynccontextmanager
    async def open_place(
        _scratch: Path, servers: Mapping[str, Server], **options: Any
    ) -> AsyncIterator[Place]:
        server = servers[service]
        user = await anyio.to_thread.run_sync(server.add_user, shell)
        try:
            kind = {"cwd": f"/work/{user}", "config": server.config(user), **options}
            async with SshBackend.connect("box", **kind) as backend:
                yield Place(backend, backend.cwd, ShellSeeder(backend), f"/home/{user}")
        finally:
            await anyio.to_thread.run_sync(server.remove_user, user)

    return open_place


@asynccontextmanager
async def in_sftp_server(
    _scratch: Path, servers: Mapping[str, Server], **options: Any
) -> AsyncIterator[Place]:
    """Open a place as a new user of the server that gives only SFTP, below a root of its own."""
    server = servers["sshd-sftp"]
    user = await anyio.to_thread.run_sync(server.add_user)
    try:
        kind = {"cwd": f"/work/{user}", "config": server.config(user), **options}
        async with (
            DockerBackend.attach(server.container, user=user, workdir="/") as behind,
            SshBackend.connect("box", **kind) as backend,
        ):
            seeder = BelowRoot(ShellSeeder(behind), server.root)
            yield Place(backend, backend.cwd, seeder, f"/home/{user}")
    finally:
        await anyio.to_thread.run_sync(server.remove_user, user)
