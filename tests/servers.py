"""The SSH servers of docker-compose.yml: who may log in there, and by which files one gets in."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.sshd import CLIENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

#: What is the root of those who log in.
SERVICES = {"sshd": "", "sshd-minimal": "", "sshd-sftp": "/srv"}
_START_S = 30.0
_numbers = itertools.count(1)

#: Every shell greets, and takes its time over it.
_PREPARE = """\
umask 022 && printf '%s\\n' "$1" > /etc/ssh/authorized_keys
mkdir -p /etc/fish
for file in /etc/bash.bashrc /etc/fish/config.fish /etc/csh.cshrc; do
    printf 'echo Welcome\\nsleep 0.05\\n' > "$file"
done
"""
#: Also where a chroot begins, "$3", whose own folder only root may write to.
_ADD = """\
useradd -M -p '*' -d "/home/$1" -s "/bin/$2" "$1" &&
install -d "$3/home" "$3/work" && install -d -o "$1" "$3/home/$1" "$3/work/$1"
"""
_REMOVE = """\
setpriv --reuid "$1" --clear-groups sh -c 'kill -KILL -1'
userdel "$1"; rm -rf "$2/work/$1" "$2/home/$1"
"""
#: An exec of its own each time, which no login and no engine is a part of.
_COMMAND_LINES = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'"


class Server:
    """A server in a container, and the key that all its users are entered with.

    Args:
        api: The Docker SDK's client.
        container: Its container's id.
        folder: A folder of this machine for files of its own; others must not write there.
        root: What its users' "/" is there.
    """

    def __init__(self, api: Any, container: str, folder: Path, root: str = "") -> None:
        self.container = container
        self.root = root
        self._api = api
        self._folder = folder
        ports = api.inspect_container(container)["NetworkSettings"]["Ports"]
        self.port = int(ports["22/tcp"][0]["HostPort"])
        key = folder / "key"
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(key)]
        subprocess.run(argv, check=True, timeout=30)
        self.execute(_PREPARE, key.with_suffix(".pub").read_text().strip())
        self._wait()
        self._host_key = self.execute("cat /etc/ssh/ssh_host_ed25519_key.pub").rsplit(None, 1)[0]

    def execute(self, script: str, *arguments: str) -> str:
        """Run a script of sh as root, past the SSH server; return what it prints."""
        argv = ["sh", "-c", script, "sh", *arguments]
        made = self._api.exec_create(self.container, argv, user="0")
        return str(self._api.exec_start(made["Id"]).decode(errors="replace"))

    def command_lines(self) -> list[str]:
        """Return the command lines of all that runs there."""
        return self.execute(_COMMAND_LINES).splitlines()

    def add_user(self, shell: str = "bash") -> str:
        """Make a user with an empty home, and a folder of his own in /work; return his name."""
        name = f"u{os.getpid()}-{next(_numbers)}"
        self.execute(_ADD, name, shell, self.root)
        return name

    def remove_user(self, name: str) -> None:
        """Remove a user with all he has."""
        self.execute(_REMOVE, name, self.root)

    def config(self, user: str, *, extra: str = "", port: int | None = None) -> str:
        """Write a configuration by which any name is this server; return its file.

        Its host key, as the container itself has told it, is known for that port, which may be
        one that leads there.
        """
        number = next(_numbers)
        file, known = self._folder / f"config-{number}", self._folder / f"known-{number}"
        known.write_text(f"[127.0.0.1]:{port or self.port} {self._host_key}\n")
        extra = f"Host *\n  UserKnownHostsFile {known}\n{extra}"
        said = {"port": port or self.port, "user": user, "folder": self._folder, "more": ""}
        file.write_text(CLIENT.format(extra=extra, **said))
        return str(file)

    def _wait(self) -> None:
        """Wait until the server itself answers: Docker's proxy takes connections before it."""
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                    if connection.recv(4) == b"SSH-":
                        return
            except OSError:
                pass
            time.sleep(0.05)
        raise AssertionError(self._api.logs(self.container).decode(errors="replace")[-500:])


@pytest.fixture(scope="session")
def compose_servers(
    api: Any, compose_up: Callable[[Iterable[str]], dict[str, str]]
) -> Iterator[dict[str, Server]]:
    """Give the server of each service of docker-compose.yml that is one."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    folder = Path(tempfile.mkdtemp(prefix="remotehands-servers-"))
    servers = {}
    try:
        containers = compose_up(SERVICES)
        for name, root in SERVICES.items():
            (folder / name).mkdir(mode=0o755)
            servers[name] = Server(api, containers[name], folder / name, root)
        yield servers
    finally:
        shutil.rmtree(folder)
