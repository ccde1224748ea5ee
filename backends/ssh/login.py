"""From a host's settings to a connection that is logged in, or to the reason why there is none."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread
import asyncssh
from asyncssh.encryption import get_encryption_algs
from asyncssh.kex import get_kex_algs
from asyncssh.mac import get_mac_algs
from asyncssh.public_key import get_certificate_algs, get_public_key_algs

from backends.ssh.certificates import fault_of
from backends.ssh.config import HostSettings
from backends.ssh.credentials import Asking, Credentials, load_credentials
from backends.ssh.faults import Unreachable, Unusable, is_passing, reason_of
from backends.ssh.known_hosts import HostKeys, offered_kinds
from backends.ssh.tcp import Tcp

__all__ = ["Login", "log_in"]

#: A third of chacha20's time, which asyncssh would take first.
_CIPHERS = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"
#: What may be under way to us: at 50 ms and 2 MiB no more than 15 MB/s would come.
_WINDOW = 16 << 20
_KNOWN_ALGORITHMS = {
    "encryption_algs": get_encryption_algs,
    "mac_algs": get_mac_algs,
    "kex_algs": get_kex_algs,
    "server_host_key_algs": lambda: get_public_key_algs() + get_certificate_algs(),
}
_CLOSE_S = 2.0
#: How many names of a host's are shown.
_MOST_NAMES = 20
#: asyncssh takes what a ProxyCommand says on stderr for the server's words, and the end of that
#: pipe for the connection's.
_QUIET = "exec 3>&2 2>/dev/null; exec "


@dataclass(frozen=True, slots=True)
class Login:
    """A connection that is logged in.

    Attributes:
        connection: asyncssh's.
        settings: How it came about.
        host_keys: What is known about the host's keys.
        tcp: What is below it; None where that is a tunnel or a program.
        client: What asyncssh has told of it.
    """

    connection: asyncssh.SSHClientConnection
    settings: HostSettings
    host_keys: HostKeys
    tcp: Tcp | None
    client: _Client

    @property
    def error(self) -> Exception | None:
        """What has ended the connection; None while it is there, and after an end in order."""
        return self.client.error

    @property
    def lost(self) -> bool:
        """Whether the connection is over."""
        return self.connection.is_closed()

    def has_session(self) -> None:
        """Note that a session has started on it."""
        if self.tcp is not None:
            self.tcp.relax()

    async def close(self) -> None:
        """End the connection; bounded."""
        self.connection.close()
        with anyio.move_on_after(_CLOSE_S, shield=True):
            await self.connection.wait_closed()

    def abort(self) -> None:
        """End the connection without a word to the other side."""
        self.connection.abort()


async def log_in(
    settings: HostSettings, tunnel: asyncssh.SSHClientConnection | None, asking: Asking
) -> Login:
    """Connect to a host, verify it, and be let in.

    Args:
        settings: The host.
        tunnel: A connection to go through; None for none.
        asking: Whom to ask for secrets.

    Raises:
        Unreachable: There is no such connection, and nothing of it is left.
    """
    credentials = Credentials()
    client: _Client | None = None
    tcp = None if tunnel or settings.proxy_command else Tcp(**_ends(settings))
    try:
        host_keys = await anyio.to_thread.run_sync(HostKeys, settings)
        credentials = await load_credentials(settings, asking)
        client = _Client(settings, host_keys, credentials, asking)
        connection = await _connect(settings, tunnel or tcp, client)
    except BaseException as error:
        if client is not None and client.connection is not None:
            client.connection.abort()
        if not isinstance(error, Exception):
            raise
        apart = "" if client is None else client.nothing_in_common()
        reason = apart or _reason(error, settings, client)
        raise Unreachable(reason, passing=not apart and is_passing(error)) from error
    finally:
        await credentials.close()
    return Login(connection, settings, host_keys, tcp, client)


def _ends(settings: HostSettings) -> dict[str, Any]:
    """Return what is said about either end of the TCP connection."""
    said = settings.options
    return {name: said[name] for name in ("family", "local_addr") if name in said}


async def _connect(
    settings: HostSettings, tunnel: asyncssh.SSHClientConnection | Tcp | None, client: _Client
) -> asyncssh.SSHClientConnection:
    command = settings.proxy_command
    options: dict[str, Any] = {
        **settings.options,
        "encryption_algs": _CIPHERS,
        "server_host_key_algs": client.host_keys.algorithms(),
        **_algorithms(settings.algorithms),
        # What is not said here would be taken from files, the agent or the environment by
        # asyncssh; `known_hosts=None` and X.509 would let hosts in unverified.
        "known_hosts": client.host_keys.known,
        "x509_trusted_certs": None,
        "x509_trusted_cert_paths": [],
        "client_keys": client.credentials.keys or None,
        "agent_path": None,
        "agent_forwarding": False,
        "x11_forwarding": False,
        "gss_host": None,
        "gss_kex": False,
        "gss_auth": False,
        "host_based_auth": False,
        "client_host_keysign": False,
        "compression_algs": None,
        "request_pty": False,
        "window": _WINDOW,
    }
    if client.asking.password is not None:
        options["password"] = client.password
    return await asyncssh.connect(
        settings.host,
        settings.port,
        tunnel=tunnel,
        config=None,
        username=settings.user,
        host_key_alias=settings.alias,
        client_factory=lambda: client,
        proxy_command=command and ["/bin/sh", "-c", _QUIET + command],
        keepalive_interval=settings.alive_s,
        keepalive_count_max=settings.alive_count,
        **options,
    )


class _Client(asyncssh.SSHClient):
    """What asyncssh asks during a login, and what we learn from its questions."""

    def __init__(
        self,
        settings: HostSettings,
        host_keys: HostKeys,
        credentials: Credentials,
        asking: Asking,
    ) -> None:
        self.host_keys = host_keys
        self.credentials = credentials
        self.asking = asking
        self.connection: asyncssh.SSHClientConnection | None = None
        self.error: Exception | None = None
        self.wants: dict[str, None] = {}
        self._settings = settings
        self._said_password = False

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self.connection = conn
        verify = conn.validate_server_host_key

        def verify_signature_too(shown: bytes) -> asyncssh.SSHKey:
            key = verify(shown)
            if fault := fault_of(shown, self._settings.ca_signatures):
                raise asyncssh.HostKeyNotVerifiable(fault)
            return key

        # asyncssh takes a CA's signature of any kind, and asks nobody.
        conn.validate_server_host_key = verify_signature_too  # type: ignore[assignment,method-assign]

    def connection_lost(self, exc: Exception | None) -> None:
        self.error = exc

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        self.host_keys.shown = key
        return False

    def validate_host_ca_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.host_keys.shown_ca = key
        return False

    async def public_key_auth_requested(self) -> Any:
        self.wants["publickey"] = None
        return await self.credentials.unlock(self._settings, self.asking)

    def kbdint_auth_requested(self) -> Any:
        self.wants["keyboard-interactive"] = None
        return super().kbdint_auth_requested()

    def password_auth_requested(self) -> None:
        self.wants["password"] = None

    async def password(self) -> str | None:
        """Return the password, which is asked for now."""
        self.wants["password"] = None
        assert self.asking.password is not None
        answer = await self.asking.ask(self.asking.password, str(self._settings))
        self._said_password = bool(answer)
        return answer

    def nothing_in_common(self) -> str:
        """Return that the host has no key of a wanted kind; "" where it has, or is not known.

        It is the host that ends the connection then, mostly without a word.
        """
        conn: Any = self.connection
        offered = offered_kinds(conn._server_kexinit) if conn is not None else []  # noqa: SLF001
        wanted = [kind.decode() for kind in getattr(conn, "_server_host_key_algs", None) or []]
        if not offered or not wanted or set(offered) & set(wanted):
            return ""
        return (
            f"{self._settings} has no host key of a kind that is wanted: "
            f"it offers {', '.join(offered[:_MOST_NAMES])}; "
            f"wanted is one of {', '.join(wanted)} (see HostKeyAlgorithms)"
        )

    def refusal(self, *, cut_off: bool = False) -> str:
        """Return what the host wanted and what it got; cut off, it wanted no more of the keys."""
        offered = self.credentials.offered if cut_off or "publickey" in self.wants else []
        tried = [*offered, *(["a password"] if self._said_password else [])]
        text = f"{self._settings} was not let in; tried: {', '.join(tried) or 'nothing'}"
        if self.wants:
            text += f"; the host takes {', '.join(self.wants)}"
        if self.credentials.left_out:
            text += f"; not used: {', '.join(self.credentials.left_out)}"
        if "password" in self.wants and self.asking.password is None:
            text += "; no password was given"
        return text


def _reason(error: Exception, settings: HostSettings, client: _Client | None) -> str:
    if client is not None and isinstance(error, asyncssh.HostKeyNotVerifiable):
        return client.host_keys.refusal(error.reason)
    if client is not None and isinstance(error, asyncssh.PermissionDenied):
        return client.refusal()
    if settings.proxy_command and isinstance(error, asyncssh.ConnectionLost):
        hint = f"run it by hand to see what it says: {settings.proxy_command}"
        return f"the ProxyCommand, or {settings} behind it, ended before it was ready; {hint}"
    said = error.reason if isinstance(error, asyncssh.DisconnectError) else ""
    if client is not None and "authentication failures" in said:
        # It wants no more keys that it does not know; those that it has not seen are told too.
        return f"{client.refusal(cut_off=True)}; the host said {said!r}"
    return reason_of(error, str(settings))


def _algorithms(wanted: dict[str, str]) -> dict[str, str]:
    """Return a configuration's lists without names that only OpenSSH has."""
    chosen: dict[str, str] = {}
    for argument, text in wanted.items():
        sign = text[0] if text[0] in "+-^" else ""
        known = [name.decode() for name in _KNOWN_ALGORITHMS[argument]()]
        names = [name for name in text.removeprefix(sign).split(",") if fnmatch.filter(known, name)]
        if names:
            chosen[argument] = sign + ",".join(names)
        elif not sign:
            raise Unusable(f"none of {text} can be used here")
    return chosen
