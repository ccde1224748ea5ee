"""Windows cut out of whole contents."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.texts.lines import window_of

ENCODINGS = [
    (b"", "utf-8"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
]


@given(
    st.text(alphabet=st.sampled_from("ab\n\r\x0b\u2028é\u0a0a\u0100")),
    st.sampled_from(ENCODINGS),
    st.integers(1, 8),
    st.integers(1, 8),
)
def test_a_window_is_the_lines_it_says(text, encoding, start, max_lines):
    """B12, B65, B66: only LF ends a line, and a last one needs none."""
    mark, codec = encoding
    lines = text.split("\n")
    whole = [line + "\n" for line in lines[:-1]] + [lines[-1]] * bool(lines[-1])
    window = window_of(
        mark + text.encode(codec), start=start, max_lines=max_lines, max_bytes=10_000
    )
    assert window.kind == "text"
    assert window.total_lines == len(whole)
    wanted = whole[start - 1 : start - 1 + max_lines]
    assert window.data.decode(codec) == "".join(wanted)
    assert window.lines == len(wanted)
    more = start - 1 + max_lines < len(whole)
    assert window.stopped_by == ("lines" if more else None)
    assert window.size == len(mark + text.encode(codec))


@pytest.mark.parametrize(
    ("max_bytes", "lines", "stopped"), [(6, 2, None), (5, 1, "bytes"), (3, 1, "bytes")]
)
def test_lines_are_never_cut(max_bytes, lines, stopped):
    window = window_of(b"ab\ncd\n", start=1, max_lines=9, max_bytes=max_bytes)
    assert (window.lines, window.stopped_by) == (lines, stopped)


def test_a_line_over_the_limit_is_told_by_its_size():
    window = window_of(b"a\n" + b"x" * 99 + b"\nb\n", start=2, max_lines=9, max_bytes=50)
    assert (window.lines, window.data, window.long_line_bytes) == (0, b"", 100)
    assert window.total_lines == 3


@pytest.mark.parametrize(
    ("content", "kind", "mime_type"),
    [
        (b"PK\x03\x04\x00rest", "binary", "application/zip"),
        (b"a\x00b", "binary", None),
        (b"\x89PNG\r\n\x1a\n\x00", "image", "image/png"),
        (b"\xff\xd8\xff\xe0", "image", "image/jpeg"),
        (b"GIF89a is a format, says this text", "text", None),
        (b"BM is a text too, with some more words", "text", None),
        (b"%PDF-1.4 as text", "text", None),
    ],
)
def test_content_decides_the_kind(content, kind, mime_type):
    window = window_of(content, start=1, max_lines=9, max_bytes=1000)
    assert (window.kind, window.mime_type) == (kind, mime_type)
