"""Where edits match, what they replace, and what they leave alone."""

from __future__ import annotations

import contextlib
import pickle
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolkit.texts.match import Edit, EditError, EditNotFound, apply_edits

alphabet = st.sampled_from("ab\n\r \t\u00a0'\u2019\"\u201c-\u2014é\u0301\ufb01")
plain_texts = st.text(alphabet="ab\n é\u2019", min_size=1, max_size=20)
texts = st.text(alphabet=alphabet, max_size=40)


def edit(text: str, *pairs: tuple[str, str], every: bool = False) -> str:
    edits = [Edit(old_text=old, new_text=new, replace_all=every) for old, new in pairs]
    return apply_edits(text, edits).text


def refusal(text: str, *pairs: tuple[str, str], every: bool = False) -> str:
    with pytest.raises(EditError) as caught:
        edit(text, *pairs, every=every)
    return str(caught.value)


def test_all_edits_match_the_original():
    """B85."""
    assert edit("a b c\n", ("a", "b"), ("b", "c")) == "b c c\n"
    assert edit("abc", ("c", "a"), ("a", "c")) == "cba"


def test_overlapping_edits_are_refused_with_both_named():
    """B85."""
    told = refusal("a b c\n", ("a b", "X"), ("b c", "Y"))
    assert "edits[0]" in told
    assert "edits[1]" in told
    assert "edits[0]" in refusal("a b c\n", ("b c", "Y"), ("a b", "X"))
    assert "edits[1]" in refusal("one two", ("one", "1"), ("one", "2"))


def test_touching_edits_are_fine():
    assert edit("abcd", ("ab", "1"), ("cd", "2")) == "12"
    assert edit("a b", ("a", "1"), (" ", "_")) == "1_b"


def test_a_missing_text_names_its_edit():
    """B85."""
    told = refusal("a b c\n", ("a", "Z"), ("nope", "Q"))
    assert told.startswith("edits[1]")


def test_empty_and_unchanging_edits_are_refused():
    """B84, B85."""
    assert "must not be empty" in refusal("abc", ("", "X"))
    assert "must not be empty" in refusal("abc", ("a", "b"), ("", "X"))
    assert "must not be empty" in refusal("", ("", "X"))
    assert "no change" in refusal("a", ("a", "a"))
    assert "no change" in refusal("a\r\nb\n", ("a\nb", "a\r\nb"))
    assert "no change" in refusal('x "y"', ("\u201cy\u201d", '"y"'))


def test_overlapping_occurrences_count():
    assert "2 times" in refusal("aaa", ("aa", "b"))
    assert "3 times (lines 1, 2, 3)" in refusal("x\nx\nx\n", ("x", "y"))
    assert "100 or more times" in refusal("x\n" * 5000, ("x", "y"))
    assert edit("aaa", ("aa", "b"), every=True) == "ba"


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        ("a\r\nb\nc", "c", "C", "a\r\nb\nC"),
        ("one\r\ntwo\r\nthree\r\n", "one\ntwo", "ONE\nX\nTWO", "ONE\r\nX\r\nTWO\r\nthree\r\n"),
        ("a\nb\n", "a\r\nb", "A\r\nB", "A\nB\n"),
        ("a\r\nb\r\n", "a\r\nb", "A\r\nB", "A\r\nB\r\n"),
        ("a\r\nb\r\n", "a", "x\r\ny", "x\r\ny\r\nb\r\n"),
        ("a\r\nb\nc\n", "b", "x\ny", "a\r\nx\ny\nc\n"),
        ("a\r\nb\nc\n", "a", "x\ny", "x\r\ny\r\nb\nc\n"),
        ("a\r\nb", "b", "x\ny", "a\r\nx\r\ny"),
        ("abc", "b", "x\ny", "ax\nyc"),
        ("a\nb", "b", "B", "a\nB"),
        ("a\nb", "a\n", "", "b"),
        ("x\n", "x\n", "x", "x"),
        ("x\r\n", "\n", "", "x"),
        ("a\rb\r\n", "a\rb", "c", "c\r\n"),
        ("a\x0cb\u2028c\n", "b\u2028c", "d", "a\x0cd\n"),
    ],
)
def test_endings(text, old, new, after):
    """B17, B82, B93: each line keeps its ending; new lines take that of the line they start on."""
    assert edit(text, (old, new)) == after


def test_replacement_text_is_taken_as_it_is():
    """B104."""
    new = "$& $1 $` \\1 \\g<0> \\n \\\\ %s {x}"
    assert edit("a PLACE b\n", ("PLACE", new)) == f"a {new} b\n"
    assert edit("a \u201cPLACE\u201d b\n", ('"PLACE"', new)) == f"a {new} b\n"


def test_a_tolerant_match_changes_its_span_alone():
    """B02."""
    text = '\u201cA\u201d \u2014 x   \nname = "Al"\nnb\u00a0sp  \n'
    edited = apply_edits(text, [Edit(old_text="name = \u201cAl\u201d", new_text='name = "Bo"')])
    assert edited.text == '\u201cA\u201d \u2014 x   \nname = "Bo"\nnb\u00a0sp  \n'
    assert edited.tolerant == (0,)


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        ("it\u2019s", "it's", "is", "is"),
        ("a \u2014 b", "a - b", "c", "c"),
        ("a\u00a0b", "a b", "c", "c"),
        ("x = 1   \ny = 2\n", "x = 1\ny", "z", "z = 2\n"),
        ("x = 1\ny = 2\n", "x = 1  \ny", "z", "z = 2\n"),
        ("x = 1\n", "x = 1  ", "z", "z\n"),
        ("x \u00a0\n", "x   ", "z", "z\n"),
        ("cafe\u0301!", "café", "tea", "tea!"),
        ("café!", "cafe\u0301", "tea", "tea!"),
        ("\ufb01ne", "fine", "ok", "ok"),
        ("a\r\n  \r\nb\r\n", "a\n\nb\n", "c\n", "c\r\n"),
        ("\uff21\uff1d\uff11", "A=1", "B", "B"),
    ],
)
def test_tolerant(text, old, new, after):
    edited = apply_edits(text, [Edit(old_text=old, new_text=new)])
    assert edited.text == after
    assert edited.tolerant == (0,)


def test_half_of_what_was_folded_does_not_match():
    with pytest.raises(EditNotFound):
        edit("\ufb01ne", ("f", "g"))


def test_blanks_at_the_end_of_an_old_text_do_not_match_the_middle_of_a_line():
    with pytest.raises(EditNotFound):
        edit("foobar\n", ("foo  ", "x"))


def test_uniqueness_is_judged_in_the_space_of_the_match():
    assert edit("it's\nit\u2019s\n", ("it's", "is")) == "is\nit\u2019s\n"
    assert "2 times" in refusal("it\u2019s\nit\u2018s\n", ("it's", "is"))


@given(texts, texts, texts)
def test_everything_outside_the_span_stays(text, old, new):
    try:
        edited = apply_edits(text, [Edit(old_text=old, new_text=new)])
    except EditError:
        return
    (span,) = edited.replacements
    assert edited.text.startswith(text[: span.start])
    assert edited.text.endswith(text[span.end :])
    assert edited.text == text[: span.start] + span.text + text[span.end :]
    assert span.text.replace("\r\n", "\n") == new.replace("\r\n", "\n")


@given(texts, st.data())
def test_any_unique_part_can_be_replaced_exactly(text, data):
    assume(text)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    old = text[start:end]
    assume("\r" not in text)
    assume(sum(text.startswith(old, at) for at in range(len(text))) == 1)
    assert edit(text, (old, "NEW")) == text[:start] + "NEW" + text[end:]


@given(plain_texts, st.data(), plain_texts)
def test_replace_all_is_str_replace_where_there_are_no_carriage_returns(text, data, new):
    start = data.draw(st.integers(0, len(text) - 1))
    old = text[start : data.draw(st.integers(start + 1, len(text)))]
    assume(old != new)
    assert edit(text, (old, new), every=True) == text.replace(old, new)


@given(st.lists(plain_texts, min_size=1), plain_texts)
def test_no_edit_ever_makes_a_double_carriage_return(lines, new):
    """B82."""
    text = "\r\n".join(line.replace("\n", "") for line in lines) + "\r\n"
    for written in (new, new.replace("\n", "\r\n")):
        after = edit("MARK" + text, ("MARK", written))
        assert "\r\r" not in after
        assert after.count("\n") == after.count("\r\n")


BIG = "".join(f"line {number} of the file\n" for number in range(50_000))


@pytest.mark.parametrize(
    ("text", "old"),
    [
        (BIG, "line 25000 of"),
        (BIG, "is not there"),
        (BIG.replace("\n", "\r\n"), "line 25000 of the file\nline 25001"),
        ("x" * 10_000_000, "y"),
        (" " * 10_000_000, "y"),
        ("é" * 1_000_000, "y"),
        ("a" * 1_000_000, "a" * 400_000),
    ],
    ids=["unique", "missing", "crlf", "one-line", "blanks", "not-ascii", "periodic"],
)
def test_large_files_do_not_take_seconds(text, old):
    start = time.perf_counter()
    with contextlib.suppress(EditError):
        edit(text, (old, "new"))
    assert time.perf_counter() - start < 3


def test_errors_can_be_pickled():
    error = pickle.loads(pickle.dumps(EditNotFound(1, "reason")))
    assert (str(error), error.edit) == ("edits[1]: reason", 1)
