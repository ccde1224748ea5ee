"""What an SFTP server can do to us: nothing that hangs, grows without end or is believed."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import anyio
import asyncssh
import pytest
from asyncssh.sftp import SFTPServerHandler

from backends.ssh import sftp_files, sftp_search, sftp_session, sftp_tree
from operations import (
    BackendUnavailable,
    ConnectionLost,
    GrepQuery,
    OperationError,
    OperationUnsupported,
    PathError,
    StorageFull,
    TooLarge,
)
from tests.backends.ssh.sftp_doubles import Served, only_sftp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio


def a_file(name: bytes, **attrs: Any) -> asyncssh.SFTPName:
    return asyncssh.SFTPName(name, b"", asyncssh.SFTPAttrs(**{"permissions": 0o100644, **attrs}))


@pytest.mark.parametrize("name", [b"../../etc/passwd", b"a/b", b"nul\0", b""])
async def test_a_name_that_is_none_ends_the_session(name: bytes, tmp_path: Path) -> None:
    class Lying(Served):
        async def scandir(self, path: bytes) -> AsyncIterator[asyncssh.SFTPName]:
            yield a_file(b"fine")
            yield a_file(name)

    async with only_sftp(Lying, tmp_path) as backend:
        (tmp_path / "root/f").write_text("here\n")
        for _ in range(2):  # the next operation connects once more
            with pytest.raises(ConnectionLost, match="broke the protocol: a name"):
                await backend.list_directory("/", limit=10)
        with pytest.raises(ConnectionLost):
            await backend.glob("**/*", "/", limit=10)
        assert await backend.read_file("/f") == b"here\n"


async def test_a_listing_without_end_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Endless(Served):
        async def scandir(self, path: bytes) -> AsyncIterator[asyncssh.SFTPName]:
            for number in range(1 << 40):
                yield a_file(b"%d" % number)
                await asyncio.sleep(0)

    monkeypatch.setattr(sftp_session.SftpSession.names, "__defaults__", (1000,))
    monkeypatch.setattr(sftp_tree, "_MOST_NAMES", 1000)
    async with only_sftp(Endless, tmp_path) as backend:
        with pytest.raises(PathError, match="over 1,000 names"):
            await backend.list_directory("/", limit=10)
        with pytest.raises(OperationError, match=r"over 1,000 names.*; name a part of it"):
            await backend.glob("*", "/", limit=10)


async def test_folders_without_end_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Deep(Served):
        async def scandir(self, path: bytes) -> AsyncIterator[asyncssh.SFTPName]:
            for name in (b"a", b"b"):
                yield a_file(name, permissions=0o040755)

    monkeypatch.setattr(sftp_tree, "_MOST_NAMES", 500)
    async with only_sftp(Deep, tmp_path) as backend:
        with pytest.raises(OperationError, match="over 500 names"):
            await backend.glob("**/x", "/", limit=10)


async def test_more_bytes_than_were_asked_for_end_the_session(tmp_path: Path) -> None:
    class Pouring(Served):
        def read(self, file_obj: object, offset: int, size: int) -> bytes:
            return b"x" * (size + 1)

    async with only_sftp(Pouring, tmp_path) as backend:
        (tmp_path / "root/f").write_text("here\n")
        with pytest.raises(ConnectionLost, match="more bytes than were asked for"):
            await backend.read_file("/f")


@pytest.mark.parametrize("told", [10, None])
async def test_a_file_without_end_is_bounded(
    told: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Growing(Served):
        def stat(self, path: bytes) -> Any:
            return asyncssh.SFTPAttrs(permissions=0o100644, size=told or 2 << 20)

        def read(self, file_obj: object, offset: int, size: int) -> bytes:
            return b"x\n" * (size // 2)

    monkeypatch.setattr(sftp_files, "_MOST_GROWTH", 1 << 20)
    monkeypatch.setattr(sftp_files, "MAX_WHOLE_READ", 4 << 20)
    monkeypatch.setattr(sftp_files.read_whole, "__defaults__", (4 << 20,))
    async with only_sftp(Growing, tmp_path) as backend:
        (tmp_path / "root/f").touch()
        with pytest.raises(TooLarge):
            await backend.read_file("/f")
        with pytest.raises((TooLarge, PathError)):
            await backend.read_lines("/f", start=1, max_lines=10, max_bytes=1000)


async def test_a_server_that_falls_silent_counts_as_lost(tmp_path: Path) -> None:
    class Silent(Served):
        silent = True

        async def stat(self, path: bytes) -> Any:
            if Silent.silent:
                await asyncio.sleep(3600)
            return super().stat(path)

    async with only_sftp(Silent, tmp_path, lease_s=1.5, cwd="/") as backend:
        (tmp_path / "root/f").write_text("here\n")
        with anyio.fail_after(20), pytest.raises(ConnectionLost, match="nothing heard"):
            await backend.read_file("/f")
        Silent.silent = False
        assert await backend.read_file("/f") == b"here\n"


async def test_a_beginning_that_is_no_path_is_refused(tmp_path: Path) -> None:
    class Nowhere(Served):
        def realpath(self, path: bytes) -> bytes:
            return b"nowhere"

    with pytest.raises(BackendUnavailable):
        async with only_sftp(Nowhere, tmp_path):
            pass


async def test_what_is_not_told_is_asked(tmp_path: Path) -> None:
    class Terse(Served):
        async def scandir(self, path: bytes) -> AsyncIterator[asyncssh.SFTPName]:
            for name in (b"folder", b"file", b"link"):
                yield asyncssh.SFTPName(name, b"", asyncssh.SFTPAttrs())

    async with only_sftp(Terse, tmp_path) as backend:
        (tmp_path / "root/folder").mkdir()
        (tmp_path / "root/file").touch()
        (tmp_path / "root/link").symlink_to("file")
        listing = await backend.list_directory("/", limit=10)
        assert [entry.kind for entry in listing.entries] == ["file", "directory", "symlink"]


async def test_without_extensions_files_are_written_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No rename that replaces, no sync, no limits: said where it matters, done where it can be."""
    monkeypatch.setattr(SFTPServerHandler, "_extensions", [])
    async with only_sftp(Served, tmp_path) as backend:
        first = await backend.replace_file("/f", b"a long first content\n")
        assert (first.created, first.atomic) == (True, True)
        second = await backend.replace_file("/f", b"short\n")
        assert (second.created, second.atomic) == (False, False)
        with pytest.raises(OperationUnsupported, match="fsync"):
            await backend.replace_file("/f", b"synced\n", durable=True)
    assert (tmp_path / "root/f").read_bytes() == b"short\n"
    assert os.listdir(tmp_path / "root") == ["f"]


@pytest.mark.parametrize("there", [True, False])
async def test_a_full_disk_is_told_and_leaves_the_old_file(there: bool, tmp_path: Path) -> None:
    class Full(Served):
        def write(self, file_obj: object, offset: int, data: bytes) -> Any:
            if offset:
                raise asyncssh.SFTPFailure("Failure")
            return super().write(file_obj, offset, data)

        def statvfs(self, path: bytes) -> Any:
            return asyncssh.SFTPVFSAttrs(frsize=4096, bavail=0)

    async with only_sftp(Full, tmp_path) as backend:
        if there:
            (tmp_path / "root/f").write_text("old\n")
        with pytest.raises(StorageFull):
            await backend.replace_file("/f", b"x" * (6 << 20))
    assert os.listdir(tmp_path / "root") == (["f"] if there else [])
    if there:
        assert (tmp_path / "root/f").read_text() == "old\n"


async def test_a_refusal_without_a_word_is_passed_on(tmp_path: Path) -> None:
    class Sullen(Served):
        def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> object:
            raise asyncssh.SFTPFailure("Failure")

    async with only_sftp(Sullen, tmp_path) as backend:
        (tmp_path / "root/f").touch()
        with pytest.raises(PathError, match="says no more than 'Failure'"):
            await backend.read_file("/f")


async def test_a_search_fetches_so_much_and_tells_what_it_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sftp_search, "MOST_FETCHED", 3000)
    monkeypatch.setattr(sftp_search, "_BATCH", 1)
    monkeypatch.setattr(sftp_search, "_MOST_FILES", 1)
    async with only_sftp(Served, tmp_path) as backend:
        for number in range(9):
            (tmp_path / f"root/f{number}").write_text("needle\n" + "x\n" * 500)
        found = await backend.grep(GrepQuery(pattern="needle", path="/"))
        assert [match.path for match in found.matches] == ["f0", "f1", "f2"]
        assert found.unreadable == ("f3", "f4", "f5", "f6", "f7", "f8")
        assert found.unreadable_total == 6
        (tmp_path / "root/big").write_text("x\n" * 3000)
        with pytest.raises(TooLarge):
            await backend.grep(GrepQuery(pattern="needle", path="/big"))


async def test_folders_are_listed_side_by_side_and_only_those_that_count(tmp_path: Path) -> None:
    """A trip for each folder would add up; what a rule leaves out costs nothing."""
    seen: list[str] = []

    class Watching(Served):
        def scandir(self, path: bytes) -> AsyncIterator[asyncssh.SFTPName]:
            seen.append(f"opened {path.decode()}")
            return self._names(path)

        async def _names(self, path: bytes) -> AsyncIterator[asyncssh.SFTPName]:
            seen.append(f"read {path.decode()}")
            async for name in super().scandir(path):
                yield name

    async with only_sftp(Watching, tmp_path) as backend:
        for number in range(8):
            (tmp_path / f"root/d{number}").mkdir()
            (tmp_path / f"root/d{number}/x.py").touch()
        (tmp_path / "root/node_modules/deep").mkdir(parents=True)
        (tmp_path / "root/.git/objects").mkdir(parents=True)
        (tmp_path / "root/.gitignore").write_text("node_modules\n")
        found = await backend.glob("**/*.py", "/", limit=100)
    assert found.paths == tuple(f"d{number}/x.py" for number in range(8))
    opened = [f"opened /d{number}" for number in range(8)]
    assert seen[:10] == ["opened /", "read /", *opened]
    assert not any("node_modules" in told or ".git" in told for told in seen)
