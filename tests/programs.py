"""Programs that lead somewhere else, for what is tested behind any of them.

Each fixture gives a program's argv, or skips with what it said where it does not run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CACHE = Path(
    os.environ.get("REMOTEHANDS_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "remotehands")
)
#: Not --die-with-parent: its parent is the thread that starts it, which does not last.
_BWRAP = "--ro-bind / / --tmpfs /tmp --dev /dev --proc /proc --unshare-all"
_LIMITS = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096")
#: What reaps orphans, as a shell that waits does, and ends by itself if these tests are killed.
_SLEEP = ("sh", "-c", "n=0; while [ $((n += 1)) -lt 900 ]; do sleep 2; done")


def that_runs(argv: Sequence[str]) -> list[str]:
    """Return a program that can run `/bin/sh` where it leads, or skip with what it said."""
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    command = [*argv, "/bin/sh"]
    done = subprocess.run(command, input=b"exit 0", capture_output=True, timeout=60, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()[-200:]
        pytest.skip(f"{argv[0]} does not run here: {said or f'exit status {done.returncode}'}")
    return list(argv)


def _as_root() -> list[str]:
    return [] if os.geteuid() == 0 else that_runs(["sudo", "-n"])


@pytest.fixture(scope="session")
def debian_folder() -> str:
    """Give a folder with a whole Debian in it, unpacked once and kept beside the cached images."""
    folder = CACHE / "python.root"
    if not (folder / "bin/sh").exists():
        tar = CACHE / "python.tar"
        if not tar.exists():
            pytest.skip("needs the Debian that `scripts/services up` makes with debootstrap")
        part = f"{folder}.{os.getpid()}"
        unpack = 'mkdir "$1" && tar -C "$1" -xpf "$2" && mv -T "$1" "$3"'
        subprocess.run(
            [*_as_root(), "sh", "-c", unpack, "sh", part, str(tar), str(folder)],
            check=True,
            timeout=100,
        )
    return str(folder)


@pytest.fixture(scope="session")
def chroot_argv(debian_folder: str) -> list[str]:
    """Give `chroot` into that Debian."""
    return that_runs([*_as_root(), "chroot", debian_folder])


@pytest.fixture(scope="session")
def sudo_argv() -> list[str]:
    """Give `sudo` to a user who may do nothing."""
    return that_runs(["sudo", "-n", "-u", "nobody"])


@pytest.fixture(scope="session")
def bwrap_argv() -> list[str]:
    """Give a sandbox that sees this machine, can write only to its own /tmp, and has no network."""
    return that_runs(["bwrap", *_BWRAP.split()])


@pytest.fixture(scope="session")
def podman_argv(debian_folder: str) -> Iterator[list[str]]:
    """Give an exec in a container of podman's, on top of that Debian."""
    if shutil.which("podman") is None:
        pytest.skip("podman is not installed")
    podman = [*_as_root(), "podman"]
    # ":O": what is written goes into a layer of the container's own.
    run = [*podman, "run", "-d", "--rm", "--label=remotehands-test", "--network=none", *_LIMITS]
    started = subprocess.run(
        [*run, "--rootfs", f"{debian_folder}:O", *_SLEEP],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if started.returncode != 0:
        pytest.skip(f"podman starts no container here: {started.stderr.strip()[-200:]}")
    container = started.stdout.strip()
    yield that_runs([*podman, "exec", "-i", container])
    remove = [*podman, "rm", "-f", "-t", "0", container]
    subprocess.run(remove, capture_output=True, timeout=60, check=False)
