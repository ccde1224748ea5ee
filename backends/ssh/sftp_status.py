"""What an SFTP server tells of files, checked."""

from __future__ import annotations

import errno
import re
import stat
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import asyncssh

__all__ = ["Listing", "Names", "Status", "TooMany", "status_of"]

#: A name as `ls -l` shows it; the number is that of its links.
_SHOWN = re.compile(rb"[-a-z][-a-zA-Z]{9}\S? +(\d{1,9}) ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What a server tells of a file; the mode is 0 and all else None where it does not tell.

    How many names a file has is told only in listings, by servers that show them as `ls -l` does.
    """

    mode: int
    size: int | None
    uid: int | None
    gid: int | None
    links: int | None = None


#: Names in a folder, with the status of each; a symlink's own.
Names = dict[bytes, Status]


def status_of(attrs: asyncssh.SFTPAttrs, shown: Any = None) -> Status:
    """Return what asyncssh's attributes tell.

    Args:
        attrs: The attributes.
        shown: The line that a listing shows for the name, if there is one.
    """
    mode = attrs.permissions or 0
    if not stat.S_IFMT(mode):
        mode = 0
    told = _SHOWN.match(shown) if isinstance(shown, bytes) else None
    links = int(told[1]) if told else None
    return Status(mode=mode, size=attrs.size, uid=attrs.uid, gid=attrs.gid, links=links)


class TooMany(OSError):
    """A folder has more names than are wanted."""


class Listing:
    """A folder's names as they come, until nobody wants them.

    Args:
        client: The session.
        path: The folder.
        most: Most names that are wanted.
        heard: Called with every name.
    """

    def __init__(
        self, client: asyncssh.SFTPClient, path: bytes, most: int, heard: Callable[[], None]
    ) -> None:
        self.wanted = True
        self._client = client
        self._path = path
        self._most = most
        self._heard = heard

    async def run(self) -> Names:
        """Return all of them.

        Raises:
            TooMany: There are more.
            ValueError: One can be no name.
        """
        found: Names = {}
        count = 0
        async with aclosing(self._client.scandir(self._path)) as entries:  # type: ignore[type-var]
            async for entry in entries:
                self._heard()
                name = entry.filename
                if name in (b".", b".."):
                    continue
                count += 1
                if not self.wanted:
                    break
                if count > self._most:
                    raise TooMany(errno.EFBIG, f"the folder has over {self._most:,} names")
                if not isinstance(name, bytes) or not name or b"/" in name or b"\0" in name:
                    raise ValueError("a name that no folder holds")
                found[name] = status_of(entry.attrs, entry.longname)
        return found
