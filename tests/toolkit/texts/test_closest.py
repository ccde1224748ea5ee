"""What is shown when an old text is nowhere."""

from __future__ import annotations

import time

import pytest

from toolkit.texts.closest import describe_closest


@pytest.mark.parametrize(
    ("text", "old", "says"),
    [
        (
            "def f():\n\treturn 1\n",
            "def f():\n    return 1\n",
            "the file has 1 tab, old_text has 4 spaces",
        ),
        ("    x = 1\n", "x = 1\n    y", "line 2"),
        ('a = "x"\n', "a = 'x'", "in a quote"),
        ("Value = 1\n", "value = 1", "upper and lower case"),
        ("a  =  1\n", "a = 1", "blanks between words"),
        ("total = price * count\n", "total = price * amount", "from its character 17"),
    ],
)
def test_what_differs_is_said(text, old, says):
    assert says in describe_closest(text, old)


def test_the_closest_lines_are_shown_with_their_numbers():
    text = "one\ntwo\ndef compute(a, b):\n    return a + b\nlast\n"
    told = describe_closest(text, "def compute(a, c):\n    return a + c")
    assert "  3: def compute(a, b):" in told
    assert "  4:     return a + b" in told
    assert "one" not in told


@pytest.mark.parametrize("old", ["", "\n\n", "zzz qqq", "   "])
def test_nothing_alike_is_nothing(old):
    assert describe_closest("alpha beta\ngamma\n", old) == ""


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("".join(f"line {n} of the file\n" for n in range(60_000)), "line 31000 off the file"),
        ("x" * 10_000_000, "x" * 100_000),
        ("a b c d e\n" * 200_000, "a b c d f\n" * 1000),
        ("word " * 2_000_000, "word word wird"),
    ],
)
def test_the_work_is_bounded(text, old):
    start = time.perf_counter()
    told = describe_closest(text, old)
    assert time.perf_counter() - start < 3
    assert len(told) < 5000
