"""Folders as values, for comparing them."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def tree(top: str | Path, *, times: bool = True) -> dict[bytes, tuple[object, ...]]:
    """Return all that is below a folder: kind, mode, content, time in seconds, by path."""
    found: dict[bytes, tuple[object, ...]] = {}
    root = os.fsencode(top)
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            mtime = int(info.st_mtime) if times else 0
            what: tuple[object, ...]
            if stat.S_ISLNK(info.st_mode):
                what = ("symlink", os.readlink(path))
            elif stat.S_ISDIR(info.st_mode):
                what = ("folder", info.st_mode & 0o7777, mtime)
            else:
                with open(path, "rb") as file:
                    what = ("file", info.st_mode & 0o7777, mtime, info.st_nlink, file.read())
            found[os.path.relpath(path, root)] = what
    return found
