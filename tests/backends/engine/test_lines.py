"""Windows of lines from streams of bytes."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backends.engine.faults import Fault
from backends.engine.lines import scan_lines

MARKS = {
    "utf-8-sig": b"\xef\xbb\xbf",
    "utf-16-le": b"\xff\xfe",
    "utf-16-be": b"\xfe\xff",
    "utf-32-le": b"\xff\xfe\x00\x00",
    "utf-32-be": b"\x00\x00\xfe\xff",
}


def split_keeping_ends(text):
    """Split on LF only; works for bytes and str."""
    newline = "\n" if isinstance(text, str) else b"\n"
    parts = text.split(newline)
    lines = [part + newline for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def oracle(lines, sizes, start, max_lines, max_bytes):
    """Return (lines taken, stopped_by, is the first one too long), naively."""
    taken, used = [], 0
    for line, size in zip(lines[start - 1 :], sizes[start - 1 :], strict=True):
        if len(taken) == max_lines:
            return taken, "lines", False
        if used + size > max_bytes:
            return taken, "bytes", not taken
        taken.append(line)
        used += size
    return taken, None, False


def cut(data, lengths):
    """Cut data into chunks of the lengths given, over and over."""
    position, turn = 0, 0
    while position < len(data):
        yield data[position : position + lengths[turn % len(lengths)]]
        position += lengths[turn % len(lengths)]
        turn += 1


LIMITS = {
    "start": st.integers(1, 12),
    "max_lines": st.integers(1, 8),
    "max_bytes": st.integers(1, 40),
    "lengths": st.lists(st.integers(1, 50), min_size=1, max_size=5),
}


@given(
    data=st.lists(
        st.sampled_from([b"\n", b"\r\n", b"a", b"bc" * 8, b"\xe9", "é".encode(), b"\x0c"])
    ).map(b"".join),
    **LIMITS,
)
@example(data=b"", start=1, max_lines=1, max_bytes=1, lengths=[1])
@example(data=b"a\nb\n", start=2, max_lines=1, max_bytes=2, lengths=[2])
@example(data=b"a" * 41 + b"\n" + b"b", start=1, max_lines=1, max_bytes=40, lengths=[7])
def test_a_window_is_what_splitting_the_whole_file_gives(
    data, start, max_lines, max_bytes, lengths
):
    lines = split_keeping_ends(data)
    taken, stopped_by, too_long = oracle(
        lines, [len(x) for x in lines], start, max_lines, max_bytes
    )
    assert scan_lines(cut(data, lengths), start, max_lines, max_bytes) == {
        "kind": "text",
        "data": b"".join(taken),
        "start": start,
        "lines": len(taken),
        "total_lines": len(lines),
        "size": len(data),
        "encoding": "utf-8",
        "mime_type": None,
        "stopped_by": stopped_by,
        "long_line_bytes": len(lines[start - 1]) if too_long else 0,
    }


@given(
    encoding=st.sampled_from(sorted(MARKS)),
    # U+0A0A and U+0100 put the bytes of a line ending off the grid of characters.
    text=st.lists(
        st.sampled_from(["\n", "\r\n", "a", "\u0a0a\u0100", "\u0100\u0a0a", "é", "😀", "x" * 9])
    ).map("".join),
    tail=st.sampled_from([b"", b"\n"]),
    **LIMITS,
)
def test_lines_of_other_encodings_are_found_in_their_units(
    encoding, text, tail, start, max_lines, max_bytes, lengths
):
    plain = "utf-8" if encoding == "utf-8-sig" else encoding
    if encoding == "utf-8-sig":
        tail = b""
    data = MARKS[encoding] + text.encode(plain) + tail
    lines = [line.encode(plain) for line in split_keeping_ends(text)]
    if tail and (not lines or text.endswith("\n")):
        lines.append(tail)
    elif tail:
        lines[-1] += tail
    sizes = [len(x.decode(plain, "replace").encode()) for x in lines]
    taken, stopped_by, too_long = oracle(lines, sizes, start, max_lines, max_bytes)
    window = scan_lines(cut(data, lengths), start, max_lines, max_bytes)
    assert window["encoding"] == encoding
    assert window["data"] == b"".join(taken)
    assert (window["lines"], window["total_lines"]) == (len(taken), len(lines))
    assert window["stopped_by"] == stopped_by
    assert window["long_line_bytes"] == (len(lines[start - 1]) if too_long else 0)
    assert window["size"] == len(data)


def test_a_byte_order_mark_alone_is_an_empty_text():
    window = scan_lines([b"\xff\xfe"], 1, 10, 100)
    assert (window["kind"], window["total_lines"], window["data"]) == ("text", 0, b"")


def test_a_mark_inside_the_text_is_left_alone():
    data = b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n"
    assert scan_lines([data], 1, 10, 100)["data"] == b"one\n\xef\xbb\xbftwo\n"


@pytest.mark.parametrize("at", [0, 8191])
def test_a_nul_in_the_first_8_kib_means_binary(at):
    data = b"a" * at + b"\0" + b"b" * 10000
    window = scan_lines(cut(data, [100]), 1, 10, 100)
    assert (window["kind"], window["data"], window["total_lines"]) == ("binary", b"", 0)
    assert window["size"] == len(data)


def test_a_nul_after_the_first_8_kib_is_text():
    data = b"a" * 8192 + b"\0\n"
    window = scan_lines([data], 1, 10, 10000)
    assert (window["kind"], window["data"]) == ("text", data)


def test_known_binary_formats_are_named():
    assert scan_lines([b"\x7fELF\x02\x01\x01\x00" + b"x" * 90], 1, 1, 1)["mime_type"] == (
        "application/x-executable"
    )


def test_an_image_is_told_by_content_and_not_read_further_than_needed():
    def chunks():
        yield b"\x89PNG\r\n\x1a\n" + b"x" * 9000
        raise AssertionError("read on")

    window = scan_lines(chunks(), 1, 10, 100, size=5_000_000)
    assert (window["kind"], window["mime_type"]) == ("image", "image/png")
    assert (window["size"], window["data"]) == (5_000_000, b"")


@pytest.mark.parametrize("text", [b"BMW is a car\n", b"GIF89a is a format\n", b"RIFF raff\n"])
def test_a_text_that_begins_like_an_image_is_text(text):
    assert scan_lines([text * 3], 1, 1, 100)["kind"] == "text"


def test_a_start_past_the_end_gives_an_empty_window_and_the_total():
    window = scan_lines([b"a\nb\nc"], 4, 10, 100)
    assert (window["lines"], window["data"], window["total_lines"]) == (0, b"", 3)
    assert window["stopped_by"] is None


def test_a_line_of_50_mb_is_reported_by_its_size_in_bounded_memory():
    def chunks():
        yield b"first\n"
        for _ in range(200):
            yield b"x" * 250_000
        yield b"\nlast\n"

    tracemalloc.start()
    try:
        window = scan_lines(chunks(), 2, 10, 51200)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert window["long_line_bytes"] == 50_000_001
    assert (window["lines"], window["data"], window["total_lines"]) == (0, b"", 3)
    assert window["stopped_by"] == "bytes"
    assert peak < 2_000_000


def test_a_long_line_after_others_ends_the_window_before_it():
    window = scan_lines([b"a\n", b"b" * 300, b"\nc\n"], 1, 10, 100)
    assert (window["data"], window["stopped_by"]) == (b"a\n", "bytes")
    assert (window["long_line_bytes"], window["total_lines"]) == (0, 3)


def test_cancelling_ends_the_scan_at_the_next_chunk():
    seen = []

    def chunks():
        while True:
            seen.append(1)
            yield b"a\n" * 5000

    with pytest.raises(Fault) as caught:
        scan_lines(chunks(), 1, 1, 100, cancelled=lambda: len(seen) >= 3)
    assert caught.value.code == "cancelled"
    assert len(seen) == 3


def test_progress_comes_at_most_ten_times_a_second(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("backends.engine.lines.time.monotonic", lambda: now[0])
    reports = []

    def chunks():
        for _ in range(1000):
            now[0] += 0.001
            yield b"a\n" * 10

    scan_lines(chunks(), 1, 1, 100, lambda done, total: reports.append((done, total)), size=20000)
    assert 9 <= len(reports) <= 10
    assert reports == sorted(reports)
    assert {total for _, total in reports} == {20000}
