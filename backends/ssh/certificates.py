"""With what a CA has signed a host's certificate, which asyncssh does not ask."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from asyncssh.packet import PacketDecodeError, SSHPacket

__all__ = ["allowed_signatures", "fault_of"]

#: As OpenSSH's CASignatureAlgorithms is when nobody sets it.
_DEFAULT = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
_SHA1 = ("ssh-rsa", "ssh-dss")
_SUFFIX = "-cert-v01@openssh.com"
#: How many fields the host's own key has in a certificate.
_KEY_FIELDS = {
    "ssh-rsa": 2,
    "ssh-dss": 4,
    "ssh-ed25519": 1,
    "ecdsa-sha2-nistp256": 2,
    "ecdsa-sha2-nistp384": 2,
    "ecdsa-sha2-nistp521": 2,
    "sk-ssh-ed25519": 2,
    "sk-ecdsa-sha2-nistp256": 3,
}


def allowed_signatures(said: str | None) -> tuple[str, ...]:
    """Return the algorithms that CASignatureAlgorithms allows: a list, "+list" or "-list".

    Args:
        said: The option's value; None where nothing is said.
    """
    if said is None:
        return _DEFAULT
    names = tuple(said.lstrip("+-^").split(","))
    if said.startswith("-"):
        return tuple(name for name in _DEFAULT if not any(fnmatchcase(name, no) for no in names))
    return (*_DEFAULT, *names) if said[:1] in ("+", "^") else names


def fault_of(host_key: bytes, allowed: Sequence[str]) -> str:
    """Return what is wrong with the signature of a host's certificate, as a sentence part.

    Args:
        host_key: What the host has shown, as it was on the wire; "" is right for a plain key.
        allowed: See `allowed_signatures`; SHA-1 never is.
    """
    kind = ""
    try:
        kind = SSHPacket(host_key).get_string().decode("ascii", "replace")
        if "-cert-" not in kind:
            return ""
        signature = _signature(host_key, _KEY_FIELDS[kind.removesuffix(_SUFFIX)])
    except (KeyError, PacketDecodeError):
        return f"its certificate is of a kind whose signature cannot be judged here, {kind!r}"
    if signature in _SHA1:
        return (
            f"its certificate is signed with SHA-1 ({signature}), which can be forged; "
            "whoever runs the CA can sign it again: ssh-keygen -t rsa-sha2-512 -s CA -h ..."
        )
    if signature in allowed:
        return ""
    return (
        f"its certificate is signed with {signature!r}, and CASignatureAlgorithms allows "
        f"{', '.join(allowed) or 'nothing'}"
    )


def _signature(certificate: bytes, key_fields: int) -> str:
    """Return the name of the algorithm in the last field of a certificate."""
    packet = SSHPacket(certificate)
    for _ in range(2 + key_fields):  # its kind, a nonce, the key
        packet.get_string()
    packet.get_uint64()  # a serial number
    packet.get_uint32()  # whose it is: a user's, a host's
    for _ in range(2):  # its name, the hosts' names
        packet.get_string()
    packet.get_uint64()  # valid from
    packet.get_uint64()  # to
    for _ in range(4):  # critical options, extensions, nothing, the CA's key
        packet.get_string()
    signature = packet.get_string()
    packet.check_end()
    return SSHPacket(signature).get_string().decode("ascii", "replace")
