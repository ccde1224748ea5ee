"""What is known of a connection: whose key was verified, how it is enciphered, where it goes."""

from __future__ import annotations

from typing import Any

from backends.ssh.links import Link

__all__ = ["describe_link"]


def describe_link(link: Link, *, become_user: str | None) -> dict[str, dict[str, Any]]:
    """Return plain facts about a connection, by topic and name; None is what is not known.

    Args:
        link: The connection.
        become_user: Whom everything runs as; None for who has logged in.
    """
    login = link.login
    connection = login.connection
    key = connection.get_server_host_key()
    return {
        "ssh": {
            "host": login.settings.host,
            "port": login.settings.port,
            "user": login.settings.user,
            "become_user": become_user,
            "via": [str(hop.settings) for hop in link.logins[:-1]],
            "server": connection.get_extra_info("server_version"),
            "host_key": key and f"{key.get_algorithm()} {key.get_fingerprint()}",
            "known_from": login.host_keys.place_of(key) or "a certificate",
            "cipher": connection.get_extra_info("send_cipher"),
            "mac": connection.get_extra_info("send_mac"),
            "sessions": link.sessions,
        }
    }
