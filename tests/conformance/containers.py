"""Targets elsewhere: in a container, or wherever a program leads."""

from __future__ import annotations

import io
import itertools
import os
import posixpath
import shlex
import tarfile
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from backends.command import CommandBackend
from backends.docker import DockerBackend
from operations import OperationError
from tests.conformance.places import Place

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

_numbers = itertools.count(1)
#: `ln` would make a link inside a folder that has the name.
_FREE = '[ ! -e "$2" ] && [ ! -L "$2" ]'
#: A command's stdin has a limit.
_PIECE = 8 << 20


def in_container(service: str) -> Callable[..., AbstractAsyncContextManager[Place]]:
    """Return what opens a place in a service's container, given the ids of all services'."""

    @asynccontextmanager
    async def open_place(
        scratch: Path, containers: Mapping[str, str], **options: Any
    ) -> AsyncIterator[Place]:
        top = f"/work/{_new_name(scratch)}"
        home = f"{top}/home"
        kind = {
            "workdir": options.get("root", f"{top}/workspace"),
            **options,
            "env": {"HOME": home, **options.get("env", {})},
        }
        async with (
            DockerBackend.attach(containers[service], **kind) as backend,
            _folders(backend, top, home, options),
        ):
            yield Place(backend, backend.cwd, ShellSeeder(backend), home)

    return open_place


@asynccontextmanager
async def behind_program(
    scratch: Path, argv: Sequence[str], **options: Any
) -> AsyncIterator[Place]:
    """Open a place behind a program, in a new folder of whatever /tmp it leads to."""
    top = f"/tmp/{_new_name(scratch)}"
    home = f"{top}/home"
    kind = {"cwd": options.get("root", f"{top}/workspace"), **options}
    async with (
        CommandBackend([*argv, "env", f"HOME={home}"], **kind) as backend,
        _folders(backend, top, home, options),
    ):
        yield Place(backend, backend.cwd, ShellSeeder(backend), home)


def _new_name(scratch: Path) -> str:
    return f"{scratch.name[:40]}-{os.getpid()}-{next(_numbers)}"


@asynccontextmanager
async def _folders(
    backend: Any, top: str, home: str, options: Mapping[str, Any]
) -> AsyncIterator[None]:
    if "root" in options:  # which is another place's
        yield
        return
    for folder in (backend.cwd, home):
        await backend.make_directory(folder)
    try:
        yield
    finally:
        with suppress(OperationError):
            quoted = shlex.quote(top)
            await ShellSeeder(backend).sh(f"chmod -R u+rwX {quoted}; rm -rf {quoted}")


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
        first, folder = data[:_PIECE], posixpath.dirname(path)
        await self.sh('mkdir -p -- "$2" && cat > "$1"', path, folder, stdin=first)
        for start in range(_PIECE, len(data), _PIECE):
            await self.sh('cat >> "$1"', path, stdin=data[start : start + _PIECE])

    async def put_all(self, files: Mapping[str, bytes]) -> None:
        """Unpack an archive; it must be smaller than what a command's stdin takes."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for path, data in files.items():
                entry = tarfile.TarInfo(path.lstrip("/"))
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        await self.sh("tar -x -o -m -f - -C /", stdin=packed.getvalue())

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
        await self.sh(f'mkdir -p -- "$3" && {_FREE} && ln -s -- "$1" "$2"', target, path, folder)

    async def link(self, existing: str, path: str) -> None:
        await self.sh(f'{_FREE} && ln -- "$1" "$2"', existing, path)

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
