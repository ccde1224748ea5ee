"""Which values the options of containers can have: what is wrong, and what would be right."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["check_container", "check_sandbox", "check_seconds"]

#: As docker reads it: "2g", "512m", "1048576".
_SIZE = re.compile(r"([0-9]{1,15})([bkmgt]?)", re.IGNORECASE)
_UNITS = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}
#: What Docker gives a container at the least.
_LEAST_MEMORY = 6 << 20
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*(:[A-Za-z0-9_][A-Za-z0-9_.@-]*)?")
_CAPABILITY = re.compile(r"[A-Z][A-Z_]*")
_PROFILES = ("unconfined", "builtin")


def check_container(
    *, user: str | None = None, workdir: str | None, env: Mapping[str, str] | None
) -> None:
    """See that what any container is worked on with makes sense.

    Raises:
        ValueError: One does not; the text names it.
    """
    if user:
        _check(_USER.fullmatch(user), "user", "'uid:gid', a uid or a name", user)
    if workdir is not None:
        _check_folder("workdir", workdir)
    for name, value in (env or {}).items():
        fine = bool(name) and "=" not in name and "\0" not in name
        _check(fine, "a variable in env", "a name without '=' and NUL", name)
        fine = isinstance(value, str) and "\0" not in value
        _check(fine, f"env[{name!r}]", "text without NUL", value)


def check_sandbox(sandbox: Any) -> None:
    """See that each field of a `Sandbox` is one that Docker can keep.

    Raises:
        ValueError: One is not; the text names it.
    """
    for name in ("read_only", "new_privileges", "init"):
        value = getattr(sandbox, name)
        _check(isinstance(value, bool), name, "true or false", value)
    _check(_matches(_USER, sandbox.user), "user", "'uid:gid', a uid or a name", sandbox.user)
    _check_name("network", sandbox.network, "'none', 'bridge' or a network's name")
    _check_size("memory", sandbox.memory, least=_LEAST_MEMORY)
    _check_size("tmp_size", sandbox.tmp_size, least=1)
    cpus = sandbox.cpus
    fine = _is_number(cpus) and math.isfinite(cpus) and cpus >= 0.01
    _check(fine, "cpus", "a number of processors from 0.01 on", cpus)
    pids = sandbox.pids
    fine = _is_number(pids) and pids == int(pids) and (pids >= 1 or pids == -1)
    _check(fine, "pids", "a whole number from 1 on, or -1 for no limit", pids)
    names = sandbox.capabilities
    fine = isinstance(names, tuple | list) and all(_matches(_CAPABILITY, name) for name in names)
    _check(fine, "capabilities", "names in a tuple, as ('CHOWN',)", names)
    profile = sandbox.seccomp
    fine = profile is None or profile in _PROFILES or str(profile).lstrip().startswith("{")
    _check(fine, "seccomp", "'unconfined' or the text of a profile, which is JSON", profile)
    if sandbox.runtime is not None:
        _check_name("runtime", sandbox.runtime, "the name of a runtime, as 'runsc'")
    if sandbox.mount is not None:
        _check_folder("mount", sandbox.mount)


def check_seconds(name: str, value: object) -> None:
    """See that a time is one.

    Raises:
        ValueError: It is not.
    """
    fine = isinstance(value, int | float) and _is_number(value) and 0 < value < math.inf
    _check(fine, name, "a number of seconds above 0", value)


def _check_size(name: str, value: object, *, least: int) -> None:
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    _check(found, name, "a size as docker writes it, as '2g' or '512m'", value)
    assert found is not None
    size = int(found[1]) << _UNITS[found[2].lower()]
    _check(size >= least, name, f"at least {_shown(least)}", value)


def _check_folder(name: str, value: object) -> None:
    fine = isinstance(value, str) and value.startswith("/") and "\0" not in value
    _check(fine, name, "an absolute path, as '/srv/project'", value)


def _check_name(name: str, value: object, kind: str) -> None:
    fine = isinstance(value, str) and bool(value) and not re.search(r"[\s\0]", value)
    _check(fine, name, kind, value)


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check(fine: object, name: str, kind: str, value: object) -> None:
    if not fine:
        raise ValueError(f"{name} is {kind}, not {value!r}")


def _shown(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size} byte"
