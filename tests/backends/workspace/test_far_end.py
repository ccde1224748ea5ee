"""A far end that lies, floods, stalls or dies: one clear error, bounded memory, no hang."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from backends.local import LocalBackend
from backends.remote.channel import ChannelClosed
from backends.workspace import NotAnArchive, far_end, put_folder, take_folder
from backends.workspace.complaints import error_about
from operations import (
    ConnectionLost,
    FileChanged,
    OperationUnsupported,
    PathDenied,
    PathError,
    StorageFull,
)
from tests.backends.workspace.test_archive import file, tar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

pytestmark = pytest.mark.anyio


#: For the liar: a byte after a while.
TRICKLE = b"trickle"


class Liar:
    """A channel to a far end that says what a test wants, once it has been told to go.

    Args:
        parts: What it says; WORD is the word of its marks; None stalls for ever.
        ready: What it says before.
    """

    def __init__(
        self, parts: Iterator[bytes | None] | Sequence[bytes | None], ready: bytes
    ) -> None:
        self._parts = iter(parts)
        self._ready = ready
        self._told = anyio.Event()
        self.word = b""
        self.closed = False

    async def send(self, data: bytes) -> None:
        if self.closed:
            raise ChannelClosed("closed")
        if data == b"go\n":
            self._told.set()

    def send_nowait(self, data: bytes) -> int:
        return 0

    async def receive(self) -> bytes:
        if self._ready:
            ready, self._ready = self._ready, b""
            return ready.replace(b"WORD", self.word)
        await self._told.wait()
        part = next(self._parts, b"")
        if part is None:
            await anyio.sleep_forever()
        if part == TRICKLE:
            await anyio.sleep(0.02)
            part = b"x"
        assert part is not None
        return part.replace(b"WORD", self.word) if len(part) < 10_000 else part

    async def close(self) -> None:
        self.closed = True

    async def exit_report(self) -> str:
        return "the program ended with exit status 7"


class Lying(LocalBackend):
    """This machine with a liar for every program."""

    def __init__(
        self, *parts: bytes | None, ready: bytes = b"\nWORD R 0\n", endless: bytes = b""
    ) -> None:
        super().__init__()
        self.channel = Liar(iter(lambda: endless, 0) if endless else parts, ready)

    async def open_program(self, argv: Sequence[str]) -> Any:
        self.channel.word = argv[4].encode()
        return self.channel


GOOD = tar(file("a"))

TAKEN = {
    "nothing": ([], ConnectionLost, "its tar ended with exit status 7"),
    "half a tar": ([GOOD[:700]], ConnectionLost, "exit status 7"),
    "half a tar that counts as whole": (
        [GOOD[:700], b"\nWORD T 0\n\n0\nWORD X 0\n"],
        NotAnArchive,
        "",
    ),
    "no end": ([GOOD], ConnectionLost, "exit status 7"),
    "another's marks": ([GOOD, b"\nother T 0\n\n0\nother X 0\n"], ConnectionLost, ""),
    "zeros for ever": ([GOOD] + [bytes(1 << 16)] * 40, NotAnArchive, "behind its end"),
    "a flood behind the end": ([GOOD] + [b"x" * (1 << 16)] * 40, NotAnArchive, "behind its end"),
    "a status that is none": ([GOOD, b"\nWORD T 0\n\nok\nWORD X 0\n"], PathError, ""),
    "a complaint": (
        [GOOD[:700], b"\nWORD T 0\ntar: ./b: Cannot open: Permission denied\n\n2\nWORD X 0\n"],
        PathDenied,
        "/b",
    ),
    "text": ([b"bash: tar: what?\n" * 100], NotAnArchive, ""),
}


@pytest.mark.parametrize("name", TAKEN)
async def test_what_is_no_answer_is_one_clear_error(name: str, tmp_path: Path) -> None:
    parts, error, text = TAKEN[name]
    (tmp_path / "far").mkdir()
    backend = Lying(*parts)
    async with backend:
        with pytest.raises(error, match=re.escape(text) or "."):
            await take_folder(backend, str(tmp_path / "far"), str(tmp_path / "out"))
    assert backend.channel.closed
    assert [path.name for path in tmp_path.iterdir()] == ["far"]


@pytest.mark.parametrize(
    ("ready", "error"),
    [
        (b"\nWORD N 1\n", OperationUnsupported),
        (b"\nWORD N 99\n", OperationUnsupported),
        (b"x" * 70_000, ConnectionLost),
        (b"welcome\n", ConnectionLost),
    ],
)
async def test_one_that_is_not_ready_gets_nothing(
    ready: bytes, error: type[Exception], source: Path, tmp_path: Path
) -> None:
    backend = Lying(ready=ready)
    backend.channel._told.set()
    async with backend:
        with pytest.raises(error):
            await put_folder(backend, str(source), str(tmp_path / "far"))
    assert not (tmp_path / "far").exists()
    assert backend.channel.closed


PUT = {
    "nothing": ([], ConnectionLost),
    "a full disk, at once": ([b"tar: a: Cannot write: No space left on device\n"], StorageFull),
    "a flood, then a refusal": (
        [b"tar: a: Cannot open: Permission denied\n"]
        + [b"noise\n" * 20_000] * 20
        + [b"\nWORD X 2\n"],
        PathDenied,
    ),
    "a flood, then nothing": ([b"noise\n" * 20_000] * 20, ConnectionLost),
}


@pytest.mark.parametrize("name", PUT)
async def test_what_a_target_says_to_a_folder(name: str, source: Path, tmp_path: Path) -> None:
    parts, error = PUT[name]
    backend = Lying(*parts)
    async with backend:
        with pytest.raises(error):
            await put_folder(backend, str(source), str(tmp_path / "far"))
    assert backend.channel.closed


async def test_a_stall_is_a_loss(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(far_end, "_IDLE_S", 0.2)
    for backend in (Lying(None), Lying(GOOD, None), Lying(GOOD[:600], None)):
        async with backend:
            with pytest.raises(ConnectionLost):
                await take_folder(backend, str(source), str(tmp_path / "out"))
    backend = Lying(None)
    async with backend:
        with pytest.raises(ConnectionLost):
            await put_folder(backend, str(source), str(tmp_path / "far"))
    assert not (tmp_path / "out").exists()


async def test_a_trickle_is_a_loss(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A far end that sends a byte now and then would be waited for without an end."""
    monkeypatch.setattr(far_end, "_IDLE_S", 0.3)
    monkeypatch.setattr(far_end, "_LEAST_BYTES", 100)
    backend = Lying(tar(file("a", b"")), endless=TRICKLE)
    async with backend:
        with anyio.fail_after(30), pytest.raises(ConnectionLost, match=r"only .* bytes were heard"):
            await take_folder(backend, str(source), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"tar: ./a b: Cannot open: Permission denied\ntar: Exiting\n", PathDenied("/far/a b")),
        (b"tar: can't open './d/c': Permission denied\n", PathDenied("/far/d/c")),
        (b"tar: can't create directory 'd': Read-only file system\n", PathDenied("/far/d")),
        (b"tar: a: Wrote only 512 bytes\ntar: No space left on device\n", StorageFull("/far/a")),
        (b"tar: write error: No space left on device\n", StorageFull("/far")),
        (b"tar: a: Cannot write: Disk quota exceeded\n", StorageFull("/far/a")),
        (b"tar: ./log: file changed as we read it\n", FileChanged("/far/log")),
        (b"tar: .: file changed as we read it\n", FileChanged("/far")),
        (b"tar: ./x: File removed before we read it\n", FileChanged("/far/x")),
        (b"\xff\x00 something else\n", PathError("/far")),
        (b"", PathError("/far")),
    ],
)
def test_what_a_tar_complains_about(said: bytes, error: Any) -> None:
    found: Any = error_about("/far", 2, said)
    assert type(found) is type(error)
    assert found.path == error.path
