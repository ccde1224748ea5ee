"""A server whose users find no python, so that tools work through their shell."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["without_python"]


def without_python(folder: Path) -> str:
    """Return options for such a server; its programs are linked in a folder, made here."""
    folder.mkdir()
    for name in os.listdir("/usr/bin"):
        if not name.startswith(("python", "platform-python")):
            (folder / name).symlink_to(f"/usr/bin/{name}")
    return f'ForceCommand PATH={folder} /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n'
