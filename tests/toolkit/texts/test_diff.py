"""The diff of an edit."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.texts.diff import unified_diff
from toolkit.texts.match import Edit, Edited, EditError, apply_edits


def edited(text: str, *pairs: tuple[str, str], every: bool = False) -> Edited:
    return apply_edits(
        text, [Edit(old_text=old, new_text=new, replace_all=every) for old, new in pairs]
    )


def diff(text: str, *pairs: tuple[str, str], every: bool = False):
    return unified_diff(text, edited(text, *pairs, every=every).replacements, "f")


def test_it_is_a_unified_diff_with_three_lines_of_context():
    text = "".join(f"l{number}\n" for number in range(1, 21))
    made = diff(text, ("l8\n", "eight\nmore\n"))
    assert made.text == (
        "--- f\n+++ f\n@@ -5,7 +5,8 @@\n l5\n l6\n l7\n-l8\n+eight\n+more\n l9\n l10\n l11\n"
    )
    assert (made.first_changed_line, made.added, made.removed) == (8, 2, 1)


def test_far_changes_are_hunks_of_their_own_and_near_ones_share_one():
    text = "".join(f"l{number:02}\n" for number in range(60))
    assert diff(text, ("l05", "x"), ("l50", "y")).text.count("@@ -") == 2
    assert diff(text, ("l05", "x"), ("l11", "y")).text.count("@@ -") == 1


@pytest.mark.parametrize(
    ("text", "old", "new", "lines"),
    [
        ("x\n", "x\n", "x", ["-x", "+x", "\\ No newline at end of file"]),
        ("a\nb", "a\n", "", ["-a", " b", "\\ No newline at end of file"]),
        ("a\nb\n", "a\nb", "ab", ["-a", "-b", "+ab"]),
        ("a\r\nb\r\n", "a", "A", ["-a", "+A", " b"]),
        ("a\x0cb\nc\n", "c", "C", [" a\x0cb", "-c", "+C"]),
    ],
)
def test_small_ones(text, old, new, lines):
    """B93: shown also when only the newline changed."""
    assert diff(text, (old, new)).text.removesuffix("\n").split("\n")[3:] == lines


def patched(text: str, made: str) -> str:
    """Apply a unified diff by its own words: a reader of the format, strict about every line."""
    old = re.findall(r"[^\n]*\n|[^\n]+", text)
    out: list[str] = []
    at = 0
    lines = made.removesuffix("\n").split("\n")[2:]
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        content = line[1:] if following.startswith("\\") else line[1:] + "\n"
        if line.startswith("@@"):
            first, _, count = line.split()[1][1:].partition(",")
            start = int(first) - (0 if count == "0" else 1)
            out += old[at:start]
            at = start
        elif not line.startswith("\\"):
            if line[0] in " -":
                assert old[at] == content
                at += 1
            if line[0] in " +":
                out.append(content)
    return "".join([*out, *old[at:]])


@given(
    st.lists(st.sampled_from(["a", "bb", "", "c d"]), min_size=1, max_size=25),
    st.booleans(),
    st.data(),
)
def test_applying_it_makes_the_new_text_of_the_old_one(lines, newline, data):
    text = "\n".join(lines) + ("\n" if newline else "")
    if not text:
        return
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    new = data.draw(st.text(alphabet="ab\n", max_size=8))
    try:
        made = edited(text, (text[start:end], new), every=True)
    except EditError:
        return
    shown = unified_diff(text, made.replacements, "f")
    assert patched(text, shown.text) == made.text
    before, after = text.split("\n"), made.text.split("\n")
    first = shown.first_changed_line - 1
    assert before[:first] == after[:first]


def test_long_lines_are_cut_around_the_change():
    made = diff("q" * 5000 + "PLACE" + "r" * 5000 + "\nend\n", ("PLACE", "hello"))
    assert "qPLACEr" in made.text
    assert "qhellor" in made.text
    assert len(made.text) < 2000


@pytest.mark.parametrize(
    ("text", "old", "every"),
    [
        ("y" * 5_000_000 + "PLACE" + "z" * 5_000_000, "PLACE", False),
        ("line of the file\n" * 50_000, "line", True),
        ("a b " * 50_000, "a", True),
    ],
    ids=["one-line", "every-line", "all-in-one-line"],
)
def test_large_files_do_not_take_seconds(text, old, every):
    spans = edited(text, (old, "new"), every=every).replacements
    start = time.perf_counter()
    made = unified_diff(text, spans, "f")
    assert time.perf_counter() - start < 3
    assert len(made.text) < 250_000


def test_bytes_that_are_not_text_are_shown_as_such():
    made = diff("x\udcff\x1b\ny\n", ("y", "z"))
    assert " x\ufffd\u241b\n" in made.text


def test_a_changed_ending_can_be_seen():
    assert "\u240d" in diff("a\r\nb\nc\n", ("b", "B")).text
