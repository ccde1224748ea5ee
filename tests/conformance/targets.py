"""Every kind of target that the suite runs on: how to open it, and what it cannot do.

A new backend is one more entry in TARGETS; no test changes.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from backends.command import CommandBackend
from backends.local import EngineBackend, LocalBackend
from backends.memory import MemoryBackend
from tests.conformance.containers import engine_is_there, in_container
from tests.conformance.places import Place
from tests.conformance.scripted import handlers
from tests.conformance.seeders import HostSeeder, TreeSeeder
from tests.conformance.shell_targets import BUSYBOX, in_shell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

_ROOT_USER = "the superuser passes every permission check; the unprivileged run covers this"


@dataclass(frozen=True)
class Target:
    """One kind of target.

    Attributes:
        open: Given a scratch folder of this machine and backend options, opens a Place.
        lacks: What a test may need and this target has not, with the reason: "shell" (a real
            POSIX shell and programs), "permissions" (modes are enforced), "proc" (a /proc
            filesystem), "fifo", or a program's name.
        differs: Names of tests known to fail here, with the reason; they must fail.
    """

    open: Callable[..., AbstractAsyncContextManager[Place]]
    lacks: dict[str, str] = field(default_factory=dict)
    differs: dict[str, str] = field(default_factory=dict)


def _host_folders(scratch: Path) -> tuple[str, str]:
    workspace, home = scratch / "workspace", scratch / "home"
    workspace.mkdir(exist_ok=True)
    home.mkdir(exist_ok=True)
    return str(workspace), str(home)


def _on_this_machine(kind: Any) -> Callable[..., AbstractAsyncContextManager[Place]]:
    @asynccontextmanager
    async def open_place(scratch: Path, **options: Any) -> AsyncIterator[Place]:
        workspace, home = _host_folders(scratch)
        async with kind(**{"cwd": workspace, **options}) as backend:
            yield Place(backend, backend.cwd, HostSeeder(), home)

    return open_place


@asynccontextmanager
async def _in_memory(scratch: Path, **options: Any) -> AsyncIterator[Place]:
    kind = {"cwd": "/workspace", "home": "/home/user", "commands": handlers(), **options}
    async with MemoryBackend(**kind) as backend:
        yield Place(backend, kind["cwd"], TreeSeeder(backend), kind["home"])


_HOST_LACKS = {"permissions": _ROOT_USER} if os.geteuid() == 0 else {}
_BUSYBOX_LACKS = dict.fromkeys(("bash", "nohup", "python3"), "busybox has no such program")

TARGETS: dict[str, Target] = {
    "local": Target(open=_on_this_machine(LocalBackend), lacks=_HOST_LACKS),
    "engine": Target(open=_on_this_machine(EngineBackend), lacks=_HOST_LACKS),
    "memory": Target(
        open=_in_memory,
        lacks={
            "shell": "commands in memory are scripted; there is no shell that runs programs",
            "proc": "a tree in memory has no kernel behind it",
        },
    ),
}

TARGETS["command"] = Target(
    open=_on_this_machine(lambda **options: CommandBackend(["sh", "-c"], **options)),
    lacks=_HOST_LACKS,
)
if engine_is_there():
    TARGETS["python"] = Target(open=in_container("python"), lacks={"permissions": _ROOT_USER})
    TARGETS["python-minimal"] = Target(
        open=in_container("python-minimal"), lacks={"permissions": _ROOT_USER}
    )
    TARGETS["locked"] = Target(open=in_container("locked"))
    TARGETS["minimal"] = Target(
        open=in_container("minimal"),
        lacks={"permissions": _ROOT_USER, "python3": "this image has none"},
    )
    TARGETS["busybox"] = Target(
        open=in_container("busybox"), lacks={"permissions": _ROOT_USER, **_BUSYBOX_LACKS}
    )
TARGETS["shell"] = Target(open=in_shell(["sh"]), lacks=_HOST_LACKS)
TARGETS["shell-busybox"] = Target(
    open=in_shell([BUSYBOX, "sh"], only_busybox=True), lacks={**_HOST_LACKS, **_BUSYBOX_LACKS}
)
