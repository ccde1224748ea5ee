"""What truncation keeps, counts and never does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.texts.truncate import (
    MAX_BYTES,
    MAX_LINES,
    count_lines,
    format_size,
    truncate_head,
    truncate_tail,
    utf8_size,
)

texts = st.text(alphabet=st.sampled_from("ab\n\r\x0b\x0c\x85\u2028é€😀"), max_size=60)
limits = st.integers(min_value=4, max_value=40)


@given(texts, limits, limits)
def test_head_is_a_beginning_of_whole_lines_within_the_limits(text, max_lines, max_bytes):
    cut = truncate_head(text, max_lines=max_lines, max_bytes=max_bytes)
    assert text.startswith(cut.text)
    assert count_lines(cut.text) <= max_lines
    assert utf8_size(cut.text.removesuffix("\n")) <= max_bytes
    if cut.truncated_by:
        assert cut.text.endswith("\n") or not cut.text


@given(texts, limits, limits)
def test_tail_is_an_end_within_the_limits_and_never_empty(text, max_lines, max_bytes):
    cut = truncate_tail(text, max_lines=max_lines, max_bytes=max_bytes)
    assert text.endswith(cut.text)
    assert bool(cut.text) == bool(text)
    assert count_lines(cut.text) <= max_lines
    assert utf8_size(cut.text.removesuffix("\n")) <= max_bytes
    start = len(text) - len(cut.text)
    begins_a_line = start == 0 or text[start - 1] == "\n"
    assert cut.line_cut is not begins_a_line or not cut.truncated_by


@given(texts, limits, limits)
def test_totals_are_those_of_the_whole_text(text, max_lines, max_bytes):
    for cut in (
        truncate_head(text, max_lines=max_lines, max_bytes=max_bytes),
        truncate_tail(text, max_lines=max_lines, max_bytes=max_bytes),
    ):
        assert cut.total_bytes == len(text.encode())
        assert cut.total_lines == len(text.removesuffix("\n").split("\n")) * bool(text)
        assert cut.shown_lines == count_lines(cut.text)
        assert (cut.truncated_by is None) == (cut.text == text)


@given(texts, limits, limits)
def test_as_much_is_kept_as_fits(text, max_lines, max_bytes):
    head = truncate_head(text, max_lines=max_lines, max_bytes=max_bytes)
    if head.truncated_by:
        more = "\n".join(text.split("\n")[: head.shown_lines + 1])
        assert head.shown_lines == max_lines or utf8_size(more) > max_bytes


@pytest.mark.parametrize("cut", [truncate_head, truncate_tail])
@pytest.mark.parametrize("ending", ["", "\n"])
def test_exactly_the_limit_is_not_truncated_and_one_more_is(cut, ending):
    """B96."""
    assert cut("\n".join("x" for _ in range(MAX_LINES)) + ending).truncated_by is None
    assert cut("\n".join("x" for _ in range(MAX_LINES + 1)) + ending).truncated_by == "lines"
    line = "y" * 1023 + "\n"
    full = line * 50
    assert cut(full.removesuffix("\n") + "z" + ending).truncated_by is None
    assert cut(full.removesuffix("\n") + "zz" + ending).truncated_by == "bytes"
    assert len(full) == MAX_BYTES


@pytest.mark.parametrize("ending", ["", "\n", "\n\n"])
def test_one_long_line_keeps_its_end(ending):
    """B14: neither an empty body nor a lost end."""
    cut = truncate_tail("x" * 250_000 + "END-MARKER" + ending)
    assert cut.text.endswith("END-MARKER" + ending) or ending == "\n\n"
    assert cut.text.strip("\n") or ending == "\n\n"
    assert cut.truncated_by == "bytes"


def test_bytes_are_counted_not_characters():
    """B102."""
    text = ("\u3042" * 100 + "\n") * 600
    for cut in (truncate_head(text), truncate_tail(text)):
        assert cut.truncated_by == "bytes"
        assert len(cut.text.encode()) <= MAX_BYTES + 1
        assert set(cut.text) == {"\u3042", "\n"}


def test_a_long_line_is_cut_between_characters():
    cut = truncate_tail("a" + "\U0001f600" * 20_000, max_bytes=50_001)
    assert cut.line_cut
    assert set(cut.text) == {"\U0001f600"}


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1.0 KB"),
        (1536, "1.5 KB"),
        (1024 * 1024 - 1, "1.0 MB"),
        (50 * 1024 * 1024, "50.0 MB"),
    ],
)
def test_sizes_are_bytes_below_1024_then_one_decimal(size, shown):
    assert format_size(size) == shown
