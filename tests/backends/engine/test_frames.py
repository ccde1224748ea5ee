"""Frames and values: what goes in comes out, and nonsense is refused in bounded time and memory."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.engine import frames
from backends.engine.frames import WireError

_kinds = st.sampled_from(sorted(frames.NAMES))
_ids = st.integers(0, 2**32 - 1)
_text = st.text(st.characters(exclude_categories=["Cs"]))
_leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.binary()
    | _text
)
_values = st.recursive(
    _leaves, lambda inner: st.lists(inner) | st.dictionaries(_text, inner), max_leaves=30
)


def _same(left: Any, right: Any) -> bool:
    """Compare with types, since True == 1 == 1.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(_same(left[k], right[k]) for k in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


@given(_values)
def test_values_come_back_as_they_went(value: Any) -> None:
    assert _same(frames.decode_value(frames.encode_value(value)), value)


def test_nan_crosses() -> None:
    assert math.isnan(frames.decode_value(frames.encode_value(math.nan)))


@given(st.lists(st.tuples(_kinds, _ids, st.binary(max_size=100))), st.randoms())
def test_frames_survive_any_split(sent: list[tuple[int, int, bytes]], random: Any) -> None:
    """The stream can be cut into reads anywhere."""
    stream = b"".join(frames.encode_frame(*frame) for frame in sent)
    reader, got = frames.FrameReader(), []
    while stream:
        size = random.randint(1, len(stream))
        got += reader.feed(stream[:size])
        stream = stream[size:]
    assert got == sent


@given(st.binary(max_size=300))
def test_garbage_is_a_value_or_a_wire_error(data: bytes) -> None:
    """Nothing but WireError comes out of decoding, whatever goes in."""
    try:
        value = frames.decode_value(data)
    except WireError:
        return
    assert frames.encode_value(value) is not None


@given(_values, st.integers(0, 10_000), st.integers(0, 255))
def test_a_changed_byte_is_a_value_or_a_wire_error(value: Any, at: int, byte: int) -> None:
    data = bytearray(frames.encode_value(value))
    data[at % len(data)] = byte
    test_garbage_is_a_value_or_a_wire_error.hypothesis.inner_test(bytes(data))  # type: ignore[attr-defined]


@given(st.lists(st.binary(max_size=200), max_size=10))
def test_garbage_is_frames_or_a_wire_error(chunks: list[bytes]) -> None:
    reader = frames.FrameReader()
    try:
        for chunk in chunks:
            for kind, _, payload in reader.feed(chunk):
                assert kind in frames.NAMES
                assert len(payload) <= frames.MAX_PAYLOAD
    except WireError:
        pass


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"l\xff\xff\xff\xff",
        b"m\xff\xff\xff\xff",
        b"b\x7f\xff\xff\xffabc",
        b"s\x00\x00\x00\x02\xff\xfe",
        b"m\x00\x00\x00\x01nn",
        b"nn",
        b"l\x00\x00\x00\x01" * 20 + b"n",
        b"\x80\x04.",
        b"i\x00",
    ],
    ids=repr,
)
def test_malformed_values_are_refused(data: bytes) -> None:
    """Sizes beyond the data, bad UTF-8, keys that are no text, rests, depth, pickles."""
    with pytest.raises(WireError):
        frames.decode_value(data)


@pytest.mark.parametrize("value", [2**63, "\ud800", {1: 2}, 3j, {"a": {3}}], ids=repr)
def test_what_has_no_encoding_is_refused(value: Any) -> None:
    with pytest.raises(WireError):
        frames.encode_value(value)


def test_depth_is_bounded_both_ways() -> None:
    value: Any = None
    for _ in range(frames.MAX_DEPTH):
        value = [value]
    assert _same(frames.decode_value(frames.encode_value(value)), value)
    with pytest.raises(WireError):
        frames.encode_value([value])


def test_a_payload_over_the_limit_is_refused_from_its_header_alone() -> None:
    header = frames.HEADER.pack(frames.MAX_PAYLOAD + 1, frames.DATA, 1)
    with pytest.raises(WireError):
        frames.FrameReader().feed(header)
    with pytest.raises(WireError):
        frames.encode_frame(frames.DATA, 1, bytes(frames.MAX_PAYLOAD + 1))


def test_an_unknown_type_of_frame_is_refused() -> None:
    with pytest.raises(WireError):
        frames.FrameReader().feed(frames.HEADER.pack(0, 99, 1))


def test_the_outbox_takes_from_each_request_in_turn() -> None:
    """A small answer waits for one frame of a large one, not for all of it."""
    outbox = frames.Outbox()
    for n in range(5):
        outbox.put(1, b"a%d" % n)
    outbox.put(2, b"bb")
    assert outbox.take(4) == b"a0bb"
    assert outbox.queued(1) == 8
    assert outbox.queued(2) == 0
    assert outbox.take(100) == b"a1a2a3a4"
    assert outbox.size == 0
    assert outbox.take(100) == b""
