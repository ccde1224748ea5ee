"""Contents for a search at this end: batches of small files, long ones in pieces."""

from __future__ import annotations

import codecs
import posixpath
from collections.abc import Iterator

from backends.remote.shell_core import ShellCore
from backends.remote.shell_matching import Row
from backends.remote.shell_numbered import PlainText, matching_lines
from backends.remote.shell_pieces import Pieces
from backends.remote.shell_quote import function_call
from backends.remote.shell_tree import contents
from operations import PathError

__all__ = ["FileSupply", "TreeSupply"]

#: A longer file comes in pieces, while it is searched.
_MOST_BYTES = 1 << 18
#: Files that are fetched at once, at first and at most, and bytes after which fewer are.
_BATCH, _MOST_FILES, _BATCH_BYTES = 64, 240, 4 << 20
#: Files among which the target is asked at once which hold a text.
_SIFTED = 500
#: What UTF-16 begins with.
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class FileSupply:
    """One file, searched whatever the rules say.

    Args:
        core: The lanes.
        at: Absolute path of the file.
        plain: What is searched for, where every grep would find the same.
    """

    def __init__(self, core: ShellCore, at: bytes, plain: PlainText | None) -> None:
        self._core = core
        self._at = at
        self._plain = plain
        self._top = b""
        self._reader = _Reader(core)

    async def open(self, shown: str) -> None:
        """Fetch the file, if it is small.

        Raises:
            PathError: It cannot be read; it is called as `shown`.
        """
        request = function_call("top", self._at, _MOST_BYTES + 1)
        self._top = (await self._core.ask(shown, request)).data

    async def rows(self, path: bytes) -> list[Row]:
        """See `Supply`."""
        return [(path, True if len(self._top) > _MOST_BYTES else self._top)]

    async def first(self, path: bytes) -> bytes | None:
        """See `Supply`."""
        is_wide = self._top.startswith(_WIDE)
        return await self._reader.first(self._at, None if is_wide else self._plain)

    async def next(self, path: bytes) -> bytes | None:
        """See `Supply`."""
        return await self._reader.next()

    async def close(self) -> None:
        """See `Supply`."""
        await self._reader.close()


class TreeSupply:
    """Files below a folder, in the order in which they are searched, some ahead of time.

    Args:
        core: The lanes.
        at: Absolute path of the folder.
        paths: Paths of the files below it.
        plain: What is searched for, where every grep would find the same.
        sees_all: Whether the target's looks beyond a NUL byte.
    """

    def __init__(
        self,
        core: ShellCore,
        at: bytes,
        paths: list[bytes],
        plain: PlainText | None,
        *,
        sees_all: bool,
    ) -> None:
        self._core = core
        self._at = at
        self._paths = paths
        self._numbers = {path: number for number, path in enumerate(paths)}
        self._plain = plain
        self._sifts = plain is not None and sees_all
        self._sifted: set[int] = set()
        self._holding: set[bytes] = set()
        #: Long files in UTF-16.
        self._wide: set[bytes] = set()
        self._batch = _BATCH
        self._reader = _Reader(core)

    async def rows(self, path: bytes) -> list[Row]:
        """See `Supply`."""
        if posixpath.basename(path) == b".gitignore":
            return await self._fetch([path])  # wanted when its folder is entered, out of turn
        start = self._numbers[path]
        end = len(self._paths)
        if self._sifts:
            await self._sift(start // _SIFTED)
            end = (start // _SIFTED + 1) * _SIFTED
        empty: list[Row] = []
        wanted: list[bytes] = []
        for candidate in self._paths[start:end]:
            if self._sifts and candidate not in self._holding:
                empty.append((candidate, b""))
            elif len(wanted) < self._batch:
                wanted.append(candidate)
            else:
                break
        return empty + (await self._fetch(wanted) if wanted else [])

    async def _fetch(self, paths: list[bytes]) -> list[Row]:
        found = await contents(self._core, self._at, paths, _MOST_BYTES + 1)
        size = sum(len(content or b"") for _, content in found)
        more = min(_MOST_FILES, self._batch * 2)
        self._batch = max(2, self._batch // 2) if size > _BATCH_BYTES else more
        rows: list[Row] = []
        for path, content in found:
            is_long = content is not None and len(content) > _MOST_BYTES
            rows.append((path, True if is_long else content))
            if is_long and content is not None and content.startswith(_WIDE):
                self._wide.add(path)
        return rows

    async def _sift(self, block: int) -> None:
        """Ask which files of a block hold the text, or may: encoded otherwise, or unreadable."""
        if block in self._sifted or self._plain is None:
            return
        self._sifted.add(block)
        paths = self._paths[block * _SIFTED : (block + 1) * _SIFTED]
        # A name with a newline cannot be told in a list of lines.
        self._holding.update(path for path in paths if b"\n" in path)
        asked = [b"./" + path for path in paths if b"\n" not in path]
        if not asked:
            return
        request = function_call("holding", self._at, self._plain.text, *_WIDE, *asked)
        async with self._core.lanes.lane("files") as lane:
            reply = await lane.call(request, limit=2 * (sum(map(len, asked)) + len(asked)))
        self._holding.update(line[2:] for line in reply.data.split(b"\n") if line)

    async def first(self, path: bytes) -> bytes | None:
        """See `Supply`."""
        plain = None if path in self._wide else self._plain
        return await self._reader.first(self._at + b"/" + path, plain)

    async def next(self, path: bytes) -> bytes | None:
        """See `Supply`."""
        return await self._reader.next()

    async def close(self) -> None:
        """See `Supply`."""
        await self._reader.close()


class _Reader:
    """Gives long files a piece at a time, or the few lines of them that matter."""

    def __init__(self, core: ShellCore) -> None:
        self._core = core
        self._pieces: Pieces | None = None
        self._lines: Iterator[bytes] | None = None

    async def first(self, at: bytes, plain: PlainText | None) -> bytes | None:
        """Return the first bytes of a file; b"" at its end, None where it cannot be read."""
        await self.close()
        if plain is not None:
            self._lines = await matching_lines(self._core, at, plain)
        self._pieces = Pieces(self._core, at)
        return await self.next()

    async def next(self) -> bytes | None:
        """Return the next bytes."""
        if self._lines is not None:
            return next(self._lines, b"")
        try:
            piece = b"" if self._pieces is None else await self._pieces.next()
        except PathError:
            piece = None
        if not piece:
            await self.close()
        return piece

    async def close(self) -> None:
        """Let go of the file that is read."""
        self._lines = None
        pieces, self._pieces = self._pieces, None
        if pieces is not None:
            await pieces.close()
