"""What an OpenSSH configuration says about a host: what is honoured here, and what is refused."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backends.ssh.address import Address, parse_jumps
from backends.ssh.certificates import allowed_signatures
from backends.ssh.config_reader import ConfigReader
from backends.ssh.faults import Unusable

__all__ = ["DEFAULT_CONFIG", "HostSettings", "read_settings"]

DEFAULT_CONFIG = "~/.ssh/config"
SSH_PORT = 22
#: Seconds of silence until the server is asked for a sign, and how many signs may stay out: what
#: has gone without a word is found after 20 s.
ALIVE_S, ALIVE_COUNT = 5, 3

_USER_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
_GLOBAL_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
_IDENTITIES = ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk")


def _is_on(value: str) -> bool:
    return value.lower() not in ("no", "false", "none", "ask")


#: Options that we do not honour and that change what is safe: when they do, and what to do.
_REFUSED: dict[str, tuple[Callable[[str], bool], str]] = {
    "StrictHostKeyChecking": (
        lambda value: value.lower() not in ("yes", "true", "ask"),
        "host keys are always verified here; add the key to a known_hosts file",
    ),
    "KnownHostsCommand": (_is_on, "no program is asked for host keys; write them to a file"),
    "RevokedHostKeys": (_is_on, "it is not read; put @revoked lines into a known_hosts file"),
    "VerifyHostKeyDNS": (_is_on, "DNS is not asked for host keys; add the key to a file"),
    "CheckHostIP": (_is_on, "host keys are looked up by name only"),
    "CanonicalizeHostname": (_is_on, "names are not completed here; give the whole name"),
    "RequiredRSASize": (lambda _: True, "the size of RSA keys is not checked here"),
    "PubkeyAcceptedAlgorithms": (
        lambda value: value[:1] not in ("+", "^"),
        "signatures are not limited here",
    ),
    "BindInterface": (_is_on, "no interface can be chosen here; BindAddress can"),
    "ProxyUseFdpass": (_is_on, "a ProxyCommand hands over its own pipes here, no descriptor"),
}
_ALIASES = {"PubkeyAcceptedKeyTypes": "PubkeyAcceptedAlgorithms"}


@dataclass(frozen=True, slots=True)
class HostSettings:
    """How to reach and enter one host.

    Attributes:
        name: The host as it was named.
        host: Its real name or address.
        port: The port of its SSH server.
        user: Whom to log in as.
        jumps: Hosts to go through, the nearest first.
        proxy_command: A program whose pipes lead there instead; None for none.
        alias: The name that its key is known by, where that is another.
        known_hosts: Files with host keys.
        identities: Files with our keys.
        chosen: Whether the configuration names these files.
        only_identities: Offer no other keys of the agent.
        certificates: Files with certificates of our keys.
        agent: Where the agent listens; "" for no agent.
        connect_timeout_s: Seconds for the whole way there; None where nothing is said.
        alive_s: Seconds of silence after which the server is asked for a sign; 0 for never.
        alive_count: How many signs may stay out.
        asks: Whether a terminal may be asked for a passphrase.
        options: What asyncssh takes as it is.
        algorithms: Names of algorithms, as OpenSSH lists them, by asyncssh's argument.
        ca_signatures: With what a CA may have signed a host's certificate.
    """

    name: str
    host: str
    port: int
    user: str
    jumps: tuple[Address, ...]
    proxy_command: str | None
    alias: str | None
    known_hosts: tuple[str, ...]
    identities: tuple[str, ...]
    chosen: bool
    only_identities: bool
    certificates: tuple[str, ...]
    agent: str
    connect_timeout_s: float | None
    alive_s: float
    alive_count: int
    asks: bool
    options: dict[str, Any]
    algorithms: dict[str, str]
    ca_signatures: tuple[str, ...]

    def __str__(self) -> str:
        return str(Address(self.host, self.user, self.port))

    def directly(self) -> HostSettings:
        """Return the same without any way of its own, for the next host of a chain."""
        return replace(self, jumps=(), proxy_command=None)


def read_settings(
    address: Address,
    *,
    config: str | Sequence[str] | None = DEFAULT_CONFIG,
    known_hosts: str | Sequence[str] | None = None,
) -> HostSettings:
    """Read what holds for a host; blocks, and may run the programs of `Match exec`.

    Args:
        address: The host as it was named.
        config: Files as OpenSSH's; the default may be missing. None for none.
        known_hosts: Files with host keys instead of the configuration's.

    Raises:
        Unusable: A file cannot be read or trusted, or has an option that is refused; the text
            names its file and line.
    """
    found = _load(address, _files(config))
    for option, (refuses, remedy) in _REFUSED.items():
        value = found.said.get(option)
        if value is not None and refuses(value):
            raise Unusable(f"{found.place(option)}: {option} {value} is not honoured: {remedy}")
    return _settings(address, found, known_hosts)


class _Config(ConfigReader):
    """The reader, which also keeps what is judged here, as it is written."""

    _handlers = ConfigReader._handlers | {  # noqa: SLF001
        name.lower(): (_ALIASES.get(name, name), ConfigReader.note)
        for name in (*_REFUSED, *_ALIASES, "BatchMode", "CASignatureAlgorithms")
    }


def _files(config: str | Sequence[str] | None) -> list[Path]:
    if config is None:
        return []
    if config == DEFAULT_CONFIG and not Path(config).expanduser().exists():
        return []
    files = [config] if isinstance(config, str) else list(config)
    return [Path(file).expanduser() for file in files]


def _load(address: Address, paths: list[Path]) -> _Config:
    user: Any = () if address.user is None else address.user
    port: Any = () if address.port is None else address.port
    who = (getpass.getuser(), user, address.host, port)
    try:
        found = _Config.load(None, paths, False, False, False, *who)  # noqa: FBT003
        if found.has_match_final():
            found = _Config.load(found, paths, True, False, True, *who)  # noqa: FBT003
    except OSError as error:
        raise Unusable(f"{error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise Unusable(f"the configuration cannot be used: {error}") from error
    assert isinstance(found, _Config)
    found.finish()
    return found


def _settings(
    address: Address, found: _Config, known_hosts: str | Sequence[str] | None
) -> HostSettings:
    get: Callable[..., Any] = found.get
    if isinstance(known_hosts, str):
        known_hosts = [known_hosts]
    if known_hosts is None:
        known_hosts = [
            *get("UserKnownHostsFile", _USER_KNOWN_HOSTS),
            *get("GlobalKnownHostsFile", _GLOBAL_KNOWN_HOSTS),
        ]
    identities = get("IdentityFile")
    chosen = identities is not None
    if identities is None:
        identities = [f"~/.ssh/{name}" for name in _IDENTITIES]
    timeout = get("ConnectTimeout")
    return HostSettings(
        name=address.host,
        host=get("Hostname", address.host),
        port=get("Port", SSH_PORT),
        user=get("User") or getpass.getuser(),
        jumps=_jumps(found),
        proxy_command=get("ProxyCommand"),
        alias=get("HostKeyAlias"),
        known_hosts=_expanded(known_hosts),
        identities=_expanded(identities),
        chosen=chosen,
        only_identities=bool(get("IdentitiesOnly", False)),
        certificates=_expanded(get("CertificateFile", ())),
        agent=_agent(get("IdentityAgent", "SSH_AUTH_SOCK")),
        connect_timeout_s=None if timeout is None or timeout <= 0 else float(timeout),
        alive_s=get("ServerAliveInterval", ALIVE_S),
        alive_count=get("ServerAliveCountMax", ALIVE_COUNT),
        asks=found.said.get("BatchMode", "no").lower() not in ("yes", "true"),
        options=_options(get),
        algorithms={
            argument: get(option) for option, argument in _ALGORITHMS.items() if get(option)
        },
        ca_signatures=allowed_signatures(found.said.get("CASignatureAlgorithms")),
    )


_ALGORITHMS = {
    "Ciphers": "encryption_algs",
    "MACs": "mac_algs",
    "KexAlgorithms": "kex_algs",
    "HostKeyAlgorithms": "server_host_key_algs",
}


def _options(get: Callable[..., Any]) -> dict[str, Any]:
    options: dict[str, Any] = {
        "tcp_keepalive": get("TCPKeepAlive", True),
        "public_key_auth": get("PubkeyAuthentication", True),
        "password_auth": get("PasswordAuthentication", True),
        "kbdint_auth": get(
            "KbdInteractiveAuthentication", get("ChallengeResponseAuthentication", True)
        ),
    }
    if get("AddressFamily") is not None:
        options["family"] = get("AddressFamily")
    if get("BindAddress"):
        options["local_addr"] = (get("BindAddress"), 0)
    if get("PreferredAuthentications"):
        options["preferred_auth"] = get("PreferredAuthentications")
    return options


def _jumps(found: _Config) -> tuple[Address, ...]:
    said: Any = found.get("ProxyJump")
    try:
        return parse_jumps(found.expand(said or "none"))
    except ValueError as error:
        raise Unusable(f"{found.place('ProxyJump')}: {error}") from error


def _agent(said: str | None) -> str:
    if said is None:  # "none"
        return ""
    if said == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK", "")
    if said.startswith("$"):
        return os.environ.get(said[1:].strip("{}"), "")
    return str(Path(said).expanduser())


def _expanded(files: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(Path(file).expanduser()) for file in files)
