"""The tail, the totals and the kept file agree with the output, however it was cut into chunks."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.engine import tail as tail_module
from backends.engine.tail import Tail

if TYPE_CHECKING:
    from pathlib import Path


class Unlimited:
    """No limit on what is kept."""

    def claim(self, size: int) -> None:
        pass

    def give_back(self, size: int) -> None:
        pass


class InMemory(Unlimited):
    """Stand for KeptOutput without a folder that is shared between examples."""

    def __init__(self) -> None:
        self.fd = -1

    def create(self) -> tuple[int, bytes]:
        self.fd = os.memfd_create("kept")
        return os.dup(self.fd), b"/kept"

    def content(self) -> bytes:
        return os.pread(self.fd, 1 << 20, 0) if self.fd >= 0 else b""


@given(
    chunks=st.lists(st.binary(min_size=1, max_size=40).map(lambda data: data.replace(b"a", b"\n"))),
    takes=st.sets(st.integers(0, 20)),
    size=st.integers(1, 30),
    over_bytes=st.integers(0, 200),
    over_lines=st.integers(0, 10),
    cap=st.integers(0, 300),
)
def test_any_cutting_gives_the_same(
    chunks: list[bytes], takes: set[int], size: int, over_bytes: int, over_lines: int, cap: int
) -> None:
    kept = InMemory()
    tail = Tail(size, over_bytes, over_lines, kept, cap)
    whole, seen = b"".join(chunks), 0
    total = 0
    for number, chunk in enumerate(chunks):
        tail.add(chunk)
        total += len(chunk)
        if number in takes:
            start, data = tail.take()
            assert data == whole[:total][max(seen, total - size) :]
            assert start + len(data) == total
            seen = total
            assert not tail.has_news
    lines = whole.count(b"\n")
    assert (tail.total_bytes, tail.total_lines) == (len(whole), lines)
    assert tail.has_news == (total > seen)
    wanted = len(whole) > over_bytes or lines > over_lines
    assert (tail.kept_path is not None) == wanted
    assert kept.content() == (whole[:cap] if wanted else b"")
    assert tail.kept_bytes == len(kept.content())
    tail.close()
    if kept.fd >= 0:
        os.close(kept.fd)


def test_no_place_for_the_file_is_told() -> None:
    class Nowhere(Unlimited):
        def create(self) -> tuple[int, bytes]:
            raise OSError(errno.EROFS, "Read-only file system")

    tail = Tail(5, 3, 100, Nowhere(), 1000)
    tail.add(b"abcdef")
    tail.add(b"ghi")
    assert (tail.kept_path, tail.kept_bytes) == (None, 0)
    assert tail.dropped == "Read-only file system"
    assert tail.take() == (4, b"efghi")


def test_a_full_disk_frees_what_was_written_and_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Folder(Unlimited):
        def create(self) -> tuple[int, bytes]:
            path = tmp_path / "kept"
            return os.open(path, os.O_WRONLY | os.O_CREAT), bytes(path)

    tail = Tail(5, 3, 100, Folder(), 1000)
    tail.add(b"abcdef")
    assert (tmp_path / "kept").read_bytes() == b"abcdef"

    def full(_fd: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tail_module.os, "write", full)
    tail.add(b"ghi")
    tail.add(b"jkl")
    assert (tail.kept_path, tail.dropped) == (None, "No space left on device")
    assert not (tmp_path / "kept").exists()
    assert tail.take() == (7, b"hijkl")


def test_memory_is_bounded_whatever_the_limits_are() -> None:
    kept = InMemory()
    tail = Tail(1000, 1 << 40, 1 << 40, kept, 1 << 30)
    for _ in range(64):
        tail.add(b"x" * (1 << 20))
    assert len(tail._held) <= 1 << 20
    assert tail.kept_bytes == 64 << 20
    tail.close()
    os.close(kept.fd)
