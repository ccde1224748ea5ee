"""Whose containers are whose: the labels of ours, and whether their owner still lives."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["OWNER", "abandoned", "labels"]

#: Marks every container that `DockerBackend.run` starts; its value is the owner's uid.
OWNER = "remotehands.owner"
_HOST = "remotehands.host"
_PID = "remotehands.pid"
_START = "remotehands.start"
_PID_TEXT = re.compile("[1-9][0-9]{0,8}")


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
    if found.get(_HOST) != _host() or not _PID_TEXT.fullmatch(pid):
        return False
    start = _start(int(pid))
    return start != found.get(_START) and not (start is None and _exists(int(pid)))


def _host() -> str:
    """Return a name for where pids mean what they mean here: a machine, or a container on it.

    Two machines that use one engine may have one name, and the pid namespace that each begins
    with has one number everywhere.
    """
    machine = space = ""
    with contextlib.suppress(OSError):
        machine = f"/{Path('/etc/machine-id').read_text(encoding='ascii').strip()[:8]}"
    with contextlib.suppress(OSError):
        space = f"/{os.stat('/proc/self/ns/pid').st_ino}"
    return platform.node() + machine + space


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
    return "" if _exists(pid) else None


def _exists(pid: int) -> bool:
    """Return True if there is such a process, also one that /proc hides (`hidepid`)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
