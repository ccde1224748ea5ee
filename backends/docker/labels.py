"""Whose containers are whose: the labels of ours, and whether their owner still lives."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Mapping
from pathlib import Path

__all__ = ["OWNER", "abandoned", "labels"]

#: Marks every container that `DockerBackend.run` starts; its value is the owner's uid.
OWNER = "remotehands.owner"
_HOST = "remotehands.host"
_PID = "remotehands.pid"
_START = "remotehands.start"


def labels() -> dict[str, str]:
    """Return what is written on a container of this process."""
    pid = os.getpid()
    return {OWNER: str(os.getuid()), _HOST: _host(), _PID: str(pid), _START: _start(pid) or ""}


def abandoned(found: Mapping[str, str]) -> bool:
    """Return True if a container's owner was a process of this machine and has ended.

    Args:
        found: The container's labels.
    """
    pid = found.get(_PID, "")
    if found.get(_HOST) != _host() or not pid.isdigit():
        return False
    return _start(int(pid)) != found.get(_START)


def _host() -> str:
    """Return a name for where pids mean what they mean here: a machine, or a container on it."""
    space = ""
    with contextlib.suppress(OSError):
        space = f"/{os.stat('/proc/self/ns/pid').st_ino}"
    return platform.node() + space


def _start(pid: int) -> str | None:
    """Return text that tells a process from any other with its pid, or None if there is none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _start_elsewhere(pid)
    return f"{boot}/{stat.rpartition(')')[2].split()[19]}"


def _start_elsewhere(pid: int) -> str | None:
    """Without /proc only whether a process is there can be told."""
    if Path("/proc/self/stat").exists():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return ""
