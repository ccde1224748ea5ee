"""What we show a host to be let in: keys of files and of the agent, passphrases, passwords."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import inspect
import math
import os
import stat
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread
import asyncssh

from backends.ssh.config import HostSettings
from backends.ssh.prompt import ask_secret

__all__ = ["Ask", "Asking", "Credentials", "load_credentials"]

#: Asked with what it is for (a key's file, "user@host"); None for "there is none".
Ask = Callable[[str], "str | Awaitable[str | None] | None"]
_TRIES = 3


@dataclass
class Asking:
    """Whom to ask for secrets; while a person thinks, no deadline runs.

    Attributes:
        password: Asked with "user@host:port", once for each connection that wants one.
        passphrase: Asked with the name of a key's file; None asks on the terminal, if there is
            one.
        deadline: The scope whose deadline waits meanwhile.
    """

    password: Ask | None = None
    passphrase: Ask | None = None
    deadline: anyio.CancelScope | None = None

    async def ask(self, whom: Ask, what: str) -> str | None:
        """Return the answer; a plain function is called in a thread."""
        scope, began = self.deadline, anyio.current_time()
        if scope is None:
            return await _answer(whom, what)
        deadline, scope.deadline = scope.deadline, math.inf
        try:
            return await _answer(whom, what)
        finally:
            scope.deadline = deadline + anyio.current_time() - began


async def _answer(whom: Ask, what: str) -> str | None:
    if inspect.iscoroutinefunction(whom):
        asked: str | None = await whom(what)
        return asked
    answer = await anyio.to_thread.run_sync(whom, what, abandon_on_cancel=True)
    return await answer if inspect.isawaitable(answer) else answer


@dataclass
class Credentials:
    """What there is for one host.

    Attributes:
        keys: Keys that can be used at once, in the order they are offered in.
        locked: Files with keys that want a passphrase first.
        offered: What each of them is, for people.
        left_out: What was not used, and why.
        agent: The agent that has some of the keys.
    """

    keys: list[asyncssh.SSHKeyPair] = field(default_factory=list)
    locked: list[str] = field(default_factory=list)
    offered: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    agent: asyncssh.SSHAgentClient | None = None

    def add(self, pair: asyncssh.SSHKeyPair, name: str) -> None:
        """Offer a key, unless it is there already."""
        if pair.public_data not in [key.public_data for key in self.keys]:
            self.keys.append(pair)
            self.offered.append(f"{name} ({_fingerprint(pair.public_data)})")

    async def unlock(self, settings: HostSettings, asking: Asking) -> list[asyncssh.SSHKeyPair]:
        """Return the keys of the next file that wants a passphrase; none when there is none left.

        Asked for only now: the host wants a key and takes none of the others.
        """
        while self.locked:
            file = self.locked.pop(0)
            for _ in range(_TRIES if asking.passphrase is None else 1):
                passphrase = await asking.ask(asking.passphrase or _ask_on_terminal, file)
                if not passphrase:
                    reason = "encrypted, and no passphrase was given"
                    break
                try:
                    pairs = await anyio.to_thread.run_sync(_load, file, passphrase, settings)
                except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
                    reason = f"encrypted, and not with this passphrase: {error}"
                else:
                    self.offered.append(f"the key {file} ({_fingerprint(pairs[-1].public_data)})")
                    return pairs
            self.left_out.append(f"{file} ({reason})")
        return []

    async def close(self) -> None:
        """Leave the agent."""
        agent, self.agent = self.agent, None
        if agent is not None:
            agent.close()
            with anyio.move_on_after(1, shield=True):
                await agent.wait_closed()


async def load_credentials(settings: HostSettings, asking: Asking) -> Credentials:
    """Gather the keys for a host, those of the agent first; what cannot be used is noted."""
    found = Credentials()
    if not settings.options["public_key_auth"]:
        return found
    can_ask = asking.passphrase is not None or (settings.asks and _has_terminal())
    files = await anyio.to_thread.run_sync(_load_files, settings, can_ask)
    try:
        await _load_agent(settings, found, files)
    except BaseException:
        await found.close()
        raise
    for pair, name in zip(files.keys, files.offered, strict=True):
        found.add(pair, name.rpartition(" (")[0])
    in_agent = {pair.public_data for pair in found.keys}
    found.locked = [file for file in files.locked if files.public.get(file) not in in_agent]
    found.left_out += files.left_out
    return found


class _Files(Credentials):
    """What the files of a host's settings have, and each one's public half."""

    def __init__(self, public: dict[str, bytes]) -> None:
        super().__init__()
        self.public = public


def _load_files(settings: HostSettings, can_ask: bool) -> _Files:  # noqa: FBT001
    halves = {file: _public_data(file) for file in settings.identities}
    found = _Files({file: half for file, half in halves.items() if half is not None})
    for file in settings.identities:
        try:
            _check_mode(file)
            for pair in _load(file, None, settings):
                found.add(pair, f"the key {file}")
        except FileNotFoundError:
            if settings.chosen:
                found.left_out.append(f"{file} (not there)")
        except OSError as error:
            found.left_out.append(f"{file} ({error.strerror})")
        except asyncssh.KeyImportError as error:
            if "assphrase" not in str(error):
                if _is_private(file):
                    found.left_out.append(f"{file} (no key that can be read: {error})")
            elif can_ask:
                found.locked.append(file)
            else:
                found.left_out.append(
                    f"{file} (encrypted, and there is neither a passphrase nor a terminal to ask "
                    "for it on)"
                )
    return found


def _check_mode(file: str) -> None:
    """Refuse a private key that others can read, as OpenSSH does."""
    status = os.stat(file)
    open_to_others = status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    if status.st_uid == os.getuid() and open_to_others and _is_private(file):
        raise PermissionError(0, f"open to other users; chmod 600 {file}")


def _load(file: str, passphrase: str | None, settings: HostSettings) -> list[asyncssh.SSHKeyPair]:
    certificates = [name for name in settings.certificates if Path(name).exists()]
    return list(asyncssh.load_keypairs([file], passphrase, certificates))


async def _load_agent(settings: HostSettings, found: Credentials, files: _Files) -> None:
    if not settings.agent:
        return
    wanted = {*files.public.values(), *(pair.public_data for pair in files.keys)}
    try:
        found.agent = await asyncssh.connect_agent(settings.agent)
        pairs = list(await found.agent.get_keys())
    except (OSError, ValueError, asyncssh.Error) as error:
        found.left_out.append(f"the agent at {settings.agent} ({error})")
        return
    # A server closes after a few keys that it does not know: those that were named go first.
    pairs.sort(key=lambda pair: pair.public_data not in wanted)
    for pair in pairs:
        if pair.public_data in wanted or not settings.only_identities:
            found.add(pair, "a key of the agent")


def _is_private(file: str) -> bool:
    """Return False for the public half, which people name so that the agent uses the other."""
    return b"PRIVATE KEY-----" in Path(file).read_bytes()


def _public_data(file: str) -> bytes | None:
    """Return the public key that belongs to a file, or that is in it."""
    for name in (f"{file}.pub", file):
        with contextlib.suppress(OSError, asyncssh.KeyImportError):
            return asyncssh.read_public_key(name).public_data
    return None


def _fingerprint(public_data: bytes) -> str:
    digest = hashlib.sha256(public_data).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


async def _ask_on_terminal(file: str) -> str:
    return await ask_secret(f"Passphrase for key {file}: ")
