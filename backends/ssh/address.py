"""Who and where: "user@host:port", as people and configurations write it."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Address", "parse_address", "parse_jumps"]

#: What could mean something to a shell is in no host's name; %p and the like may end up in one.
_HOST = re.compile(r"[\w.%:][\w.%:-]*")
_USER = re.compile(r"""[^\s'"`;&<>|(){}$!*?,@-][^\s'"`;&<>|(){}$!*?,@]*""")
_MOST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Address:
    """A host as it was named; None is what was not said.

    Attributes:
        host: Its name, its address, or a name that the configuration knows.
        user: Whom to log in as.
        port: The port of its SSH server.
    """

    host: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = "" if self.user is None else f"{self.user}@"
        return f"{user}{host}" if self.port is None else f"{user}{host}:{self.port}"


def parse_address(text: str) -> Address:
    """Return what "[ssh://][user@]host[:port]" says.

    Raises:
        ValueError: It is not of that form, or holds a password, which it must not.
    """
    user, at, place = text.removeprefix("ssh://").rpartition("@")
    if ":" in user:
        raise ValueError("a password has no place in an address; it is asked for when it is needed")
    if at and not _USER.fullmatch(user):
        raise ValueError(f"{text!r}: {user!r} is no user's name")
    host, port = _split(place.rstrip("/"))
    if not _HOST.fullmatch(host):
        raise ValueError(f"{text!r}: {host!r} is no host's name; wanted is [user@]host[:port]")
    if port is not None and not (port.isascii() and port.isdigit() and 0 < int(port) <= _MOST_PORT):
        raise ValueError(f"{text!r}: a port is a number from 1 to {_MOST_PORT}, not {port!r}")
    return Address(host, user if at else None, None if port is None else int(port))


def parse_jumps(text: str) -> tuple[Address, ...]:
    """Return the hosts of a jump chain: addresses with commas between; "none" for no chain.

    Raises:
        ValueError: One of them is no address.
    """
    if text.strip().lower() in ("", "none"):
        return ()
    return tuple(parse_address(word.strip()) for word in text.split(","))


def _split(place: str) -> tuple[str, str | None]:
    if place.startswith("["):
        host, bracket, rest = place[1:].partition("]")
        if bracket and (not rest or rest.startswith(":")):
            return host, rest[1:] if rest else None
        return place, None  # which is no host's name
    if place.count(":") > 1:  # an IPv6 address without brackets
        return place, None
    host, colon, port = place.partition(":")
    return host, port if colon else None
