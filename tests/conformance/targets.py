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
from tests.conformance.containers import behind_program, in_container
from tests.conformance.hosts import in_server, in_sftp_server, over_sftp, over_ssh
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
        open: Given a scratch folder of this machine, what `fixture` gives, and backend options,
            opens a Place.
        fixture: What it stands on: a session fixture that makes it, or skips with the reason.
        loops: The event loops to run under; both where the channel itself may differ.
        lacks: What a test may need and this target has not, with the reason: "commands" (bash at
            all), "shell" (a real POSIX shell and programs), "permissions" (modes are enforced),
            "proc" (a /proc filesystem), "fifo", "root" (confinement to a folder),
            "shared" (a second place sees the files of the first), or a program's
            name.
        differs: Names of tests known to fail here, with the reason; they must fail.
        shares: Given a place, returns the options by which another one has the same files.
    """

    open: Callable[..., AbstractAsyncContextManager[Place]]
    fixture: str = ""
    loops: tuple[str, ...] = ("asyncio",)
    lacks: dict[str, str] = field(default_factory=dict)
    differs: dict[str, str] = field(default_factory=dict)
    shares: Callable[[Place], dict[str, Any]] = lambda _: {}


def _host_folders(scratch: Path) -> tuple[str, str]:
    workspace, home = scratch / "workspace", scratch / "home"
    workspace.mkdir(exist_ok=True)
    home.mkdir(exist_ok=True)
    return str(workspace), str(home)


def _on_this_machine(kind: Any) -> Callable[..., AbstractAsyncContextManager[Place]]:
    @asynccontextmanager
    async def open_place(scratch: Path, **options: Any) -> AsyncIterator[Place]:
        workspace, home = _host_folders(scratch)
        async with kind(**{"cwd": options.get("root", workspace), **options}) as backend:
            yield Place(backend, backend.cwd, HostSeeder(), home)

    return open_place


@asynccontextmanager
async def _in_memory(scratch: Path, **options: Any) -> AsyncIterator[Place]:
    kind = {
        "cwd": options.get("root", "/workspace"),
        "home": "/home/user",
        "commands": handlers(),
        **options,
    }
    async with MemoryBackend(**kind) as backend:
        yield Place(backend, kind["cwd"], TreeSeeder(backend), kind["home"])


_HOST_LACKS = {"permissions": _ROOT_USER} if os.geteuid() == 0 else {}
_BUSYBOX_LACKS = dict.fromkeys(("bash", "nohup", "python3"), "busybox has no such program")

_BOTH = ("asyncio", "trio")
_NO_SUBREAPER = {
    "test_a_process_that_hides_ends_too": (
        "without ctypes there is no subreaper, and what left its session, its parents and its "
        "environment is found by none of them"
    )
}
_NO_ROOT = {"root": "a shell alone cannot confine file tools to a folder; it is refused"}
_NO_PROC = "a bare chroot has no /proc: what left its session cannot be found"

_ONLY_SFTP = "this login gives only SFTP: nothing can be run"
_NO_IDENTITY = "SFTP tells no inode: a file that was replaced by its equal is taken for the same"
_SFTP_LACKS = {
    **dict.fromkeys(("commands", "shell", "proc"), _ONLY_SFTP),
    "root": "SFTP cannot confine file tools to a folder; it is refused",
}
_SFTP_DIFFERS = {
    "test_the_version_follows_the_content_and_the_file": _NO_IDENTITY,
    "test_another_file_of_the_same_content_is_another_version": _NO_IDENTITY,
}


def _service(
    name: str,
    *,
    loops: tuple[str, ...] = ("asyncio",),
    lacks: dict[str, str] | None = None,
    differs: dict[str, str] | None = None,
) -> Target:
    return Target(
        open=in_container(name),
        fixture="compose_containers",
        loops=loops,
        lacks=lacks or {},
        differs=differs or {},
    )


TARGETS: dict[str, Target] = {
    "local": Target(open=_on_this_machine(LocalBackend), loops=_BOTH, lacks=_HOST_LACKS),
    "engine": Target(open=_on_this_machine(EngineBackend), loops=_BOTH, lacks=_HOST_LACKS),
    "memory": Target(
        open=_in_memory,
        loops=_BOTH,
        lacks={
            "shell": "commands in memory are scripted; there is no shell that runs programs",
            "proc": "a tree in memory has no kernel behind it",
        },
        shares=lambda place: {
            "files": {f"/{path}": seed for path, seed in place.backend.snapshot("/").items()}
        },
    ),
    # Services of docker-compose.yml.
    "python": _service("python", loops=_BOTH, lacks={"permissions": _ROOT_USER}),
    "python-minimal": _service(
        "python-minimal", lacks={"permissions": _ROOT_USER}, differs=_NO_SUBREAPER
    ),
    "locked": _service("locked"),
    "minimal": _service(
        "minimal",
        lacks={"permissions": _ROOT_USER, "python3": "this image has none", **_NO_ROOT},
        differs=_NO_SUBREAPER,
    ),
    "busybox": _service(
        "busybox",
        lacks={"permissions": _ROOT_USER, **_BUSYBOX_LACKS, **_NO_ROOT},
        differs=_NO_SUBREAPER,
    ),
    # Programs that lead elsewhere.
    "command": Target(
        open=_on_this_machine(lambda **options: CommandBackend(["sh", "-c"], **options)),
        lacks=_HOST_LACKS,
    ),
    "chroot": Target(
        open=behind_program,
        fixture="chroot_argv",
        lacks={"permissions": _ROOT_USER, "proc": _NO_PROC},
        differs={
            "test_the_end_of_a_call_is_the_end_of_its_processes_there": _NO_PROC,
            "test_our_own_death_ends_everything_there": _NO_PROC,
            "test_background_processes_end_with_the_backend_there": _NO_PROC,
            "test_a_process_that_hides_ends_too": _NO_PROC,
        },
    ),
    "sudo": Target(open=behind_program, fixture="sudo_argv"),
    "bwrap": Target(
        open=behind_program,
        fixture="bwrap_argv",
        lacks={**_HOST_LACKS, "shared": "its /tmp is new for each program, so none sees another's"},
    ),
    "podman": Target(open=behind_program, fixture="podman_argv", lacks={"permissions": _ROOT_USER}),
    # A bare sshd on this machine; asyncssh runs under asyncio only.
    "ssh": Target(open=over_ssh, fixture="sshd_program", lacks=_HOST_LACKS),
    "ssh-sftp": Target(
        open=over_sftp,
        fixture="sshd_program",
        lacks={**_HOST_LACKS, **_SFTP_LACKS},
        differs=_SFTP_DIFFERS,
    ),
    # Users of a server in a container: of fish where there is Python, of tcsh where there is none.
    "sshd": Target(
        open=in_server("sshd", "fish"),
        fixture="compose_servers",
        lacks={"shared": "each place there is a new user's, who cannot use another's"},
    ),
    "sshd-minimal": Target(
        open=in_server("sshd-minimal", "tcsh"),
        fixture="compose_servers",
        lacks={"python3": "this image has none", **_NO_ROOT},
        differs=_NO_SUBREAPER,
    ),
    "sshd-sftp": Target(
        open=in_sftp_server,
        fixture="compose_servers",
        lacks=_SFTP_LACKS,
        differs=_SFTP_DIFFERS,
    ),
    # Lanes of sh on this machine, as where there is no Python.
    "shell": Target(open=in_shell(["sh"]), lacks={**_HOST_LACKS, **_NO_ROOT}),
    "shell-busybox": Target(
        open=in_shell([BUSYBOX, "sh"], only_busybox=True),
        lacks={**_HOST_LACKS, **_BUSYBOX_LACKS, **_NO_ROOT},
    ),
}
