"""Any program that runs another somewhere (`sudo -n -u other`, `chroot DIR`) as a channel."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Self

import anyio

from backends.command.environment import program_environment
from backends.remote import bootstrap
from backends.remote.backend import RemoteBackend
from backends.remote.channel import Channel, ChannelClosed
from backends.remote.pipe import PipeChannel, open_pipe
from operations import BackendUnavailable

__all__ = ["CommandBackend"]

#: What the shell prints once it has read its one line, and so reads nothing of what comes next.
_MARK = b"remotehands: ready\n"
_MAX_NOISE = 1 << 20
#: Before the engine is there nothing has to be settled.
_CLOSE_S = 0.5


class CommandBackend(RemoteBackend):
    """A RemoteBackend behind a program that runs another one wherever it leads.

    The program gets one more argument, `/bin/sh`, and everything else goes through that shell's
    stdin. So it makes no difference whether the program takes a command line (`sh -c`), an argv
    (`chroot DIR`, `podman exec -i C`, `sudo -n -u other`), or joins its arguments for a login
    shell (`ssh host`). It must give a plain stdin and stdout: no terminal, no question. It may
    not ask to die with its parent (`bwrap --die-with-parent`): for Linux that is the thread which
    started it, and that ends; it sees the end of its stdin when we die.

    Args:
        argv: The program and its arguments.
        cwd: The folder that tools work in, on the target; None for the home folder there, or
            "/" where there is none.
        env: Variables for every command, on top of the target's own.
        inherit_env: Give the program all of our environment, not only what a shell and the usual
            programs need (see `backends.command.environment`).
        connect_timeout_s: Seconds until a shell, and then the engine, counts as not coming.
        root: See `RemoteBackend`; what `cwd` is by itself.
        options: `unconfined_commands`, `lease_s`, `settings`: see `RemoteBackend`.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        inherit_env: bool = False,
        connect_timeout_s: float = 30.0,
        root: str | None = None,
        **options: Any,
    ) -> None:
        if not argv:
            raise ValueError("the program is missing, as in ['sudo', '-n', '-u', 'other']")
        self._argv = list(argv)
        self._inherit_env = inherit_env
        self._timeout_s = connect_timeout_s
        self._target = f"command:{shlex.join(argv)}"
        super().__init__(
            self._open,
            target=self._target,
            cwd=cwd or root or "/",
            env=env,
            root=root,
            connect_timeout_s=connect_timeout_s,
            open_lane=self._open_program,
            **options,
        )
        self._cwd_is_home = cwd is None and root is None

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        try:
            if self._cwd_is_home and self.facts is not None:
                self.cwd = await self.usable_home()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def _open(self) -> Channel:
        return await self._open_program(bootstrap.shell_argv(), "the engine")

    async def _open_program(self, argv: Sequence[str], name: str = "the program") -> Channel:
        env = program_environment(os.environ, inherit=self._inherit_env)
        try:
            channel = await open_pipe([*self._argv, "/bin/sh"], env=env, program=name)
        except OSError as error:
            reason = f"{self._argv[0]} cannot be started: {error.strerror or error}"
            raise BackendUnavailable(self._target, reason) from error
        try:
            with anyio.fail_after(self._timeout_s):
                await self._hand_over(channel, argv, name)
        except BaseException as error:
            with anyio.move_on_after(_CLOSE_S, shield=True):
                await channel.close()
            if isinstance(error, TimeoutError):
                reason = f"it gave no shell within {self._timeout_s:g} seconds"
                raise BackendUnavailable(self._target, reason) from error
            raise
        return channel

    async def _hand_over(self, channel: PipeChannel, argv: Sequence[str], name: str) -> None:
        """Have the shell become another program; wait until it reads no more itself.

        A shell reads its script in blocks: what came too early would be lost in it.
        """
        mark = shlex.quote(_MARK.decode().strip())
        line = f"printf '%s\\n' {mark}; exec {shlex.join(argv)}\n"
        seen = b""
        try:
            await channel.send(line.encode())
            while data := await channel.receive():
                seen += data
                if _MARK in seen:
                    return
                if len(seen) > _MAX_NOISE:
                    raise BackendUnavailable(self._target, "it floods its output; it gave no shell")
        except ChannelClosed:
            pass  # how the program ended says more
        # Before the mark there is no engine yet: what ended is the program.
        ended = (await channel.exit_report()).replace(name, self._argv[0], 1)
        raise BackendUnavailable(self._target, f"it gave no shell: {ended}")
