"""Whether a host's key is the one that is known; there is no way to take one on trust."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import asyncssh
from asyncssh.packet import PacketDecodeError, SSHPacket
from asyncssh.public_key import get_default_certificate_algs, get_default_public_key_algs

from backends.ssh.config import SSH_PORT, HostSettings
from backends.ssh.faults import Unusable

__all__ = ["HostKeys", "offered_kinds"]

#: A name of an algorithm; what a host says instead is not shown to anybody.
_KIND = re.compile(r"[\w.@+-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a known_hosts file that is about a host."""

    file: str
    number: int
    marker: str
    key: asyncssh.SSHKey

    def __str__(self) -> str:
        return f"{self.file} line {self.number} has {_shown(self.key)}"


class HostKeys:
    """What is known about one host's keys, and what the host has shown.

    asyncssh's own search also takes a key that is known for the address alone, so that whoever
    answers for a name could show a key of another host; here names count, as for OpenSSH. Reading
    blocks.

    Args:
        settings: Which host it is, and which files tell about it.

    Raises:
        Unusable: A file cannot be read.
    """

    def __init__(self, settings: HostSettings) -> None:
        self._settings = settings
        self._name = settings.alias or _with_port(settings.host, settings.port)
        self._lines = self._find()
        #: The key that the host has shown, if it was none that is known; a CA's, if it was one.
        self.shown: asyncssh.SSHKey | None = None
        self.shown_ca: asyncssh.SSHKey | None = None

    def known(
        self, _host: str, _address: str, _port: int | None
    ) -> tuple[list[asyncssh.SSHKey], list[asyncssh.SSHKey], list[asyncssh.SSHKey]]:
        """Return the keys, the CAs' keys and the revoked keys, as asyncssh asks for them."""
        return self._keys(""), self._keys("@cert-authority"), self._keys("@revoked")

    def algorithms(self) -> list[str]:
        """Return which kinds of keys to ask for: those that are known first, then any.

        Any, since a host that has changed its key must be told from one with nothing in common.
        """
        wanted = [algorithm for key in self._keys("") for algorithm in key.sig_algorithms]
        if self._keys("@cert-authority"):
            wanted = [*get_default_certificate_algs(), *wanted]
        wanted += get_default_public_key_algs()
        return [algorithm.decode() for algorithm in dict.fromkeys(wanted)]

    def place_of(self, key: asyncssh.SSHKey | None) -> str:
        """Return the file and line that a key is known from, or ""."""
        for line in self._lines:
            if line.key == key and line.marker == "":
                return f"{line.file} line {line.number}"
        return ""

    def refusal(self, said: str) -> str:
        """Return why the host is not trusted, what is known, and what to do, as a sentence part.

        Args:
            said: What asyncssh found wrong, for what only it knows about.
        """
        revoked = [line for line in self._lines if line.marker == "@revoked"]
        if "revoked" in said:
            lines = ", ".join(f"{line}" for line in revoked)
            return f"the host key of {self._name} is revoked: {lines}; do not use this host"
        if self.shown_ca is not None:
            return (
                f"the certificate of {self._name} is of a CA that is not known for it, "
                f"{_shown(self.shown_ca)}; a line '@cert-authority' in {self._file()} would say so"
            )
        if self.shown is None:
            return f"the host key of {self._name} cannot be verified: {said}"
        known = [line for line in self._lines if line.marker != "@revoked"]
        return self._changed(self.shown, known) if known else self._unknown(self.shown)

    def _unknown(self, key: asyncssh.SSHKey) -> str:
        files = ", ".join(self._settings.known_hosts) or "any file, since none is to be read"
        return (
            f"the host key of {self._name} is not known: no line for it in {files}. It shows "
            f"{_shown(key)}. {_COMPARE}; only if they are equal, add it: {self._add(key)}"
        )

    def _changed(self, key: asyncssh.SSHKey, known: list[_Line]) -> str:
        lines = "; ".join(f"{line}" for line in known)
        remove = " && ".join(
            f"ssh-keygen -R {shlex.quote(self._name)} -f {shlex.quote(file)}"
            for file in dict.fromkeys(line.file for line in known)
        )
        return (
            f"the host key of {self._name} is not the one that is known: either it was changed, "
            f"or somebody else answers in its place. {lines}. It shows {_shown(key)}. {_COMPARE}; "
            f"only if they are equal, replace it: {remove} && {self._add(key)}"
        )

    def _add(self, key: asyncssh.SSHKey) -> str:
        """Return the command that adds this very key: to scan again would be to trust again."""
        data = key.export_public_key("openssh").decode().split()
        line = " ".join([self._name, *data[:2]])
        return f"echo {shlex.quote(line)} >> {shlex.quote(self._file())}"

    def _file(self) -> str:
        files = self._settings.known_hosts
        return files[0] if files else "~/.ssh/known_hosts"

    def _keys(self, marker: str) -> list[asyncssh.SSHKey]:
        return [line.key for line in self._lines if line.marker == marker]

    def _find(self) -> list[_Line]:
        lines = [line for file in self._settings.known_hosts for line in _about(file, self._name)]
        if self._settings.alias or self._settings.port == SSH_PORT:
            return lines
        # A key that is known for the host is good for its other ports too, as OpenSSH has it.
        host = self._settings.host.lower()
        plain = [line for file in self._settings.known_hosts for line in _about(file, host)]
        if any(line.marker != "@revoked" for line in lines):
            plain = [line for line in plain if line.marker == "@revoked"]
        return lines + plain


def offered_kinds(kexinit: bytes) -> list[str]:
    """Return which kinds of host keys a host offers in its first message.

    Args:
        kexinit: The message (RFC 4253, 7.1), as asyncssh keeps it; b"" if there was none.
    """
    packet = SSHPacket(kexinit)
    try:
        packet.get_bytes(1 + 16)  # its type, a cookie
        packet.get_namelist()  # key exchanges
        kinds = [kind.decode("ascii", "replace") for kind in packet.get_namelist()]
    except PacketDecodeError:
        return []
    return [kind for kind in kinds if _KIND.fullmatch(kind)]


_COMPARE = (
    "Compare this fingerprint with the one that whoever runs the host tells you "
    "(ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub, on the host itself)"
)


def _shown(key: asyncssh.SSHKey) -> str:
    return f"{key.get_algorithm()} {key.get_fingerprint()}"


def _with_port(host: str, port: int) -> str:
    host = host.lower()
    return host if port == SSH_PORT else f"[{host}]:{port}"


def _about(file: str, name: str) -> Iterator[_Line]:
    """Give the lines of a file that are about a host; what is no such line is skipped."""
    try:
        with open(file, encoding="utf-8", errors="replace") as text:
            lines = text.read().splitlines()
    except FileNotFoundError:
        return
    except OSError as error:
        raise Unusable(f"{file}: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        words = line.split(None, 1)
        marker = words.pop(0) if words and words[0].startswith("@") else ""
        words = words[0].split(None, 1) if marker and words else words
        if len(words) != 2 or words[0].startswith("#"):
            continue
        if _names(words[0], name) and (key := _key(words[1])) is not None:
            yield _Line(file, number, marker.lower(), key)


def _key(data: str) -> asyncssh.SSHKey | None:
    try:
        return asyncssh.import_public_key(data)
    except asyncssh.KeyImportError:
        return None


def _names(patterns: str, name: str) -> bool:
    """Return True when the first word of a line is about a host."""
    if patterns.startswith("|"):
        return _hashes(patterns, name)
    matched = False
    for pattern in patterns.split(","):
        if _fits(pattern.removeprefix("!"), name):
            if pattern.startswith("!"):
                return False
            matched = True
    return matched


def _fits(pattern: str, name: str) -> bool:
    parts: Sequence[str] = re.split(r"([*?])", pattern.lower())
    expression = "".join({"*": ".*", "?": "."}.get(part, re.escape(part)) for part in parts)
    return re.fullmatch(expression, name.lower()) is not None


def _hashes(word: str, name: str) -> bool:
    try:
        _, kind, salt, digest = word.split("|")
        made = hmac.new(base64.b64decode(salt), name.lower().encode(), hashlib.sha1).digest()
        return kind == "1" and hmac.compare_digest(made, base64.b64decode(digest))
    except (ValueError, binascii.Error):
        return False
