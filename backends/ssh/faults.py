"""What asyncssh and sockets raise, as the reasons of our errors: one table."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import asyncssh

__all__ = ["Unreachable", "Unusable", "is_passing", "reason_of", "why_lost"]


class Unusable(Exception):
    """Something that must be put right first; the text is a sentence part."""


class Unreachable(Exception):
    """A host is not to be had.

    Args:
        reason: Why, as a sentence part.
        passing: Whether it may be over a moment later.
    """

    def __init__(self, reason: str, *, passing: bool = False) -> None:
        super().__init__(reason)
        self.passing = passing


def _system_error(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


#: The first line whose type fits counts. {host} is where it was tried.
_REASONS: tuple[tuple[type[BaseException], Callable[[Any], str]], ...] = (
    (Unusable, str),
    (asyncssh.PermissionDenied, lambda error: f"{{host}} lets nobody in so: {error.reason}"),
    (
        asyncssh.KeyExchangeFailed,
        lambda error: f"{{host}} and we have no algorithm in common: {error.reason}",
    ),
    (asyncssh.ConnectionLost, lambda _: "{host} ended the connection before it was ready"),
    (
        asyncssh.ProtocolNotSupported,
        lambda error: f"what answers at {{host}} is no SSH server: {error.reason}",
    ),
    (
        asyncssh.ProtocolError,
        lambda error: f"what answers at {{host}} breaks the protocol: {error.reason}",
    ),
    (asyncssh.DisconnectError, lambda error: f"{{host}} ended the connection: {error.reason}"),
    # A host's own sessions are opened later: this is the way to it.
    (
        asyncssh.ChannelOpenError,
        lambda error: f"the jump host does not lead to {{host}}: {error.reason}",
    ),
    (socket.gaierror, lambda error: f"the name {{host}} is not found: {_system_error(error)}"),
    (ConnectionRefusedError, lambda _: "nothing listens at {host}"),
    (TimeoutError, lambda _: "{host} does not answer"),
    (OSError, lambda error: f"{{host}} cannot be reached: {_system_error(error)}"),
    (asyncssh.KeyImportError, lambda error: f"a key for {{host}} cannot be used: {error}"),
    (ValueError, lambda error: f"the settings for {{host}} cannot be used: {error}"),
)
_PASSING = (asyncssh.ConnectionLost, OSError)


def reason_of(error: BaseException, host: str) -> str:
    """Return why a host is not to be had, as a sentence part.

    Args:
        error: What was raised; nothing else than the table's types is.
        host: The host where it was tried.
    """
    for kind, said in _REASONS:
        if isinstance(error, kind):
            return said(error).replace("{host}", host)
    return f"{host} cannot be reached: {error!r}"


def is_passing(error: BaseException) -> bool:
    """Return True for what may be over a moment later: a server that is just being restarted."""
    return isinstance(error, _PASSING) and not isinstance(error, socket.gaierror)


def why_lost(error: BaseException) -> str:
    """Return why a connection, or a session of it, is over, as a sentence part."""
    text = getattr(error, "reason", None) or str(error) or type(error).__name__
    return {
        "Connection lost": "the server closed the connection",
        "Server not responding to keepalive": "the server gives no sign of itself any more",
    }.get(text, text)
