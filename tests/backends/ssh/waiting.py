"""What the tests of the ssh backend wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.ssh import SshBackend

__all__ = ["eventually", "said"]


async def eventually(condition: Callable[[], bool], limit_s: float = 30) -> None:
    """Wait until a condition holds."""
    with anyio.fail_after(limit_s):
        while not condition():
            await anyio.sleep(0.02)


async def said(backend: SshBackend, command: str) -> str:
    """Run a command and return what it has printed; a minute is too long for any."""
    output: list[bytes] = []
    with anyio.fail_after(60):
        await backend.exec(command, cwd=backend.cwd, on_data=output.append)
    return b"".join(output).decode()
