"""Targets as text: which backend a URL stands for."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backends.command import CommandBackend
    from backends.docker import DockerBackend
    from backends.local import EngineBackend, LocalBackend
    from backends.memory import MemoryBackend
    from backends.ssh import SshBackend

    #: Any backend that a URL can stand for.
    Backend = (
        LocalBackend | EngineBackend | MemoryBackend | CommandBackend | DockerBackend | SshBackend
    )

__all__ = ["open_target"]

#: What can be named, for people; "engine:" exists too, for tests.
TARGETS = {
    "local": "local: or local:/folder (this machine)",
    "memory": "memory: or memory:/folder (a copy of a folder, in memory)",
    "docker": "docker://CONTAINER[/dir][?user=&env=] (a running container)",
    "docker+run": "docker+run://IMAGE[/dir][?network=&memory=...] (a container of its own)",
    "ssh": "ssh://[USER@]HOST[:PORT][/dir][?via=&user=...] (a host behind an SSH server)",
    "command": "command:ARGV... (wherever a program leads, as in command:sudo -n -u other)",
}


def open_target(
    url: str,
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    keep_output: bool = False,
    **options: Any,
) -> Backend:
    """Return the backend that a target's URL names, not yet entered.

    Other packages add schemes by the entry point group `remotehands.backends`: its name is the
    scheme, and what it names is called with the URL, `cwd`, `env` and a dict of further options,
    and returns a backend.

    Args:
        url: One of TARGETS.
        cwd: The folder that tools work in; None for the URL's, else the backend's default.
        env: Variables for every command.
        keep_output: Leave the whole output of commands on the target for 24 hours, for whoever
            comes after this backend; it is removed on close otherwise.
        options: What else the backend takes.

    Raises:
        ValueError: No backend has the scheme, or what follows it is not as the scheme wants it.
    """
    scheme, colon, _ = url.partition(":")
    opener = (_OPENERS.get(scheme) or _installed(scheme)) if colon else None
    if opener is None:
        raise ValueError(f"{url!r}: no such target; there are {', '.join(TARGETS.values())}")
    elsewhere = scheme not in ("local", "engine")  # where a path may be relative to our folder
    if cwd is not None and elsewhere and not (cwd.startswith("/") or f"{cwd}/".startswith("~/")):
        raise ValueError(f"cwd has to be an absolute path on the target, or in ~/, not {cwd!r}")
    if keep_output and scheme != "memory":  # whose files end with it anyway
        options["settings"] = {**options.get("settings", {}), "keep_output": True}
    return opener(url, cwd, env, options)


def _installed(scheme: str) -> Callable[..., Backend] | None:
    """Return what another package opens a scheme with, or None.

    Raises:
        ValueError: The package cannot be loaded.
    """
    from importlib.metadata import entry_points

    found = next(iter(entry_points(group="remotehands.backends", name=scheme)), None)
    if found is None:
        return None
    told = f"{scheme}: is {found.value}, which"
    try:
        opener: Callable[..., Backend] = found.load()
    except Exception as error:
        raise ValueError(f"{told} cannot be loaded: {error!r}") from error

    def checked(*args: Any) -> Backend:
        try:
            return opener(*args)
        except (ValueError, OSError):
            raise
        except Exception as error:
            raise ValueError(f"{told} failed: {error!r}") from error

    return checked


def _host_folder(url: str) -> str | None:
    """Return the folder of this machine that a URL names, or None."""
    scheme, _, folder = url.partition(":")
    if folder and not folder.startswith("/"):
        raise ValueError(f"{url!r}: the folder must be absolute, as in {scheme}:/folder")
    if folder and not os.path.isdir(folder):
        raise ValueError(f"{url!r}: {folder} is not a folder")
    return folder or None


# The imports stand inside: naming one target must not load the others.


def _open_local(
    url: str, cwd: str | None, env: Mapping[str, str] | None, options: dict[str, Any]
) -> LocalBackend:
    from backends.local import LocalBackend

    return LocalBackend(cwd or _host_folder(url), env=env, **options)


def _open_engine(
    url: str, cwd: str | None, env: Mapping[str, str] | None, options: dict[str, Any]
) -> EngineBackend:
    from backends.local import EngineBackend

    return EngineBackend(cwd or _host_folder(url), env=env, **options)


def _open_memory(
    url: str, cwd: str | None, env: Mapping[str, str] | None, options: dict[str, Any]
) -> MemoryBackend:
    from backends.memory import MemoryBackend

    folder = _host_folder(url)
    if cwd is not None:
        options["cwd"] = cwd
    if folder is not None:
        return MemoryBackend.from_directory(folder, env=env, **options)
    return MemoryBackend(env=env, **options)


def _open_docker(
    url: str, cwd: str | None, env: Mapping[str, str] | None, options: dict[str, Any]
) -> DockerBackend:
    from backends.docker import DockerBackend
    from backends.docker.urls import attach_options

    return DockerBackend.attach(**_joined(attach_options(url), cwd, env, options))


def _open_docker_run(
    url: str, cwd: str | None, env: Mapping[str, str] | None, options: dict[str, Any]
) -> DockerBackend:
    from backends.docker import DockerBackend
    from backends.docker.urls import run_options

    return DockerBackend.run(**_joined(run_options(url), cwd, env, options))


def _open_ssh(
    url: str, cwd: str | None, env: Mapping[str, str] | None, options: dict[str, Any]
) -> SshBackend:
    try:
        from backends.ssh import SshBackend
        from backends.ssh.urls import connect_options
    except ModuleNotFoundError as error:
        if error.name != "asyncssh":
            raise
        raise ValueError("the asyncssh package is missing; install remotehands[ssh]") from None
    joined = _joined(connect_options(url), None, env, options)
    return SshBackend.connect(**joined if cwd is None else {**joined, "cwd": cwd})


def _joined(
    said: dict[str, Any],
    cwd: str | None,
    env: Mapping[str, str] | None,
    options: dict[str, Any],
) -> dict[str, Any]:
    """Return what a URL said, with what was given besides, which counts more."""
    joined = {**said, **options, "env": {**said.get("env", {}), **(env or {})}}
    return joined if cwd is None else {**joined, "workdir": cwd}


def _open_command(
    url: str, cwd: str | None, env: Mapping[str, str] | None, options: dict[str, Any]
) -> CommandBackend:
    from backends.command import CommandBackend

    try:
        argv = shlex.split(url.partition(":")[2])
    except ValueError as error:
        raise ValueError(f"{url!r}: {error}") from None
    return CommandBackend(argv, cwd=cwd, env=env, **options)


_OPENERS: dict[str, Callable[..., Backend]] = {
    "local": _open_local,
    "memory": _open_memory,
    "engine": _open_engine,
    "docker": _open_docker,
    "docker+run": _open_docker_run,
    "ssh": _open_ssh,
    "command": _open_command,
}
