"""Globs fit the names that their rules say, in linear time."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from wcmatch import glob as wcmatch

from backends.engine.faults import Fault
from backends.engine.glob import compile_glob


def fits(pattern: str, path: str | bytes, *, folder: bool = False) -> bool:
    raw = path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path
    return bool(compile_glob(pattern).match(raw, folder))


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/down/a.py", True),
        ("a", "b/a", True),
        ("./*.md", "top.md", True),
        ("./*.md", "x/top.md", True),
        ("2026/07/*.md", "2026/07/26.md", True),
        ("2026/07/26.md", "2026/07/26.md", True),
        ("2026/07/*.md", "x/2026/07/26.md", False),
        ("07/*.md", "2026/07/26.md", False),
        ("**/07/*.md", "2026/07/26.md", True),
        ("**/*.txt", "a.txt", True),
        ("/a.txt", "a.txt", True),
        ("/a.txt", "b/a.txt", False),
        ("src/**", "src/a/b", True),
        ("src/**", "src", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("src/**/x/*.py", "src/x/x/a.py", True),
        ("**/a/**/b/**", "x/a/b/c", True),
        ("**/a/**/b/**", "x/a/b", False),
        ("**", "a/b/c", True),
        ("**/**", "a", True),
        ("a**b", "axxb", True),
        ("a**b/c", "ax/xb/c", False),
        ("*", ".hidden", True),
        ("*/x", ".git-like/x", True),
        ("?", "é", True),
        ("?", "a", True),
        ("??", "é", False),
        ("[é-ü]", "ö", True),
        ("[!a]", "é", True),
        ("[^a]", "a", False),
        ("[]a]", "]", True),
        ("[!]a]", "]", False),
        ("[a-]", "-", True),
        ("[[:digit:]]", "7", True),
        ("[[:alpha:]_]x", "_x", True),
        ("\\*", "*", True),
        ("\\*", "a", False),
        ("\\[a\\]", "[a]", True),
        ("{a,b}.txt", "b.txt", True),
        ("{a,b}.txt", "c.txt", False),
        ("*.{py}", "a.py", True),
        ("{a,b{c,d}}x", "bdx", True),
        ("{a,}x", "x", True),
        ("{src,test/unit}/*.py", "test/unit/a.py", True),
        ("{src,test/unit}/*.py", "test/a.py", False),
        ("\\{a\\}", "{a}", True),
        ("[{]a", "{a", True),
        ("a}", "a}", True),
        ("a//b", "a/b", True),
        ("a/./b", "a/b", True),
        ("-name", "-name", True),
        ("*\n*", "a\nb", True),
        ("*", "a\nb", True),
        ("?.txt", b"\xff.txt", True),
        ("A", "a", False),
    ],
)
def test_glob_fits(pattern: str, path: str | bytes, expected: bool) -> None:
    assert fits(pattern, path) is expected


def test_slash_at_the_end_asks_for_folders() -> None:
    assert fits("src/", "a/src", folder=True)
    assert not fits("src/", "a/src")
    assert fits("a/src/", "a/src", folder=True)


def test_literal_tells_the_one_path_that_fits() -> None:
    assert compile_glob("./a/b.txt").literal == b"a/b.txt"
    assert compile_glob("a\\*").literal == b"a*"
    assert compile_glob("a*").literal is None
    assert compile_glob("{a,b}").literal is None


def test_may_hold_leaves_out_only_folders_where_nothing_fits() -> None:
    anchored = compile_glob("src/*/x.py")
    assert anchored.may_hold(b"src")
    assert anchored.may_hold(b"src/a")
    assert not anchored.may_hold(b"src/a/b")
    assert not anchored.may_hold(b"docs")
    assert compile_glob("src/**/x.py").may_hold(b"src/a/b")
    assert not compile_glob("src/**/x.py").may_hold(b"docs")
    assert compile_glob("x.py").may_hold(b"docs/a")


@pytest.mark.parametrize(
    "pattern",
    [
        "", "/", "./", "[a", "[", "[!", "[]", "{a,b", "{", "a\\", "[[:nope:]]", "../x", "a/../b",
        "{1..3}", "a\0b", "{a,b}" * 11,
    ],
)  # fmt: skip
def test_malformed_glob_is_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(Fault) as caught:
        compile_glob(pattern)
    assert caught.value.code == "invalid_pattern"
    assert caught.value.arguments[0] == pattern
    assert len(caught.value.arguments[1]) > 10


@pytest.mark.parametrize(
    "pattern",
    ["*a" * 60 + "b", "[a]*" * 60 + "b", "?*" * 60 + "b", "**/a/" * 60 + "b", "{*a,a*}" * 9 + "b"],
)
def test_matching_takes_linear_time(pattern: str) -> None:
    """Patterns that would explode in a backtracking matcher are decided at once."""
    glob = compile_glob(pattern)
    assert not glob.match(b"a" * 250, False)
    assert not glob.match(b"/".join([b"a"] * 250), False)


names = st.lists(
    st.sampled_from(["a", "b", "ab", ".a", "a.b", "é", "]", "-"]), min_size=1, max_size=4
)
part = st.lists(
    st.sampled_from(
        ["a", "b", "*", "?", "[ab]", "[!a]", "[a-c]", ".", "é", "{a,b}", "{a,{b,é}}", "\\*", "-"]
    ),
    min_size=1,
    max_size=4,
).map("".join)


@given(
    st.lists(st.one_of(part, st.just("**")), min_size=2, max_size=4),
    names,
)
def test_anchored_glob_fits_as_in_wcmatch(parts: list[str], path: list[str]) -> None:
    assume(not any(one in (".", "..") for one in parts) and parts[-1] != "**")
    flags = wcmatch.GLOBSTAR | wcmatch.DOTMATCH | wcmatch.BRACE | wcmatch.FORCEUNIX
    pattern = "/".join(parts)
    assert fits(pattern, "/".join(path)) is bool(
        wcmatch.globmatch("/".join(path), pattern, flags=flags)
    )


@given(part, names)
def test_bare_glob_fits_names_at_any_depth(pattern: str, path: list[str]) -> None:
    assume(pattern not in (".", ".."))
    flags = wcmatch.DOTMATCH | wcmatch.BRACE | wcmatch.FORCEUNIX
    assert fits(pattern, "/".join(path)) is bool(wcmatch.globmatch(path[-1], pattern, flags=flags))
