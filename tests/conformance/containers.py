"""Targets of docker-compose.yml: started when first asked for, gone when the tests are over."""

from __future__ import annotations

import functools
import itertools
import os
import posixpath
import shlex
import shutil
import socket
import subprocess
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.docker import DockerBackend
from operations import OperationError
from tests.conformance.places import Place

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

ROOT = Path(__file__).parents[2]
_numbers = itertools.count(1)
#: A command's stdin has a limit.
_PIECE = 8 << 20


@functools.cache
def engine_is_there() -> bool:
    """Return True if a Docker engine takes connections here and compose is installed."""
    if shutil.which("docker-compose") is None or not Path("/var/run/docker.sock").exists():
        return False
    with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
        probe.settimeout(2)
        probe.connect("/var/run/docker.sock")
        return True
    return False


@functools.cache
def container_of(service: str) -> str:
    """Return the id of a service's container, started for this process alone."""
    _compose("up", "-d", "--no-build", service)
    return _compose("ps", "-q", service).strip()


def remove_containers() -> None:
    """Remove what `container_of` has started; at the end of a worker's session too."""
    if container_of.cache_info().currsize:
        container_of.cache_clear()
        _compose("down", "-v", "-t", "0")


def _compose(*words: str) -> str:
    project = f"remotehands-conformance-{os.getpid()}"
    command = ["docker-compose", "-p", project, "-f", str(ROOT / "docker-compose.yml"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}: {done.stderr}"
    return done.stdout


def in_container(service: str) -> Callable[..., AbstractAsyncContextManager[Place]]:
    """Return what opens a place in a service's container."""

    @asynccontextmanager
    async def open_place(scratch: Path, **options: Any) -> AsyncIterator[Place]:
        top = f"/work/{scratch.name[:40]}-{next(_numbers)}"
        home = f"{top}/home"
        kind = {
            "workdir": f"{top}/workspace",
            **options,
            "env": {"HOME": home, **options.get("env", {})},
        }
        async with DockerBackend.attach(container_of(service), **kind) as backend:
            for folder in (backend.cwd, home):
                await backend.make_directory(folder)
            try:
                yield Place(backend, backend.cwd, ShellSeeder(backend), home)
            finally:
                with suppress(OperationError):
                    quoted = shlex.quote(top)
                    await ShellSeeder(backend).sh(f"chmod -R u+rwX {quoted}; rm -rf {quoted}")

    return open_place


class ShellSeeder:
    """Files of a far target, by its own programs, each run by the backend's `exec`.

    Args:
        backend: A backend there.
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    async def sh(self, script: str, *paths: str, stdin: bytes = b"") -> bytes:
        """Run a script with paths as "$1" and so on; return its output."""
        output: list[bytes] = []
        words = " ".join(shlex.quote(path) for path in paths)
        result = await self._backend.exec_tail(
            f"set -- {words}; {script}",
            cwd="/",
            stdin=stdin,
            on_snapshot=lambda snapshot: output.append(snapshot.data),
            tail_bytes=1 << 20,
            keep_over_bytes=1 << 30,
            keep_over_lines=1 << 30,
        )
        said = output[-1] if output else b""
        assert result.exit_code == 0, (script, paths, said)
        return said

    async def put(self, path: str, data: bytes) -> None:
        path = path.rstrip("/")
        await self.sh('mkdir -p -- "$2" && : > "$1"', path, posixpath.dirname(path))
        for start in range(0, len(data), _PIECE):
            await self.sh('cat >> "$1"', path, stdin=data[start : start + _PIECE])

    async def get(self, path: str) -> bytes:
        whole: list[bytes] = []
        result = await self._backend.exec(
            f"cat -- {shlex.quote(path)}", cwd="/", on_data=whole.append
        )
        assert result.exit_code == 0, whole
        return b"".join(whole)

    async def mkdir(self, path: str) -> None:
        await self.sh('mkdir -p -- "$1"', path)

    async def symlink(self, target: str, path: str) -> None:
        folder = posixpath.dirname(path)
        await self.sh('mkdir -p -- "$3" && ln -sn -- "$1" "$2"', target, path, folder)

    async def link(self, existing: str, path: str) -> None:
        await self.sh('ln -- "$1" "$2"', existing, path)

    async def chmod(self, path: str, mode: int) -> None:
        await self.sh('chmod -- "$1" "$2"', f"{mode:o}", path)

    async def mode(self, path: str) -> int:
        return int(await self.sh('stat -L -c %a -- "$1"', path), 8)

    async def inode(self, path: str) -> int:
        return int(await self.sh('stat -L -c %i -- "$1"', path))

    async def readlink(self, path: str) -> str | None:
        said = await self.sh('[ ! -L "$1" ] || readlink -n -- "$1"', path)
        return said.decode("utf-8", "surrogateescape") or None

    async def exists(self, path: str) -> bool:
        return await self.sh('[ -e "$1" ] || [ -L "$1" ] && echo y || echo n', path) == b"y\n"

    async def names(self, path: str) -> list[str]:
        said = await self.sh('find "$1" -mindepth 1 -maxdepth 1 -print0', path)
        names = said.decode("utf-8", "surrogateescape").split("\0")[:-1]
        return sorted(posixpath.basename(name) for name in names)

    async def remove(self, path: str) -> None:
        await self.sh('rm -r -- "$1"', path.rstrip("/"))

    async def rename(self, old: str, new: str) -> None:
        await self.sh('mv -T -- "$1" "$2"', old, new)

    async def fifo(self, path: str) -> None:
        await self.sh('mkfifo -- "$1"', path)
