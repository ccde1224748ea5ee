"""What is left of terminal output."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.texts.output import OutputTail, clean_terminal_text


def test_progress_colours_titles_and_nul_go():
    """B103."""
    raw = "p 1%\rp 50%\rp 100%\n\x1b[31mred\x1b[0m \x1b[?25l\x1b]0;t\x07ok\r\n\x00z\n"
    assert clean_terminal_text(raw) == "p 100%\nred ok\nz\n"


@pytest.mark.parametrize(
    ("raw", "left"),
    [
        ("a\r\nb\r\n", "a\nb\n"),
        ("a\r\r\nb", "a\nb"),
        ("10%\r20%\r", "20%"),
        ("busy\r\x1b[Kdone\n", "done\n"),
        ("N\x08NA\x08AME\n", "NAME\n"),
        ("ab\x08\x08\x08c", "c"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\!", "link!"),
        ("\x1b(B\x1b)0x\x1b=\x1b>", "x"),
        ("\x1bP1$r0m\x1b\\x", "x"),
        ("\x9b31mred\x9bm", "red"),
        ("a\x7fb\x1fc\x0bd\x0ce", "abcde"),
        ("tab\there\x85same line", "tab\there\x85same line"),
        ("\x1b]0;never ends\nnext", "0;never ends\nnext"),
        ("\x1b\x1b[1mx", "x"),
        ("50% \x1b[1;31;4mdone", "50% done"),
    ],
)
def test_cleaning(raw, left):
    assert clean_terminal_text(raw) == left


@given(st.text(alphabet=st.sampled_from("ab;[]0m?\x1b\x9b\x9d\x07\x08\r\n\x00\\P(Kü")))
def test_no_control_character_is_left(text):
    for final in (True, False):
        left = clean_terminal_text(text, final=final)
        assert not set(left) & set("\x1b\x9b\x9d\x07\x08\r\x00")
        assert left.count("\n") == text.count("\n")


def test_a_sequence_that_has_only_begun_is_held_back():
    assert clean_terminal_text("ok\x1b[3", final=False) == "ok"
    assert clean_terminal_text("ok\x1b]0;tit", final=False) == "ok"
    assert clean_terminal_text("ok\x1b", final=False) == "ok"


@given(st.lists(st.integers(min_value=0, max_value=40)))
def test_chunks_make_no_difference(cuts):
    """B16: characters and sequences may be split anywhere."""
    raw = "≤ \x1b[31mröd\x1b[0m\n1%\r2%\r\n\U0001f600\x1b]0;t\x07 end".encode()
    tail = OutputTail(1000)
    at = 0
    for cut in sorted(min(cut, len(raw)) for cut in cuts):
        tail.add(raw[at:cut])
        at = cut
        assert "\ufffd" not in tail.text(final=False)
    tail.add(raw[at:])
    assert tail.text(final=True) == "≤ röd\n2%\n\U0001f600 end"
    assert (tail.total_bytes, tail.total_lines) == (len(raw), 3)
    assert not tail.dropped


def test_a_truncated_character_at_the_end_is_one_replacement():
    tail = OutputTail(100)
    tail.add(b"x\xe2\x89")
    assert tail.text(final=False) == "x"
    assert tail.text(final=True) == "x\ufffd"


@given(st.lists(st.binary(max_size=30), max_size=30))
def test_the_tail_is_bounded_and_ends_as_the_output_does(chunks):
    tail = OutputTail(16)
    for chunk in chunks:
        tail.add(chunk)
        assert len(tail._buffer) <= 32
    whole = b"".join(chunks)
    assert tail.total_bytes == len(whole)
    assert tail.total_lines == whole.count(b"\n") + (not whole.endswith(b"\n") and whole != b"")
    if not tail.dropped:
        assert bytes(tail._buffer) == whole
    else:
        assert whole.endswith(bytes(tail._buffer))


def test_dropped_output_begins_at_a_line_or_at_a_character():
    tail = OutputTail(10)
    tail.add(b"first line\nsecond\n")
    assert tail.text(final=True) == "second\n"
    tail = OutputTail(10)
    tail.add("é".encode() * 20 + b"!")
    assert set(tail.text(final=True)) == {"é", "!"}


def test_snapshots_with_a_gap_start_anew():
    tail = OutputTail(100)
    tail.add_snapshot(b"one\n", 0, 4, 1)
    tail.add_snapshot(b"two\n", 4, 8, 2)
    assert tail.text(final=True) == "one\ntwo\n"
    tail.add_snapshot(b"rtial\nlast\n", 5000, 5011, 900)
    assert tail.text(final=True) == "last\n"
    assert tail.dropped
    assert (tail.total_bytes, tail.total_lines) == (5011, 900)


@pytest.mark.parametrize(
    "hostile",
    [
        "\x9d" * 100_000,
        "\x1b]" * 100_000,
        "\x1b[0" * 70_000,
        "x" * 200_000 + "\r\n\r",
        "\x08" * 9999,
    ],
)
def test_hostile_output_is_cleaned_in_linear_time(hostile):
    start = time.perf_counter()
    clean_terminal_text(hostile, final=False)
    assert time.perf_counter() - start < 2
