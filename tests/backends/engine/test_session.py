"""The far end's state machine: what it takes, what it refuses, what it sends."""

from __future__ import annotations

from typing import Any

import pytest

from backends.engine import frames
from backends.engine.frames import WireError, encode_frame, encode_value
from backends.engine.session import ROOM, FarSession


def request(number: int, body: int | None = None) -> bytes:
    return encode_frame(frames.REQUEST, number, encode_value(["op", {}, body]))


def sent(session: FarSession) -> list[tuple[int, int, bytes]]:
    stream = b""
    while data := session.to_send(1 << 20):
        stream += data
    return list(frames.FrameReader().feed(stream))


def test_a_request_with_its_body_becomes_events_in_order() -> None:
    session = FarSession()
    stream = request(1, 3) + encode_frame(frames.DATA, 1, b"abc") + encode_frame(frames.END, 1)
    assert session.receive(stream) == [
        (frames.REQUEST, 1, ("op", {}, 3)),
        (frames.DATA, 1, b"abc"),
        (frames.END, 1, None),
    ]


def test_a_ping_is_answered_by_itself() -> None:
    session = FarSession()
    assert session.receive(encode_frame(frames.PING, 0)) == []
    assert sent(session) == [(frames.PONG, 0, b"")]


def test_what_crosses_a_terminal_frame_is_ignored() -> None:
    """The near end cannot know yet that the request has ended."""
    session = FarSession()
    session.receive(request(1, 10))
    session.fault(1, "path", [b"/", "no"])
    late = (
        encode_frame(frames.DATA, 1, b"abc")
        + encode_frame(frames.CANCEL, 1)
        + encode_frame(frames.CREDIT, 1, encode_value(5))
    )
    assert session.receive(late) == []


def test_a_request_has_one_terminal_frame() -> None:
    session = FarSession()
    session.receive(request(1))
    session.result(1, "yes")
    session.result(1, "again")
    session.fault(1, "cancelled", [])
    session.part(1, "late")
    session.data(1, b"late")
    assert [kind for kind, _, _ in sent(session)] == [frames.RESULT]


@pytest.mark.parametrize(
    "stream",
    [
        request(2) + request(1),
        request(1) + request(1),
        encode_frame(frames.REQUEST, 1, encode_value({"op": 1})),
        encode_frame(frames.REQUEST, 1, encode_value(["op", {}, -1])),
        encode_frame(frames.REQUEST, 1, b"\xff"),
        encode_frame(frames.DATA, 1, b"x"),
        encode_frame(frames.CANCEL, 7),
        request(1) + encode_frame(frames.DATA, 1, b"x"),
        request(1, 1) + encode_frame(frames.DATA, 1, b"xy"),
        request(1, 2) + encode_frame(frames.DATA, 1, b"x") + encode_frame(frames.END, 1),
        request(1) + encode_frame(frames.CREDIT, 1, encode_value(1)),
        request(1) + encode_frame(frames.CREDIT, 1, encode_value("x")),
        encode_frame(frames.RESULT, 1),
        encode_frame(frames.HELLO, 0),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_a_broken_protocol_is_refused(stream: bytes) -> None:
    with pytest.raises(WireError):
        FarSession().receive(stream)


def test_a_body_beyond_its_credit_is_refused() -> None:
    session = FarSession()
    session.receive(request(1, 1 << 30))
    chunk = bytes(frames.CHUNK)
    for _ in range(frames.FIRST_CREDIT // frames.CHUNK):
        session.receive(encode_frame(frames.DATA, 1, chunk))
    with pytest.raises(WireError):
        session.receive(encode_frame(frames.DATA, 1, b"x"))


def test_credit_is_the_window_and_the_room_in_the_output() -> None:
    """A request that is not read keeps only so much waiting; the window ends what was sent."""
    session = FarSession()
    session.receive(request(1))
    assert session.credit(1) == ROOM
    session.data(1, bytes(ROOM))
    assert session.credit(1) == 0
    total = ROOM
    while total < frames.FIRST_CREDIT:
        sent(session)
        size = session.credit(1)
        assert size
        session.data(1, bytes(size))
        total += size
    sent(session)
    assert session.credit(1) == 0
    with pytest.raises(WireError):
        session.data(1, b"x")
    assert session.receive(encode_frame(frames.CREDIT, 1, encode_value(10))) == [
        (frames.CREDIT, 1, None)
    ]
    assert session.credit(1) == 10


def test_data_travels_in_chunks() -> None:
    session = FarSession()
    session.receive(request(1))
    session.data(1, bytes(ROOM))
    assert {len(payload) for _, _, payload in sent(session)} == {frames.CHUNK}


def test_the_hello_comes_first_and_alone() -> None:
    session = FarSession()
    session.receive(encode_frame(frames.PING, 0))
    session.hello({"home": b"/"})
    first = session.to_send(1 << 20)
    assert first.startswith(frames.HELLO_MARK)
    [(kind, _, payload)] = frames.FrameReader().feed(first[len(frames.HELLO_MARK) :])
    assert kind == frames.HELLO
    assert frames.decode_value(payload) == {"home": b"/", "version": frames.VERSION}


def test_an_answer_that_is_too_large_leaves_the_request_open() -> None:
    session = FarSession()
    session.receive(request(1))
    value: Any = b"x" * (frames.MAX_PAYLOAD + 1)
    with pytest.raises(WireError):
        session.result(1, value)
    assert session.is_open(1)
