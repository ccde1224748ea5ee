"""A bare sshd on a loopback port, with keys and files of its own in a temporary folder."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_START_S = 20.0
_SERVER = """\
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
UsePAM no
StrictModes no
UseDNS no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
LoginGraceTime 30
Port {port}
"""
#: What this user's own shell reads when it starts is no part of a test.
_HOME = """
Match User {user}
  SetEnv HOME={home}
"""
#: A configuration by which any name is one server.
CLIENT = """\
{extra}
Host *
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/key
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile none
  {more}
"""


class Sshd:
    """A server, and a configuration that leads to it.

    Args:
        options: Further lines of its configuration; the first of a kind counts.
        home: The home folder of who logs in; None for an empty one of the server's own.
    """

    def __init__(self, options: str = "", home: Path | None = None) -> None:
        self.user = getpass.getuser()
        self._program = _find_program()
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        # Whoever logs in must be able to read the authorized keys.
        self.folder = Path(tempfile.mkdtemp(prefix="remotehands-sshd-"))
        self.folder.chmod(0o755)
        self._home = home or self.folder / "home"
        self._home.mkdir(exist_ok=True)
        self.make_key("host_key")
        self.make_key("key")
        shutil.copy(self.folder / "key.pub", self.folder / "authorized_keys")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.know()

    def make_key(self, name: str, passphrase: str = "") -> Path:
        """Make a key, in place of one that is there; return its file."""
        file = self.folder / name
        file.unlink(missing_ok=True)
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", name, "-f", str(file)]
        subprocess.run(argv, check=True, timeout=30)
        return file

    def know(self, port: int | None = None, *, name: str = "known_hosts") -> Path:
        """Write the host key, as it is now, for a port; return the file."""
        key = (self.folder / "host_key.pub").read_text().rsplit(None, 1)[0]
        file = self.folder / name
        file.write_text(f"# hosts\n[127.0.0.1]:{port or self.port} {key}\n")
        return file

    def config(
        self, extra: str = "", *, more: str = "", name: str = "config", **said: object
    ) -> str:
        """Write a configuration by which any name is this server; return its file."""
        values = {"port": self.port, "user": self.user, "folder": self.folder, **said}
        file = self.folder / name
        file.write_text(CLIENT.format(extra=extra, more=more, **values))
        return str(file)

    def start(self) -> None:
        """Start it and wait until it listens."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        file = self.folder / "sshd_config"
        said = {"folder": self.folder, "home": self._home, "port": self.port, "user": self.user}
        file.write_text(_SERVER.format(**said) + self._options + _HOME.format(**said))
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "-D", "-e", "-f", str(file)], stdin=subprocess.DEVNULL, stderr=log
            )
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.02)
        pytest.skip(f"sshd does not run here: {self.log()[-300:]}")

    def stop(self) -> None:
        """End it with all its connections."""
        process, self._process = self._process, None
        if process is not None:
            connections = children(process.pid)
            process.terminate()
            process.wait(20)
            for pid in connections:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def engines(self) -> list[int]:
        """Return the process ids of the engines that its connections have started."""
        assert self._process is not None
        found = []
        for pid in children(self._process.pid):
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                names = [Path(f"/proc/{one}/comm").read_text() for one in (pid, int(fields[1]))]
                if names == ["remotehands\n", "sshd\n"]:
                    found.append(pid)
        return found

    def log(self) -> str:
        """Return what it said."""
        return (self.folder / "log").read_text()

    def remove(self) -> None:
        """End it and remove its files."""
        self.stop()
        shutil.rmtree(self.folder)


def children(parent: int) -> list[int]:
    """Return the processes that a process, or a child of it, has started."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            parents[int(name)] = int(fields[1])
    found: list[int] = []
    wanted = {parent}
    while wanted:
        wanted = {pid for pid, above in parents.items() if above in wanted and pid not in found}
        found += wanted
    return found


def runs(text: str) -> bool:
    """Return True while a process of this machine has a text in its command line."""
    for name in os.listdir("/proc"):
        try:
            if text.encode() in Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" "):
                return True
        except OSError:
            continue
    return False


def _find_program() -> str:
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if program is None:
        pytest.skip("sshd is not installed")
    return program


@pytest.fixture(scope="session")
def sshd_program() -> str:
    """Give the file of the server's program, or skip."""
    return _find_program()


@pytest.fixture(scope="session")
def sshd() -> Iterator[Sshd]:
    """Give a server for all tests that leave it as it is."""
    server = Sshd()
    try:
        server.start()
        yield server
    finally:
        server.remove()
