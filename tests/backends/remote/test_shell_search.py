"""Searches over lanes find what the engine finds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from backends.local import LocalBackend
from backends.remote import shell_search, shell_tree
from operations import ConnectionLost, GrepMatch, GrepQuery, OperationError, SearchTimeout
from tests.backends.remote.shells import PRESENT, Played, Shells, hello, word

pytestmark = pytest.mark.anyio


@pytest.fixture(params=PRESENT)
def shells(request: pytest.FixtureRequest) -> Shells:
    return Shells(request.param)


def plant(root: Path) -> None:
    """Make a tree with ignore files at several depths, binaries, links and names of all kinds."""
    (root / ".git").mkdir()
    (root / ".git/config").write_text("needle\n")
    (root / ".gitignore").write_text("*.log\n/build/\n!keep.log\n")
    for name in ("build/a.txt", "src/x.log", "src/keep.log", "src/deep/a.txt", "#first", "z"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"one\nneedle in {name}\nthree\n")
    (root / "src/.gitignore").write_text("deep/b*\n")
    (root / "src/deep/.gitignore").write_text("!bc.txt\nneedle-less\n")
    (root / "src/deep/b.txt").write_text("needle\n")
    (root / "src/deep/bc.txt").write_text("needle\n")
    (root / "src/link").symlink_to("deep/a.txt")
    (root / "bin").write_bytes(b"\0needle\n")
    (root / "bin2").write_bytes(b"needle\0\n")
    (root / "no").write_bytes(b"\0nothing\n")
    (root / "utf16").write_bytes("needle é\n".encode("utf-16"))
    (root / "new\nline").write_text("needle\n")
    (root / "empty").write_bytes(b"")
    os.mkfifo(root / "pipe")
    with open(os.fsencode(root) + b"/inv\xff", "wb") as file:
        file.write(b"needle \xff\n")


@pytest.mark.parametrize(
    "options",
    [
        {"pattern": "needle"},
        {"pattern": "NEEDLE", "ignore_case": True},
        {"pattern": r"need\w+ in"},
        {"pattern": "needle", "literal": True, "context": 1},
        {"pattern": "needle", "glob": "*.txt"},
        {"pattern": "needle", "glob": "src/**"},
        {"pattern": "needle", "limit": 2},
        {"pattern": "nowhere"},
    ],
)
async def test_the_same_lines_as_the_engine(
    shells: Shells, tmp_path: Path, options: dict[str, Any]
) -> None:
    plant(tmp_path)
    query = GrepQuery(**{"path": str(tmp_path), **options})
    async with LocalBackend(cwd=str(tmp_path)) as local, shells.backend() as backend:
        expected, found = await local.grep(query), await backend.grep(query)
    assert found.matches == expected.matches
    assert (found.more, found.files_searched) == (expected.more, expected.files_searched)
    if not expected.more:
        assert found.binary_skipped == expected.binary_skipped
    assert found.unreadable == expected.unreadable


@pytest.mark.parametrize(
    "pattern", ["*", "**", "*.txt", "src/*", "deep", "{b,z}*", "x.log", "pipe"]
)
async def test_the_same_names_as_the_engine(shells: Shells, tmp_path: Path, pattern: str) -> None:
    plant(tmp_path)
    async with LocalBackend(cwd=str(tmp_path)) as local, shells.backend() as backend:
        for root in (str(tmp_path), str(tmp_path / "src")):
            for limit in (1, 1000):
                expected = await local.glob(pattern, root, limit=limit)
                assert await backend.glob(pattern, root, limit=limit) == expected


async def test_many_files_come_in_batches(
    shells: Shells, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell_search, "_SIFTED", 50)
    for number in range(230):
        folder = tmp_path / f"d{number % 7}"
        folder.mkdir(exist_ok=True)
        said = "needle" if number % 3 else "other"
        (folder / f"f{number:03}").write_text(f"{said} {number}\n")
        (folder / ".gitignore").write_text("nothing\n")
    batches: list[GrepMatch] = []

    def take(matches: Sequence[GrepMatch]) -> None:
        batches.extend(matches)

    async with shells.backend() as backend:
        for pattern in ("needle", "need[l]e"):
            batches.clear()
            query = GrepQuery(pattern=pattern, path=str(tmp_path), limit=1000)
            result = await backend.grep(query, on_matches=take)
            assert len(result.matches) == 153
            assert result.files_searched == 237
            assert [match.path for match in result.matches] == sorted(m.path for m in batches)


async def test_a_file_that_is_too_long_is_told(
    shells: Shells, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell_search, "_MOST_BYTES", 1000)
    (tmp_path / "long").write_bytes(b"needle\n" * 1000)
    (tmp_path / "short").write_bytes(b"needle\n")
    async with shells.backend() as backend:
        result = await backend.grep(GrepQuery(pattern="needle", path=str(tmp_path)))
    assert [match.path for match in result.matches] == ["short"]
    assert (result.unreadable, result.unreadable_total) == (("long",), 1)


async def test_too_many_names_are_an_error_that_says_so(
    shells: Shells, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell_tree, "_NAMES_BYTES", 2000)
    for number in range(200):
        (tmp_path / f"name-number-{number}").write_bytes(b"")
    async with shells.backend() as backend:
        with pytest.raises(OperationError, match="name a part of it"):
            await backend.glob("*", str(tmp_path), limit=5)
        assert await backend.exists(str(tmp_path))


async def test_a_pattern_that_never_ends_does_not_hold_the_loop(
    shells: Shells, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text("y" + "x" * 5000 + "\n")
    async with shells.backend() as backend:
        query = GrepQuery(pattern="(x+x+)+y", path=str(tmp_path), timeout_s=1.5)
        began = anyio.current_time()
        with pytest.raises(SearchTimeout):
            await backend.grep(query)
        assert anyio.current_time() - began < 8
        assert await backend.exists(str(tmp_path))


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"./a\0",
        b"./a\0\0\0\0\0",
        b"../up\0\0\0\0\0\0",
        b"\0/etc/passwd\0\0\0\0\0",
        b"\0./a/..\0\0\0\0\0",
        b"\0\0\0\0\0\0\0",
    ],
)
async def test_a_listing_without_sense_is_one_clear_error(told: bytes) -> None:
    """The far end lies about what is there."""
    facts = b"".join(
        field + b"\0"
        for field in [
            b"take=head -c ", b"uid=0", b"gid=0", b"umask=0022", b"has sh=/bin/sh",
            *(b"has %s=/bin/x" % name for name in (
                b"dd", b"head", b"tail", b"wc", b"stat", b"mv", b"mkdir", b"rm", b"find",
                b"readlink",
            )),
        ]
    )  # fmt: skip

    def answer(sent: bytes) -> bytes | None:
        if said := hello(sent):
            return said
        body = facts if b"probe" in sent else told if b"tree" in sent else b""
        return body + b"\x1e" + word(sent) + b" R 0\n"

    async def open_channel(argv: Sequence[str]) -> Played:
        return Played(answer)

    backend = Shells("sh").backend()
    backend = type(backend)(open_channel, target="test:", cwd="/")
    async with backend:
        with pytest.raises(ConnectionLost, match="broke the protocol"):
            await backend.glob("*", "/x", limit=5)
