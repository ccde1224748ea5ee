"""Which of this process's environment variables commands on this machine get."""

from __future__ import annotations

from collections.abc import Mapping

from backends.engine.shell import QUIET

__all__ = ["child_environment", "left_out"]

#: The host is the target here, so what a shell needs to work passes; tokens and keys do not.
ALLOWED = frozenset(
    {"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV"}
)
_ALLOWED_PREFIX = "LC_"
#: What a shell sets by itself, or the engine for every command: not missed by anybody.
_SET_ANYWAY = frozenset({"_", "OLDPWD", "PWD", "SHLVL"}) | {name.decode() for name in QUIET}


def child_environment(host: Mapping[str, str], *, inherit: bool) -> dict[str, str]:
    """Return what the engine, and so every command, starts with.

    Args:
        host: Our own environment.
        inherit: Pass all of it on.
    """
    return {name: value for name, value in host.items() if inherit or _allowed(name)}


def left_out(
    host: Mapping[str, str], given: Mapping[str, str], *, inherit: bool
) -> tuple[str, ...]:
    """Return the sorted names of variables that commands do not get.

    Args:
        host: Our own environment.
        given: What is set for commands besides.
        inherit: As for `child_environment`.
    """
    if inherit:
        return ()
    missed = (name for name in host if not _allowed(name) and name not in given)
    return tuple(sorted(name for name in missed if name not in _SET_ANYWAY))


def _allowed(name: str) -> bool:
    return name in ALLOWED or name.startswith(_ALLOWED_PREFIX)
