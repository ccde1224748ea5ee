"""The near end's state machine against a far end that is not trusted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.engine import frames
from backends.engine.frames import HELLO_MARK, WireError, encode_frame, encode_value
from backends.remote.session import (
    MAX_NOISE,
    MAX_REQUESTS,
    SILENT_PINGS,
    DataReceived,
    Failed,
    FarewellReceived,
    Finished,
    HelloReceived,
    NearSession,
    PartReceived,
)

HELLO = HELLO_MARK + encode_frame(frames.HELLO, 0, encode_value({"version": frames.VERSION}))


def greeted() -> NearSession:
    session = NearSession()
    session.receive(HELLO)
    return session


def answer(kind: int, number: int, value: object = None) -> bytes:
    return encode_frame(kind, number, encode_value(value))


def sent(session: NearSession) -> list[tuple[int, int, bytes]]:
    stream = b""
    while data := session.data_to_send(1 << 20):
        stream += data
    return list(frames.FrameReader().feed(stream))


@pytest.mark.parametrize("noise", [b"", b"Welcome!\n", b"\x00remotehands-hell", HELLO_MARK[:5] * 9])
@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_noise_before_the_hello_is_skipped(noise: bytes, step: int) -> None:
    """Login banners and rc files print what they like, and the wire splits it anywhere."""
    session, events = NearSession(), []
    stream = noise + HELLO
    for start in range(0, len(stream), step):
        events += session.receive(stream[start : start + step])
    assert events == [HelloReceived({"version": frames.VERSION})]


def test_noise_is_bounded() -> None:
    session = NearSession()
    for _ in range(MAX_NOISE // 1000):
        assert session.receive(b"y\n" * 500) == []
    with pytest.raises(WireError, match="no hello"):
        session.receive(b"y\n" * 1000)


@pytest.mark.parametrize(
    "first",
    [
        answer(frames.HELLO, 0, {"version": 99}),
        answer(frames.HELLO, 0, {"version": "x" * 10_000}),
        answer(frames.HELLO, 0, "hi"),
        answer(frames.RESULT, 1, {"version": frames.VERSION}),
    ],
)
def test_another_hello_is_refused(first: bytes) -> None:
    with pytest.raises(WireError) as caught:
        NearSession().receive(HELLO_MARK + first)
    assert len(str(caught.value)) < 200


def test_an_answer_becomes_events_and_ends_the_request() -> None:
    session = greeted()
    number = session.request("op", {})
    events = session.receive(
        answer(frames.PART, number, 1)
        + encode_frame(frames.DATA, number, b"x")
        + answer(frames.RESULT, number, 2)
    )
    assert events == [PartReceived(number, 1), DataReceived(number, b"x"), Finished(number, 2)]
    with pytest.raises(WireError, match="not open"):
        session.receive(answer(frames.RESULT, number, 3))


def test_a_fault_ends_the_request() -> None:
    session = greeted()
    number = session.request("op", {}, b"body that is not wanted")
    assert session.receive(answer(frames.FAULT, number, ["path", [b"/"]])) == [
        Failed(number, "path", [b"/"])
    ]
    assert [kind for kind, _, _ in sent(session)] == [frames.REQUEST]


def test_a_cancelled_request_stays_known_until_it_ends() -> None:
    session = greeted()
    number = session.request("op", {})
    session.cancel(number)
    session.cancel(number)
    assert [kind for kind, _, _ in sent(session)] == [frames.REQUEST, frames.CANCEL]
    assert session.receive(encode_frame(frames.DATA, number, b"x"))
    assert session.receive(answer(frames.FAULT, number, ["cancelled", []]))
    with pytest.raises(WireError):
        session.receive(encode_frame(frames.DATA, number, b"x"))


@pytest.mark.parametrize(
    "stream",
    [
        HELLO[len(HELLO_MARK) :],
        answer(frames.RESULT, 2),
        answer(frames.PART, 99),
        encode_frame(frames.PART, 1, b"\xff"),
        encode_frame(frames.RESULT, 1, b""),
        answer(frames.FAULT, 1, "no"),
        answer(frames.FAULT, 1, ["code", "not a list"]),
        answer(frames.CREDIT, 1, 1),
        encode_frame(frames.PONG, 0),
        encode_frame(frames.PING, 0),
        answer(frames.REQUEST, 1, ["op", {}, None]),
        encode_frame(frames.CANCEL, 1),
        encode_frame(frames.END, 1),
        answer(frames.BYE, 0, 5),
    ],
)
def test_a_broken_protocol_is_refused(stream: bytes) -> None:
    session = greeted()
    session.request("op", {})
    with pytest.raises(WireError):
        session.receive(stream)


def test_output_beyond_its_credit_is_refused() -> None:
    session = greeted()
    number = session.request("op", {})
    frame = encode_frame(frames.DATA, number, bytes(frames.CHUNK))
    for _ in range(frames.FIRST_CREDIT // frames.CHUNK):
        session.receive(frame)
    with pytest.raises(WireError, match="credit"):
        session.receive(encode_frame(frames.DATA, number, b"x"))


def test_output_that_was_taken_is_credited() -> None:
    session = greeted()
    number = session.request("op", {})
    sent(session)
    frame = encode_frame(frames.DATA, number, bytes(frames.CHUNK))
    for _ in range(10 * frames.FIRST_CREDIT // frames.CHUNK):
        session.receive(frame)
        session.consume(number, frames.CHUNK)
    granted = [frames.decode_value(payload) for _, _, payload in sent(session)]
    assert sum(granted) <= 10 * frames.FIRST_CREDIT
    assert len(granted) <= 50, "credit comes in runs"


def test_a_body_stops_at_its_credit_and_goes_on_with_more() -> None:
    session = greeted()
    number = session.request("op", {}, bytes(frames.FIRST_CREDIT + 10))
    out = sent(session)
    assert sum(len(p) for kind, _, p in out if kind == frames.DATA) == frames.FIRST_CREDIT
    assert session.data_to_send(100) == b""
    session.receive(answer(frames.CREDIT, number, 4))
    assert [(kind, len(p)) for kind, _, p in sent(session)] == [(frames.DATA, 4)]
    session.receive(answer(frames.CREDIT, number, 100))
    assert [kind for kind, _, _ in sent(session)] == [frames.DATA, frames.END]


def test_more_credit_than_was_used_is_refused() -> None:
    session = greeted()
    number = session.request("op", {}, b"abc")
    sent(session)
    with pytest.raises(WireError, match="credit"):
        session.receive(answer(frames.CREDIT, number, 4))


def test_a_small_request_is_not_behind_a_large_body() -> None:
    session = greeted()
    session.request("op", {}, bytes(1 << 20))
    session.data_to_send(1 << 17)
    small = session.request("op", {})
    [first, *_] = frames.FrameReader().feed(session.data_to_send(1 << 17))
    assert first[:2] == (frames.REQUEST, small)


def test_bodies_take_turns() -> None:
    session = greeted()
    for _ in range(2):
        session.request("op", {}, bytes(1 << 20))
    out = sent(session)
    order = [number for kind, number, _ in out if kind == frames.DATA]
    assert order[:4] == [1, 2, 1, 2]


def test_silence_is_counted_in_pings() -> None:
    session = greeted()
    assert all(session.ping() for _ in range(SILENT_PINGS))
    assert not session.ping()
    session = greeted()
    for _ in range(3 * SILENT_PINGS):
        assert session.ping()
        session.receive(encode_frame(frames.PONG, 0))


def test_requests_that_never_end_are_bounded() -> None:
    session = greeted()
    for _ in range(MAX_REQUESTS):
        session.cancel(session.request("op", {}))
    with pytest.raises(WireError):
        session.request("op", {})


def test_a_request_that_cannot_be_encoded_leaves_nothing() -> None:
    session = greeted()
    with pytest.raises(WireError):
        session.request("op", {"x": b"x" * frames.MAX_PAYLOAD})
    assert sent(session) == []
    assert session.request("op", {}) == 1


def test_a_farewell_tells_why() -> None:
    assert greeted().receive(answer(frames.BYE, 0, "lease")) == [FarewellReceived("lease")]


@given(st.lists(st.binary(max_size=100), max_size=20))
def test_garbage_instead_of_a_hello(chunks: list[bytes]) -> None:
    session = NearSession()
    for chunk in chunks:
        assert session.receive(chunk) == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(frames.NAMES)),
            st.integers(0, 4),
            st.binary(max_size=20) | st.integers(-5, 5).map(encode_value),
        ),
        max_size=30,
    ),
    st.binary(max_size=20),
)
@settings(max_examples=300)
def test_garbage_after_the_hello_is_events_or_a_wire_error(
    stream: list[tuple[int, int, bytes]], rest: bytes
) -> None:
    """Frames of any type and content, then bytes of any kind."""
    session = greeted()
    for body in (None, b"abc", b""):
        session.request("op", {}, body)
    session.ping()
    try:
        for frame in stream:
            session.receive(encode_frame(*frame))
        session.receive(rest)
    except WireError:
        pass
    assert all(0 <= r.credit <= frames.FIRST_CREDIT for r in session._requests.values())
