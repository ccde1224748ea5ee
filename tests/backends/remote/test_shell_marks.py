"""Marks in a stream: found however it is cut, and never mistaken."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.remote.shell_marks import Garbage, Mark, MarkReader

WORD = "abcdef0123456789"
BEGIN = b"\x1e" + WORD.encode()


def read(chunks: list[bytes]) -> list[bytes | Mark]:
    """Return what a reader yields, neighbouring data joined."""
    reader = MarkReader(WORD)
    found: list[bytes | Mark] = []
    for chunk in chunks:
        for item in reader.feed(chunk):
            if isinstance(item, bytes) and found and isinstance(found[-1], bytes):
                found[-1] += item
            else:
                found.append(item)
    return found


# Data that is likely to look like the beginning of a mark.
DATA = st.lists(
    st.sampled_from([b"\x1e", BEGIN[:5], BEGIN[:-1], b"x", b"\n", b" R 0\n", bytes(range(256))])
).map(b"".join)
ITEMS = st.lists(
    st.one_of(DATA, st.builds(Mark, st.sampled_from("RSFHD"), st.integers(0, 10**12 - 1)))
)


@given(items=ITEMS, cuts=st.lists(st.integers(0, 5000)))
def test_any_cutting_gives_the_same(items: list[bytes | Mark], cuts: list[int]) -> None:
    """A stream that ends with a mark is told the same in whatever pieces it comes."""
    items = [*items, Mark("R", 0)]
    stream = b"".join(
        item if isinstance(item, bytes) else BEGIN + b" %s %d\n" % (item[0].encode(), item[1])
        for item in items
    )
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [stream[a:b] for a, b in itertools.pairwise(edges)]
    expected: list[bytes | Mark] = []
    for item in items:
        if isinstance(item, bytes) and expected and isinstance(expected[-1], bytes):
            expected[-1] += item
        elif item != b"":
            expected.append(item)
    assert read(chunks) == expected


def test_what_cannot_be_a_mark_is_not_held_back() -> None:
    assert list(MarkReader(WORD).feed(b"\x1eabc!")) == [b"\x1eabc!"]
    assert list(MarkReader(WORD).feed(b"text\x1eabc")) == [b"text"]


@pytest.mark.parametrize(
    "rest",
    [b" r 0\n......................", b" R -1\n" + b"." * 30, b" R 1234567890123\n....", b"x" * 40],
)
def test_a_word_without_a_mark_is_garbage(rest: bytes) -> None:
    with pytest.raises(Garbage):
        list(MarkReader(WORD).feed(BEGIN + rest))
