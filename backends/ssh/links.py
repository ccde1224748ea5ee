"""Connections to one host: one is enough, unless its server limits the sessions of each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import asyncssh
from asyncssh.constants import OPEN_REQUEST_SESSION_FAILED

from backends.ssh.address import Address
from backends.ssh.channel import SshChannel, open_session
from backends.ssh.config import HostSettings, read_settings
from backends.ssh.credentials import Asking
from backends.ssh.faults import Unreachable, Unusable
from backends.ssh.login import Login, log_in
from backends.ssh.sftp_session import SftpSession, start_sftp
from operations import BackendUnavailable

__all__ = ["Link", "Links", "Route"]

T = TypeVar("T")

#: Pauses before further attempts after a loss, as while a server is restarted.
_PAUSES_S = (0.1, 0.4, 1.0, 2.0)
#: A session on a connection that was there already opens within this, or it is not there.
_SESSION_S = 10.0
#: What the first session gets in any case, after a slow way.
_LEAST_S = 1.0
_AGAIN_S = 0.1
_MOST_JUMPS = 16
_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Route:
    """The way to a host.

    Attributes:
        address: The host as it was named.
        via: Hosts to go through, the nearest first; None for what the configuration says.
        config: See `read_settings`.
        known_hosts: See `read_settings`.
    """

    address: Address
    via: tuple[Address, ...] | None
    config: Any
    known_hosts: Any

    def plan(self) -> list[HostSettings]:
        """Return the settings of each host on the way, the nearest first; blocks.

        Raises:
            Unusable: See `read_settings`; or jumps go round in circles.
        """
        hosts = self._plan(self.address, self.via)
        if len(hosts) > _MOST_JUMPS:
            raise Unusable(f"ProxyJump leads over more than {_MOST_JUMPS} hosts, or in circles")
        return hosts

    def _plan(
        self, address: Address, via: tuple[Address, ...] | None, depth: int = 0
    ) -> list[HostSettings]:
        host = self._read(address)
        # `Host *` with a ProxyJump means all but the jump host itself.
        own = tuple(jump for jump in host.jumps if jump.host != address.host)
        jumps = own if via is None else via
        if not jumps:
            return [host if via is None else host.directly()]
        if depth > _MOST_JUMPS:
            raise Unusable(f"ProxyJump leads in circles at {address}")
        # As for OpenSSH, only the first of a chain may have a way of its own.
        nearest = self._plan(jumps[0], None, depth + 1)
        between = [self._read(jump).directly() for jump in jumps[1:]]
        return [*nearest, *between, host.directly()]

    def _read(self, address: Address) -> HostSettings:
        return read_settings(address, config=self.config, known_hosts=self.known_hosts)


class Link:
    """A connection to the host, through those to the hosts on the way.

    Args:
        logins: One for each host, the nearest first.
    """

    def __init__(self, logins: list[Login]) -> None:
        self.logins = logins
        #: When it was there, and until when its first session must be.
        self.since = self.due = anyio.current_time()
        #: How many sessions are open on it.
        self.sessions = 0
        #: False while the server opens no further one.
        self.has_room = True
        #: True after it has opened no session though none was open.
        self.is_doubted = False

    @property
    def login(self) -> Login:
        """The one to the host itself."""
        return self.logins[-1]

    async def close(self) -> None:
        """End all of them, the farthest first; bounded."""
        for login in reversed(self.logins):
            await login.close()

    def abort(self) -> None:
        """End all of them at once."""
        for login in reversed(self.logins):
            login.abort()


class Links:
    """Open sessions on as few connections as the server allows.

    Args:
        route: The way to the host.
        target: The target as the user named it, for errors.
        asking: Whom to ask for secrets.
        connect_timeout_s: Seconds for the whole way there; None for what the configuration says,
            else 30.
    """

    def __init__(
        self, route: Route, *, target: str, asking: Asking, connect_timeout_s: float | None
    ) -> None:
        self._route = route
        self._target = target
        self._asking = asking
        self._given_s = connect_timeout_s
        #: Seconds that the way may take, and then what is started there.
        self.timeout_s = connect_timeout_s or _TIMEOUT_S
        self._links: list[Link] = []
        self._connecting = anyio.Lock()
        self._failure: BackendUnavailable | None = None
        self._was_there = False
        self._open = False

    @property
    def first(self) -> Link | None:
        """The connection that has been there longest; None without any."""
        return self._links[0] if self._links else None

    def enter(self) -> None:
        """Make ready to connect."""
        self._open = True

    async def close(self) -> None:
        """End all connections, also when the caller is cancelled; bounded."""
        self._open = False
        links, self._links = self._links, []
        with anyio.CancelScope(shield=True):
            for link in links:
                await link.close()

    async def open(
        self, line: str, *, program: str, explain: Callable[[str], str | None]
    ) -> SshChannel:
        """Have the host run a line and return the channel to it.

        Args:
            line: What the user's login shell is given.
            program: What runs there, for errors.
            explain: See `open_session`.

        Raises:
            BackendUnavailable: The host is not to be had, or opens no session.
        """

        async def start(link: Link, release: Callable[[], None]) -> SshChannel:
            return await open_session(
                link.login.connection, line, program=program, explain=explain, on_closed=release
            )

        return await self._open_on_any(start)

    async def open_sftp(self, *, silence_s: float) -> SftpSession:
        """Open a session of the host's SFTP.

        Args:
            silence_s: See `SftpSession`.

        Raises:
            BackendUnavailable: The host is not to be had, or has no SFTP for us.
        """

        async def start(link: Link, release: Callable[[], None]) -> SftpSession:
            client = await start_sftp(link.login.connection)
            return SftpSession(
                client,
                target=self._target,
                identity=f"{link.login.settings} {_key_of(link.login)}",
                silence_s=silence_s,
                abort=link.abort,
                on_closed=release,
                why=lambda: link.login.error,
            )

        return await self._open_on_any(start)

    async def _open_on_any(self, start: Callable[[Link, Callable[[], None]], Awaitable[T]]) -> T:
        while True:
            link, is_new = await self._link()
            try:
                session = await self._open_on(link, start, is_new=is_new)
            except (asyncssh.Error, OSError) as error:
                if _is_refusal(error):
                    raise self._no_session(link, error) from error
                if is_new or isinstance(error, asyncssh.SFTPError):
                    self._forget(link)
                    raise self._no_session(link, error) from error
                await self._doubt(link, error)
            else:
                link.is_doubted = False
                return session

    def _no_session(self, link: Link, error: Exception) -> BackendUnavailable:
        said = getattr(error, "reason", "") or "it does not answer"
        reason = f"{link.login.settings} opens no session for us: {said}"
        return BackendUnavailable(self._target, reason)

    async def _doubt(self, link: Link, error: Exception) -> None:
        """Decide about a connection that was good once and on which no session opens now."""
        if link.login.lost or isinstance(error, TimeoutError):
            self._forget(link)
        elif link.sessions:
            link.has_room = False
        elif link.is_doubted:
            self._forget(link)
        else:
            # OpenSSH still counts a session whose end arrives together with the next one's start.
            link.is_doubted = True
            await anyio.sleep(_AGAIN_S)

    async def _open_on(
        self, link: Link, start: Callable[[Link, Callable[[], None]], Awaitable[T]], *, is_new: bool
    ) -> T:
        open_still = True

        def release() -> None:
            nonlocal open_still
            if open_still:
                open_still = False
                link.sessions -= 1
                link.has_room = True
                if not link.sessions and link in self._links[1:]:
                    self._forget(link)

        # The first belongs to the way, whose time may be nearly up.
        left_s = max(_LEAST_S, link.due - anyio.current_time()) if is_new else _SESSION_S
        link.sessions += 1
        try:
            with anyio.fail_after(min(left_s, _SESSION_S)):
                session = await start(link, release)
        except BaseException:
            release()
            raise
        link.login.has_session()
        return session

    def _forget(self, link: Link) -> None:
        """End a connection that is of no use any more."""
        if link in self._links:
            self._links.remove(link)
        link.abort()

    async def _link(self) -> tuple[Link, bool]:
        """Return a connection that may have room for a session, and whether it is a new one."""
        before = self._failure
        async with self._connecting:
            for link in list(self._links):
                if link.login.lost:
                    self._forget(link)
                elif link.has_room:
                    return link, False
            if self._failure is not None and self._failure is not before:
                # Of several lanes that waited for one attempt, the last would wait for as many.
                raise BackendUnavailable(*self._failure.args)
            try:
                link = await self._connect()
            except BackendUnavailable as error:
                self._failure = error
                raise
            if not self._open:
                link.abort()
                raise BackendUnavailable(self._target, "the backend was closed meanwhile")
            self._links.append(link)
            self._was_there = True
            return link, True

    async def _connect(self) -> Link:
        if not self._open:
            reason = "the backend is not open; use it in `async with`"
            raise BackendUnavailable(self._target, reason)
        try:
            hosts = await anyio.to_thread.run_sync(self._route.plan)
        except Unusable as error:
            raise BackendUnavailable(self._target, str(error)) from error
        timeout_s = self._given_s or hosts[-1].connect_timeout_s or _TIMEOUT_S
        self.timeout_s = timeout_s
        try:
            with anyio.fail_after(timeout_s) as deadline:
                self._asking.deadline = deadline
                link = await self._attempt(hosts)
                link.due = deadline.deadline  # later than it was, if somebody was asked
                return link
        except TimeoutError as error:
            reason = f"{hosts[-1]} was not to be had within {timeout_s:g} seconds"
            raise BackendUnavailable(self._target, reason) from error
        except Unreachable as error:
            raise BackendUnavailable(self._target, str(error)) from error

    async def _attempt(self, hosts: list[HostSettings]) -> Link:
        """Log in, and again after a pause where a host that was there is away for a moment."""
        for pause_s in _PAUSES_S if self._was_there else ():
            try:
                return await self._log_in(hosts)
            except Unreachable as error:
                if not error.passing:
                    raise
            await anyio.sleep(pause_s)
        return await self._log_in(hosts)

    async def _log_in(self, hosts: list[HostSettings]) -> Link:
        logins: list[Login] = []
        try:
            for host in hosts:
                tunnel = logins[-1].connection if logins else None
                logins.append(await log_in(host, tunnel, self._asking))
        except BaseException:
            Link(logins).abort()
            raise
        return Link(logins)


def _is_refusal(error: Exception) -> bool:
    """Return True where all but what was to run was fine, the connection too."""
    refused = isinstance(error, asyncssh.ChannelOpenError)
    return refused and getattr(error, "code", None) == OPEN_REQUEST_SESSION_FAILED


def _key_of(login: Login) -> str:
    key = login.connection.get_server_host_key()
    return str(key.get_fingerprint()) if key else ""
