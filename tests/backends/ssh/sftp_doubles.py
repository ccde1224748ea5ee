"""SFTP servers in the test's own process, honest and otherwise; nothing else can be had of them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncssh

from backends.ssh import SshBackend

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

__all__ = ["Served", "only_sftp"]


class Served(asyncssh.SFTPServer):
    """An honest server for one folder, which is its root."""

    root = b""
    opened: list[Any]

    def __init__(self, channel: asyncssh.SSHServerChannel[bytes]) -> None:
        super().__init__(channel, chroot=self.root)

    def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> object:
        self.opened.append(super().open(path, pflags, attrs))
        return self.opened[-1]


class _Anybody(asyncssh.SSHServer):
    def begin_auth(self, username: str) -> bool:
        return False


@asynccontextmanager
async def only_sftp(kind: type[Served], folder: Path, **options: Any) -> AsyncIterator[SshBackend]:
    """Give a backend on a server that refuses to run anything and has a kind of SFTP.

    Args:
        kind: What serves SFTP; its `root` is set.
        folder: Gets keys; its subfolder "root" is served.
        options: For the backend.
    """
    root = folder / "root"
    root.mkdir(exist_ok=True)
    kind.root = str(root).encode()
    kind.opened = []
    key = asyncssh.generate_private_key("ssh-ed25519")
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_factory=_Anybody,
        server_host_keys=[key],
        sftp_factory=kind,
        login_timeout=30,
    )
    port = server.sockets[0].getsockname()[1]
    known = folder / "known_hosts"
    known.write_text(f"[127.0.0.1]:{port} {key.export_public_key().decode()}")
    try:
        async with SshBackend.connect(
            f"somebody@127.0.0.1:{port}", config=None, known_hosts=str(known), **options
        ) as backend:
            yield backend
    finally:
        server.close()
        await server.wait_closed()
        for file in kind.opened:  # asyncssh leaves those of a session that is cut
            file.close()
