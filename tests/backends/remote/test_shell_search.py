"""Searches over lanes find what the engine finds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from backends.local import LocalBackend
from backends.remote import shell_numbered, shell_pieces, shell_supply, shell_tree
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
    monkeypatch.setattr(shell_supply, "_SIFTED", 50)
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


def plant_long(root: Path) -> None:
    """Make files that are long for the patched limits, of all kinds that a search tells apart."""
    filler = [f"line {number} of many, none of which is short" for number in range(4000)]
    wanted = {3: "needle at the top", 2000: "a needle", 2001: "needle needle", 2003: "needle"}
    lines = [wanted.get(number, line) for number, line in enumerate(filler)]
    text = "\n".join([*lines, "needle, without an end"])
    (root / "a.gitignored").write_text(text)
    (root / "crlf").write_bytes(text.replace("\n", "\r\n").encode())
    (root / "mark").write_bytes(b"\xef\xbb\xbfneedle\n" + text.encode())
    (root / "latin").write_bytes(b"\xe9 needle \xff\n" + text.encode())
    (root / "none").write_text("\n".join(filler))
    (root / "nul").write_bytes(text.encode() + b"\n\0\n")
    (root / "nul before").write_bytes(text.replace("needle", "\0needle").encode())
    (root / "one line").write_text("x" * 200_000 + "needle" + "y" * 100_000)
    (root / "small").write_text("needle\n")
    (root / "wide").write_bytes(text.encode("utf-16"))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_long_files_are_searched_in_pieces(
    shells: Shells, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same lines as the engine's, be the file named or in a folder."""
    monkeypatch.setattr(shell_supply, "_MOST_BYTES", 1000)
    monkeypatch.setattr(shell_pieces, "_BLOCKS", 1)
    plant_long(tmp_path)
    asked = [
        {"pattern": "needle", "context": 2},
        {"pattern": "needle", "context": 2, "limit": 2},
        {"pattern": "need[l]e", "context": 2},
        {"pattern": "NEEDLE", "ignore_case": True},
        {"pattern": "no such text"},
        *({"pattern": "needle", "path": f"{tmp_path}/{name}"} for name in ("latin", "nul", "wide")),
    ]
    async with LocalBackend(cwd=str(tmp_path)) as local, shells.backend() as backend:
        for options in asked:
            query = GrepQuery(**{"path": str(tmp_path), **options})
            expected, found = await local.grep(query), await backend.grep(query)
            assert found.matches == expected.matches, options
            assert (found.more, found.unreadable) == (expected.more, expected.unreadable)
            if not expected.more:
                assert found.files_searched == expected.files_searched
                assert found.binary_skipped == expected.binary_skipped
        assert await backend.exists(str(tmp_path))


async def test_a_long_file_with_too_much_that_matches_is_searched_here(
    shells: Shells, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the target's grep finds is bounded, and then its answer does not count."""
    monkeypatch.setattr(shell_supply, "_MOST_BYTES", 1000)
    monkeypatch.setattr(shell_numbered, "_MOST_BYTES", 1000)
    (tmp_path / "f").write_text("x" * 3000 + " needle\nnot here\n")
    async with shells.backend() as backend:
        result = await backend.grep(GrepQuery(pattern="needle", path=str(tmp_path / "f")))
    assert [match.line for match in result.matches] == [1]
    assert result.files_searched == 1


async def test_a_search_that_is_cancelled_lets_a_long_file_go(
    shells: Shells, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its lane nor its turn stays taken."""
    monkeypatch.setattr(shell_supply, "_MOST_BYTES", 1000)
    (tmp_path / "f").write_text("y" + "x" * 5000 + "\n")
    async with shells.backend() as backend:
        for _ in range(2):
            query = GrepQuery(pattern="(x+x+)+y", path=str(tmp_path / "f"), timeout_s=0.5)
            with pytest.raises(SearchTimeout):
                await backend.grep(query)
        query = GrepQuery(pattern="[y]x", path=str(tmp_path / "f"))
        assert len((await backend.grep(query)).matches) == 1


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
