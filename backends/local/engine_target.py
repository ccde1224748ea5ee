"""This machine reached as a remote one is: every operation through frames, over a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from backends.local.env import child_environment
from backends.remote import bootstrap
from backends.remote.backend import RemoteBackend
from backends.remote.channel import Channel, OpenChannel
from backends.remote.pipe import open_pipe

__all__ = ["EngineBackend", "absolute", "engine_opener"]


def absolute(cwd: str | None) -> str:
    """Return an absolute working folder; None is the current one, `~` the user's home."""
    return os.path.abspath(os.path.expanduser(cwd or "."))


class EngineBackend(RemoteBackend):
    """A RemoteBackend whose engine is a child process; for tests of everything remote.

    Args:
        cwd: The folder that tools work in; None for the current one.
        env: Variables for every command, on top of those that pass.
        inherit_env: Pass all of our environment on, not only what a shell needs.
        login_env: Start from the environment of a login shell.
        root: See `RemoteBackend`; relative to the current folder, and what `cwd` is by itself.
        options: `unconfined_commands`, `lease_s`, `settings`: see `RemoteBackend`.
    """

    def __init__(
        self,
        cwd: str | None = None,
        *,
        env: Mapping[str, str] | None = None,
        inherit_env: bool = False,
        login_env: bool = False,
        root: str | None = None,
        **options: Any,
    ) -> None:
        root = None if root is None else absolute(root)
        super().__init__(
            engine_opener(inherit_env=inherit_env, login_env=login_env),
            target="engine:",
            cwd=absolute(cwd or root),
            env=env,
            root=root,
            **options,
        )


def engine_opener(*, inherit_env: bool, login_env: bool) -> OpenChannel:
    """Return what opens a channel to an engine on this machine.

    Args:
        inherit_env: Pass all of our environment on, not only what a shell needs.
        login_env: Start from the environment of a login shell.
    """
    argv = bootstrap.argv(sys.executable)

    async def open_channel() -> Channel:
        env = child_environment(os.environ, inherit=inherit_env)
        if not login_env:
            return await open_pipe(argv, env=env)
        shell = env.get("SHELL", "/bin/sh")
        return await open_pipe([shell, "-l", "-c", 'exec "$@"', shell, *argv], env=env)

    return open_channel
