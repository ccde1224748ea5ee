"""Encodings, line endings and names."""

from __future__ import annotations

import codecs
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.texts.text import (
    decode_for_display,
    decode_for_editing,
    encoding_label,
    escape_name,
    escape_names,
    line_endings,
    without_terminal_codes,
)


@given(st.binary(max_size=200))
def test_a_file_decoded_for_editing_encodes_to_the_same_bytes(data):
    read = decode_for_editing(data)
    assert read is None or read.encode(read.text) == data


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_a_byte_order_mark_decides_and_is_no_text(mark, encoding):
    """B54, B83."""
    codec = "utf-8" if encoding == "utf-8-sig" else encoding
    data = mark + "héllo\r\n\ufeffx\r\n".encode(codec)
    read = decode_for_editing(data)
    assert read is not None
    assert (read.text, read.encoding, read.mark) == ("héllo\r\n\ufeffx\r\n", encoding, mark)
    assert read.encode(read.text.replace("h", "j")) == data.replace(
        "h".encode(codec), "j".encode(codec)
    )


def test_a_broken_promise_of_a_mark_is_refused():
    assert decode_for_editing(codecs.BOM_UTF16_LE + b"abc") is None


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("テスト", "shift_jis"),
        ("café au lait, déjà vu", "latin-1"),
        ("Привет мир, это текст", "cp1251"),
    ],
)
def test_legacy_text_is_guessed_and_said_so(text, encoding):
    """B54."""
    shown = decode_for_display(text.encode(encoding))
    assert shown.text == text
    assert shown.guessed
    assert not shown.damaged


def test_utf8_with_a_few_broken_bytes_stays_utf8():
    shown = decode_for_display("größe ändern übel\n".encode() + b"\xff\n")
    assert shown.encoding == "utf-8"
    assert shown.damaged
    assert shown.text.startswith("größe")


def test_nothing_fits_but_every_byte_has_a_character():
    assert decode_for_display(bytes(range(128, 256))).text


def test_line_endings_are_told():
    assert line_endings("a") == "none"
    assert line_endings("a\rb\nc") == "lf"
    assert line_endings("a\r\nb") == "crlf"
    assert line_endings("a\r\nb\n") == "mixed"


@pytest.mark.parametrize("name", ["plain", "mit Leer", "näme", "a'b", "$x", "-rf", "日本", "a#b"])
def test_plain_names_stand_as_they_are(name):
    assert escape_name(name) == name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\nb", '"a\\nb"'),
        ('q"\\', '"q\\"\\\\"'),
        ("\udcff\udc80x", '"\\xff\\x80x"'),
        ("\x1b[31m", '"\\x1b[31m"'),
        (" lead", '" lead"'),
        ("u\u2028v", '"u\\u2028v"'),
        ("a\u202eb", '"a\\u202eb"'),
        ("", '""'),
    ],
)
def test_odd_names_are_escaped(name, shown):
    assert escape_name(name) == shown


@given(st.text(alphabet=st.characters(), min_size=1))
def test_a_shown_name_is_one_line_of_valid_text(name):
    shown = escape_name(name)
    json.dumps(shown, ensure_ascii=False).encode()
    assert len(shown.splitlines()) == 1
    assert "\x1b" not in shown


@given(st.lists(st.text(alphabet=st.characters(), min_size=1), unique=True, max_size=5))
def test_two_names_never_look_the_same(names):
    assert len({escape_name(name) for name in names}) == len(names)


def test_terminal_codes_become_symbols():
    assert without_terminal_codes("a\x00\x1b[1m\udc80\x0c") == "a\u2400\u241b[1m\ufffd\x0c"


def test_labels_are_for_people():
    assert [encoding_label(name) for name in ("utf-8", "utf-16-le", "cp1252", "utf-8-sig")] == [
        "UTF-8",
        "UTF-16 LE",
        "cp1252",
        "UTF-8 with BOM",
    ]


@given(st.lists(st.text(max_size=5)))
def test_many_names_are_escaped_as_each_of_them_is(names: list[str]) -> None:
    assert escape_names(names) == [escape_name(name) for name in names]
    plain = [f"src/{name}.py" for name in ("a", "b_c", "d-e")]
    assert escape_names(plain) == plain
