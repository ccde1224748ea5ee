"""A host that is reached over SSH as a place to act."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import anyio

from backends.remote import bootstrap
from backends.remote.backend import RemoteBackend
from backends.remote.channel import Channel, ChannelClosed
from backends.remote.fallback import OPERATIONS
from backends.ssh.address import Address, parse_address, parse_jumps
from backends.ssh.config import DEFAULT_CONFIG
from backends.ssh.credentials import Ask, Asking
from backends.ssh.describe import describe_link
from backends.ssh.line import login_line, with_login_env, with_user
from backends.ssh.links import Links, Route
from backends.ssh.sftp_backend import SftpBackend
from backends.ssh.sftp_session import SftpSession
from operations import BackendUnavailable, OperationError, TargetFacts

__all__ = ["SshBackend"]

_SILENCE_S = 30.0
#: What is tried after an engine's failure gets this at least, and at most.
_LEAST_S, _PROBE_S = 2.0, 10.0
_MOST_SAID = 1 << 20
_CLOSE_S = 2.0
#: How a client of SFTP begins, and the fifth byte of the answer.
_SFTP_INIT, _SFTP_VERSION = b"\0\0\0\x05\x01\0\0\0\x03", b"\x02"
_NOT_CONFINED = (
    "this login gives only SFTP, which cannot confine file tools to a root folder: links could be "
    "swapped between a look and the use; let the server do it (ChrootDirectory)"
)


class SshBackend(RemoteBackend):
    """A RemoteBackend whose engine runs on a host behind an SSH server; made by `connect`.

    One connection and one session on it serve any number of operations at once; a host without
    Python gets several sessions, and further connections where its server limits the sessions of
    one. Where the login gives nothing but SFTP, files are handled through that, and commands are
    refused. Nothing is installed on the host. asyncio only.

    Args:
        route: The way to the host.
        target: The target as the user named it, for errors.
        asking: Whom to ask for secrets.
        cwd: The folder that tools work in; None for the home folder, or "/" where there is none.
        become_user: Whom everything runs as, through `sudo`; None for who logs in.
        login_env: Start from the environment of a login shell.
        connect_timeout_s: See `connect`.
        root: See `RemoteBackend`; what `cwd` is by itself.
        options: See `RemoteBackend`.
    """

    def __init__(
        self,
        route: Route,
        *,
        target: str,
        asking: Asking,
        cwd: str | None = None,
        become_user: str | None = None,
        login_env: bool = False,
        connect_timeout_s: float | None = None,
        root: str | None = None,
        **options: Any,
    ) -> None:
        cwd = cwd or root
        super().__init__(
            self._open,
            target=target,
            cwd=cwd or "/",
            root=root,
            open_lane=self._open_program,
            **options,
        )
        self._target = target
        self._folder = cwd
        self._root = root
        self._silence_s: float = options.get("lease_s") or _SILENCE_S
        self._sftp: SftpBackend | None = None
        self._become_user = become_user
        self._login_env = login_env
        self._links = Links(
            route, target=target, asking=asking, connect_timeout_s=connect_timeout_s
        )
        self._is_open = False

    @classmethod
    def connect(
        cls,
        destination: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        via: str | Sequence[str] | None = None,
        config: str | Sequence[str] | None = DEFAULT_CONFIG,
        known_hosts: str | Sequence[str] | None = None,
        password: Ask | None = None,
        passphrase: Ask | None = None,
        become_user: str | None = None,
        login_env: bool = False,
        connect_timeout_s: float | None = None,
        **options: Any,
    ) -> SshBackend:
        """Return a backend on a host; it connects when it is entered.

        The host's key is always verified: one that is unknown, or another than the known one, is
        BackendUnavailable, with the fingerprints and what to do.

        Args:
            destination: "[user@]host[:port]", where host may be a name of the configuration.
            cwd: The folder that tools work in; None for the home folder.
            env: Variables for every command, on top of the host's own. They go through the
                engine, so the server need not accept any.
            via: Hosts to go through, the nearest first, as "a,b" or a sequence; "none" for no
                host; None for the configuration's ProxyJump.
            config: Configuration files as OpenSSH's; the default may be missing. None for none.
            known_hosts: Files with host keys; None for the configuration's, else OpenSSH's.
            password: Called with "user@host:port" when a host asks for a password; returns it, or
                None. May be async; a plain function is called in a thread.
            passphrase: As `password`, with the file of an encrypted key; None asks on the
                terminal if there is one.
            become_user: Whom everything runs as: the engine is started through `sudo -n -u`.
            login_env: Start from the environment of a login shell (profile files are read).
            connect_timeout_s: Seconds for the whole way to the host, and then for the engine;
                None for the configuration's ConnectTimeout, else 30. Waits for a person's answer
                do not count. To see whether there is only SFTP takes what the engine has left, or
                2; a shell in place of the engine gets as long again; to end what was begun takes
                up to 5 more.
            options: `root` (what `cwd` is by itself), `unconfined_commands`, `lease_s`,
                `settings`: see `RemoteBackend`.

        Raises:
            ValueError: The destination, a host of `via` or `become_user` is malformed.
        """
        address = parse_address(destination)
        if become_user is not None:
            become_user = _user(become_user)
        route = Route(address, _jumps(via), config, known_hosts)
        return cls(
            route,
            target=f"ssh://{address}",
            asking=Asking(password=password, passphrase=passphrase),
            cwd=cwd,
            env=env,
            become_user=become_user,
            login_env=login_env,
            connect_timeout_s=connect_timeout_s,
            **options,
        )

    @property
    def facts(self) -> TargetFacts | None:
        """See `TargetOperations`."""
        return super().facts if self._sftp is None else self._sftp.facts

    async def describe(self) -> dict[str, dict[str, Any]]:
        """Return what is known of the connection (see `describe_link`).

        Raises:
            BackendUnavailable: There is none.
        """
        link = self._links.first
        if link is None or link.login.lost:
            raise BackendUnavailable(self._target, "there is no connection at the moment")
        return describe_link(link, become_user=self._become_user)

    async def __aenter__(self) -> Self:
        self._check_loop()
        if self._is_open:
            raise BackendUnavailable(self._target, "the backend is in use already")
        self._is_open = True
        self._links.enter()
        try:
            await self._enter()
        except BaseException:
            await self._leave()
            raise
        return self

    async def _enter(self) -> None:
        try:
            await super().__aenter__()
        except BackendUnavailable as error:
            await self._use_sftp(error)
        try:
            await self._find_folder()
        except BaseException:
            await self._exit(None, None, None)
            raise

    async def _use_sftp(self, error: BackendUnavailable) -> None:
        """Have SFTP do every operation from now on, if that is all the login gives; else raise."""
        link, is_silent = self._links.first, isinstance(error.__cause__, TimeoutError)
        # sudo's own words say more than that there is nothing but it, and SFTP would have answered.
        if self._become_user is not None or link is None or is_silent:
            raise error
        left_s = link.since + self._links.timeout_s - anyio.current_time()
        sftp = SftpBackend(self._open_sftp, target=self._target)
        try:
            with anyio.fail_after(max(_LEAST_S, left_s)):
                has_shell = await self._has_shell()
                if not has_shell:
                    await sftp.__aenter__()
        except TimeoutError:
            raise error from None
        except OperationError:
            if not error.reason.startswith("the engine ended"):
                raise error from None
            hint = "the server may run something else for this login (ForceCommand, its shell)"
            raise BackendUnavailable(self._target, f"{error.reason}; {hint}") from error
        if has_shell:
            raise error
        if self._root is not None:
            await sftp.__aexit__(None, None, None)
            raise BackendUnavailable(self._target, _NOT_CONFINED)
        self._sftp = sftp
        for name in (*OPERATIONS, "open_program"):
            setattr(self, name, getattr(sftp, name))

    async def _has_shell(self) -> bool:
        """Tell whether a line reaches a shell; True as well where that does not show in time.

        Something else answers where the server forces a command, as `internal-sftp`.
        """
        word = secrets.token_hex(8).encode()
        line = login_line(["/bin/sh", "-c", f"echo {word.decode()}"])
        said = b""
        try:
            channel = await self._links.open(line, program="echo", explain=self._explain)
        except BackendUnavailable:
            return False  # it runs nothing at all
        try:
            with anyio.move_on_after(_PROBE_S) as scope, suppress(ChannelClosed):
                await channel.send(_SFTP_INIT)
                while word not in said and len(said) < _MOST_SAID:
                    chunk = await channel.receive()
                    said += chunk
                    if not chunk or said[4:5] == _SFTP_VERSION:
                        break
        finally:
            with anyio.move_on_after(_CLOSE_S, shield=True):
                await channel.close()
        return scope.cancelled_caught or word in said

    async def _open_sftp(self) -> SftpSession:
        return await self._links.open_sftp(silence_s=self._silence_s)

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self._exit(exc_type, exc, traceback)
        finally:
            await self._leave()

    async def _exit(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        sftp, self._sftp = self._sftp, None
        if sftp is not None:
            for name in (*OPERATIONS, "open_program"):
                delattr(self, name)
            await sftp.__aexit__(exc_type, exc, traceback)
        await super().__aexit__(exc_type, exc, traceback)

    async def _leave(self) -> None:
        self._is_open = False
        await self._links.close()

    async def _find_folder(self) -> None:
        if self.facts is None:
            return
        home, folder = self.facts.home, self._folder
        if folder is None:
            self.cwd = await self.usable_home()
        elif folder == "~" or folder.startswith("~/"):
            self.cwd = home.rstrip("/") + folder[1:]

    def _check_loop(self) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            reason = (
                "asyncssh, which this backend stands on, runs under asyncio only, and this is "
                "another event loop (trio?); use asyncio, or the target 'command:ssh HOST'"
            )
            raise BackendUnavailable(self._target, reason) from None

    async def _open(self) -> Channel:
        channel = await self._open_program(bootstrap.shell_argv(), "the engine")
        self._limit_start(self._links.timeout_s)  # which the configuration may say
        return channel

    async def _open_program(self, argv: Sequence[str], program: str = "the program") -> Channel:
        if self._login_env:
            argv = with_login_env(argv)
        if self._become_user is not None:
            argv = with_user(argv, self._become_user)
        return await self._links.open(login_line(argv), program=program, explain=self._explain)

    def _explain(self, last: str) -> str | None:
        """Return what sudo's refusals mean here."""
        user = self._become_user
        if user is not None and last.startswith("sudo:") and "password" in last:
            return (
                f"sudo wants a password before it runs anything as {user}, and nobody is there to "
                f"type it: let sudoers say NOPASSWD, or log in as {user} ({last})"
            )
        if user is not None and last.startswith("sudo:"):
            return f"sudo does not let us become {user}: {last}"
        return None


def _user(name: str) -> str:
    try:
        address = parse_address(f"{name}@host")
    except ValueError:
        address = Address("host")
    if address.user != name:
        raise ValueError(f"become_user: {name!r} is no user's name")
    return name


def _jumps(via: str | Sequence[str] | None) -> tuple[Address, ...] | None:
    if via is None:
        return None
    if isinstance(via, str):
        return parse_jumps(via)
    return tuple(parse_address(host) for host in via)
