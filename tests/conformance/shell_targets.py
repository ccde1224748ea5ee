"""Targets without Python: lanes of sh on this machine, run when they are asked for by name."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.local.env import child_environment
from backends.remote.pipe import open_pipe
from backends.remote.shell_backend import ShellBackend
from tests.conformance.places import Place
from tests.conformance.seeders import HostSeeder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from backends.remote.channel import Channel

__all__ = ["BUSYBOX", "in_shell"]

BUSYBOX = shutil.which("busybox") or "/bin/busybox"


@cache
def _busybox_folder() -> str:
    """Return a folder that has nothing but the links of busybox."""
    folder = Path(tempfile.gettempdir()) / f"remotehands-busybox-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    listed = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True)
    for name in listed.stdout.split():
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(BUSYBOX)
    return str(folder)


def in_shell(
    shell: Sequence[str], *, only_busybox: bool = False
) -> Callable[..., AbstractAsyncContextManager[Place]]:
    """Return what opens a place behind lanes of a shell on this machine.

    Args:
        shell: The program and its first arguments.
        only_busybox: Let commands find nothing but busybox, as in a scratch image.
    """

    @asynccontextmanager
    async def open_place(scratch: Path, **options: Any) -> AsyncIterator[Place]:
        workspace, home = scratch / "workspace", scratch / "home"
        workspace.mkdir(exist_ok=True)
        home.mkdir(exist_ok=True)

        async def open_channel(argv: Sequence[str]) -> Channel:
            env = child_environment(os.environ, inherit=False)
            if only_busybox:
                env = {"HOME": env["HOME"], "PATH": _busybox_folder()}
            return await open_pipe([*shell, *argv[1:]], env=env)

        kind = {"target": "sh:", "cwd": str(workspace), **options}
        async with ShellBackend(open_channel, **kind) as backend:
            yield Place(backend, backend.cwd, HostSeeder(), str(home))

    return open_place
