"""The dialect: what it takes, what it says of what it refuses, and what each engine is told."""

# ruff: noqa: RUF001 (letters that look alike are what is tested)

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.engine import characters
from backends.engine.dialect import parse
from backends.engine.faults import Fault


def span(pattern: str, line: str | bytes, **options: bool) -> tuple[int, int] | None:
    raw = line if isinstance(line, bytes) else line.encode("utf-8", "surrogateescape")
    found: tuple[int, int] | None = parse(pattern, **options).search(raw)
    return found


@pytest.mark.parametrize(
    ("pattern", "line", "expected"),
    [
        ("b+", "abbbc", (1, 4)),
        ("é", "caféé", (3, 4)),
        ("é$", "caféé", (4, 5)),
        (".", b"\xff\xc3", None),
        ("[^a]", b"\xffb", (1, 2)),
        ("\\W", b"\xff", None),
        ("a.b", "a\nb", None),
        ("\\s", "\x1c", None),
        ("\\s", "\u2003", (0, 1)),
        ("\\d", "²", None),
        ("\\d", "٣", (0, 1)),
        ("\\w+", "शब्द", (0, 4)),
        ("\\bé\\b", "x é y", (2, 3)),
        ("\\B", "", (0, 0)),
        ("(?i)k", "\u212a", (0, 1)),
        ("(?i)ss", "ß", None),
        ("(?i)i", "ı", None),
        ("(?i)σ", "ς", (0, 1)),
        ("(?i:a)b", "Ab", (0, 2)),
        ("(?i:a)b", "AB", None),
        ("(?i)a(?-i:b)", "Ab", (0, 2)),
        ("a{", "a{", (0, 2)),
        ("a{2,1", "a{2,1", (0, 5)),
        ("x{0}", "x", (0, 0)),
        ("[]-a]", "]", (0, 1)),
        ("[\\w-]", "-", (0, 1)),
        ("[^\\n]", "x", (0, 1)),
        ("\\x{1f600}", "😀", (0, 1)),
        ("\\.\\-\\/\\ \\#", ".-/ #", (0, 5)),
        ("$", "a\r", (2, 2)),
    ],
)
def test_search_gives_the_first_match_in_characters(
    pattern: str, line: str | bytes, expected: tuple[int, int] | None
) -> None:
    assert span(pattern, line) == expected


@pytest.mark.parametrize("text", ["[x](", "a{", "\\d", "(", "^$", "é|", "K"])
def test_literal_is_taken_as_it_stands(text: str) -> None:
    assert span(text, f"--{text}--", literal=True) == (2, 2 + len(text))
    assert span(text, f"--{text.swapcase()}--", literal=True, ignore_case=True) is not None


@pytest.mark.parametrize(
    ("pattern", "position", "says"),
    [
        ("foo(?=1)", 3, "look-ahead (?= is not supported"),
        ("(a)\\1", 3, "backreferences"),
        ("a\\n", 1, "line feed"),
        ("[[:alpha:]]", 1, "[a-zA-Z]"),
        ("ab)", 2, "\\)"),
        ("(ab", 0, "\\("),
        ("a[b", 1, "\\["),
        ("a**", 2, "(?:...)"),
        ("*", 0, "\\*"),
        ("a++", 2, "possessive"),
        ("\\Afoo", 0, "^"),
        ("(?s)a", 0, "(?i)"),
        ("(?<n>a)", 0, "(?P<name>...)"),
    ],
)
def test_refusal_says_where_and_what_would_be_right(pattern: str, position: int, says: str) -> None:
    with pytest.raises(Fault) as caught:
        parse(pattern)
    code, (told, reason, at) = caught.value.code, caught.value.arguments
    assert (code, told, at) == ("invalid_pattern", pattern, position)
    assert says in reason


@given(st.text(st.sampled_from("ab1 .*+?()[]{}|^$\\-dwsbDWSBnxu,2i:!=<P>&é"), max_size=14))
def test_any_text_is_taken_alike_by_every_engine_or_refused(pattern: str) -> None:
    try:
        regex = parse(pattern)
    except Fault:
        return
    re.compile(regex.line)
    for line in (b"", b"ab1 a", "é b".encode(), b"a\xffb", b"\\.*+?()[]{}|^$"):
        found = regex.search(line)
        text = line.decode("utf-8", "surrogateescape")
        expected = re.search(regex.line, text)
        assert found == (expected.span() if expected else None)
        if found is not None:
            folded = line.lower() if regex.folded else line
            assert regex.required in folded
            ascii_only = all(byte < 128 for byte in line)
            assert regex.scanner(ascii_only).search(line if ascii_only else text)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n"), max_size=8))
def test_literal_finds_itself_in_any_text(text: str) -> None:
    assert span(text, "x" + text, literal=True) is not None
    assert (
        span(text, text.upper(), literal=True, ignore_case=True) is not None
        or len(text.upper()) != len(text)
        or any(len(characters.same_but_case(char)) < 2 for char in text)
    )


@pytest.mark.parametrize("char", "ssKkåÅσςßıİéЖǆµ")
def test_characters_that_are_the_same_but_for_case_say_so_of_each_other(char: str) -> None:
    same = characters.same_but_case(char)
    assert char in same
    assert all(characters.same_but_case(other) == same for other in same)


@pytest.mark.skipif(not shutil.which("grep"), reason="grep is the oracle")
@pytest.mark.parametrize(
    "pattern",
    ["foo", "fo+", "(foo|bar)x", "^a", "a$", "^$", "[a-c]x", "[]x]", "[x^]", "[-a]", "[a\\[]",
     "a{2,3}", "é", "é+", "(?i)k", "(?i)é",
     "a\\.b", "\\$", "\\|", "{", "a{", "}", "]", "x*?y", "(ab)?c", "\\\\", "\\^a", "(?:a|b){2}",
     "\\t", "[.]", "\\*\\+\\?\\(\\)"],
)  # fmt: skip
def test_posix_form_finds_the_same_lines(pattern: str) -> None:
    lines = [
        "foo", "fooo bar", "barx", "a", "ba", "", "ax", "]x", "^", "-", "[", "\\", "aa", "aaa",
        "é", "caféé", "K", "\u212a", "É",
        "a.b", "a$b", "a|b", "{", "a{", "}", "]", "xxy", "abc", "c", "^a", "ab", "a\tb", ".",
        "*+?()",
    ]  # fmt: skip
    regex = parse(pattern)
    assert regex.ere is not None
    printed = subprocess.run(
        ["grep", "-nE", "-e", regex.ere.encode()],
        input="\n".join(lines).encode() + b"\n",
        stdout=subprocess.PIPE,
        env={"LC_ALL": "C", "PATH": os.environ["PATH"]},
    ).stdout
    found = [int(line.split(b":")[0]) for line in printed.split(b"\n") if line]
    assert found == [
        number for number, line in enumerate(lines, 1) if regex.search(line.encode()) is not None
    ]
    assert found


@pytest.mark.parametrize(
    "pattern", ["a.b", "[^a]", "\\w", "\\bfoo", "a|", "x{300}", "[à-ÿ]{2}\\d", "\\s"]
)
def test_posix_form_is_none_where_it_could_not_be_exact(pattern: str) -> None:
    assert parse(pattern).ere is None


@pytest.mark.parametrize(
    ("pattern", "tame"),
    [("foo", True), ("a+b", True), ("(a+)+b", False), ("a*b*", False), ("(a|b)*", True)],
)
def test_is_tame_tells_patterns_that_cannot_run_wild(pattern: str, tame: bool) -> None:
    assert parse(pattern).is_tame is tame
