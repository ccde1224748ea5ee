"""Which of this process's environment variables a program that leads elsewhere gets."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["program_environment"]

#: What a shell needs; where `sh -c` or `chroot` is the program, commands get these too.
_SHELL = frozenset({"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"})
#: Where the usual programs find their agent, their cluster or their engine: places, no secrets.
_PROGRAMS = frozenset(
    {
        "CONTAINERS_CONF",
        "CONTAINER_CONNECTION",
        "CONTAINER_HOST",
        "DOCKER_CERT_PATH",
        "DOCKER_CONFIG",
        "DOCKER_CONTEXT",
        "DOCKER_HOST",
        "DOCKER_TLS_VERIFY",
        "KUBECONFIG",
        "SSH_AUTH_SOCK",
        "XDG_CONFIG_HOME",
        "XDG_RUNTIME_DIR",
    }
)


def program_environment(host: Mapping[str, str], *, inherit: bool) -> dict[str, str]:
    """Return what the program starts with.

    Args:
        host: Our own environment.
        inherit: Pass all of it on.
    """
    return {
        name: value
        for name, value in host.items()
        if inherit or name in _SHELL or name in _PROGRAMS or name.startswith("LC_")
    }
