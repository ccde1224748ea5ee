"""What .gitignore files leave out is what git leaves out."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pathspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backends.engine.ignore import IgnoreRules, rules_above
from backends.engine.place import Place
from backends.engine.walk import OsTree, Unreadable, walk

needs_git = pytest.mark.skipif(not shutil.which("git"), reason="git is the oracle")


def ignored(content: bytes, path: bytes, *, folder: bool = False) -> bool:
    rules = IgnoreRules(content)
    return bool(rules.ignored(path, path[path.rfind(b"/") + 1 :], folder))


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        (b"a.txt\n", b"a.txt", True),
        (b"a.txt\n", b"x/a.txt", True),
        (b"/a.txt\n", b"x/a.txt", False),
        (b"x/a.txt\n", b"y/x/a.txt", False),
        (b"*.log\n!keep.log\n", b"keep.log", False),
        (b"!keep.log\n*.log\n", b"keep.log", True),
        (b"*.log\n", b"a.log.txt", False),
        (b"*.log\n", b".log", True),
        (b"foo/*\n", b"foo/a/b", False),
        (b"foo/**\n", b"foo/a/b", True),
        (b"**/foo\n", b"foo", True),
        (b"a/**/b\n", b"a/b", True),
        (b"a/**/b\n", b"a/x/y/b", True),
        (b"a**b\n", b"axxb", True),
        (b"{a,b}\n", b"a", False),
        (b"{a,b}\n", b"{a,b}", True),
        (b"[ab]\n", b"b", True),
        (b"[!ab]\n", b"b", False),
        (b"[a\n", b"[a", False),
        (b"[[:digit:]]x\n", b"1x", True),
        (b"\\#a\n", b"#a", True),
        (b"#a\n", b"#a", False),
        (b"\\!a\n", b"!a", True),
        (b"a \n", b"a", True),
        (b"a\\ \n", b"a ", True),
        (b"a\\ \n", b"a", False),
        (b"a\t\n", b"a", False),
        (b"a\r\n", b"a", True),
        (b"a", b"a", True),
        (b"\xef\xbb\xbfa\n", b"a", True),
        (b"\\*\n", b"*", True),
        (b"\\*\n", b"a", False),
        (b"a\\\n", b"a", False),
        (b"caf\xe9\n", b"caf\xe9", True),
        # A character of two bytes is two for git.
        (b"caf?\n", "café".encode(), False),
        (b"caf??\n", "café".encode(), True),
        (b"\n\n# nothing\n", b"a", False),
    ],
)
def test_rule_fits_as_in_git(rules: bytes, path: bytes, expected: bool) -> None:
    assert ignored(rules, path) is expected


def test_rule_with_slash_at_its_end_is_for_folders() -> None:
    assert ignored(b"node_modules/\n", b"node_modules", folder=True)
    assert not ignored(b"node_modules/\n", b"node_modules")


def test_deeper_file_decides_first() -> None:
    top = IgnoreRules(b"*.txt\n")
    deep = IgnoreRules(b"!a.txt\n", b"sub/", top)
    assert not deep.ignored(b"sub/a.txt", b"a.txt", False)
    assert deep.ignored(b"sub/b.txt", b"b.txt", False)


def test_rules_above_the_root_see_its_whole_path() -> None:
    rules = rules_above([(b"a/b/", b"/a/b/x\n/x\n"), (b"b/", b"/b/y\n")])
    assert rules is not None
    assert rules.ignored(b"x", b"x", False)
    assert rules.ignored(b"y", b"y", False)
    assert not rules.ignored(b"z", b"z", False)


@given(st.integers(1, 40))
def test_many_stars_take_linear_time(stars: int) -> None:
    """A rule made to explode in a backtracking matcher is decided at once."""
    assert not ignored(b"*a" * stars + b"*c\n", b"a" * 255 + b"b")


NAMES = ["a", "b", "ab", "ba", "a b", "a.log", ".a", "A", "[a]", "*", "a-b", "é", "#a", "!a", "c "]
PIECES = [
    "a", "b", "ab", "*", "?", "**", "[ab]", "[!a]", "[^b]", "[a-c]", "[]a]", "\\a", "\\*", ".a",
    "*.log", "a*", "*b", "***", "a**",
    "**b", "[[:alpha:]]", "é", "[é]", "{a,b}", "\\", "[", "-", " ", "a ", "#a", "!a", "\\!a",
    "[a-", "[b-a]*", "[*]", "\\[a\\]",
]  # fmt: skip
rule = st.builds(
    lambda negation, start, parts, end: negation + start + "/".join(parts) + end,
    st.sampled_from(["", "", "", "!"]),
    st.sampled_from(["", "", "/", "**/", "./"]),
    st.lists(
        st.lists(st.sampled_from(PIECES), min_size=1, max_size=2).map("".join),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from(["", "", "", "/", "/**", "/*", " ", "\r", "\t"]),
)
paths = st.lists(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4), min_size=1, max_size=12
).map(lambda lists: ["/".join(parts) for parts in lists])


@needs_git
@settings(
    max_examples=int(os.environ.get("REMOTEHANDS_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    rules=st.lists(rule, min_size=1, max_size=5),
    deeper=st.lists(rule, max_size=3),
    files=paths,
)
def test_walk_shows_what_git_shows(
    tmp_path: Path, rules: list[str], deeper: list[str], files: list[str]
) -> None:
    root = tmp_path / "tree"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for name in files:
        path = root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        except (NotADirectoryError, FileExistsError, IsADirectoryError):
            continue
    (root / ".gitignore").write_bytes("\n".join(rules).encode())
    if deeper and (root / "a").is_dir():
        (root / "a" / ".gitignore").write_bytes("\n".join(deeper).encode())
    expected = _listed_by_git(root)
    assert _listed_by_us(root) == expected, "without a repository"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    assert _listed_by_us(root) == expected, "with a repository"


def _listed_by_git(root: Path) -> list[bytes]:
    git_dir = root.parent / "elsewhere.git"
    env = {
        "PATH": os.environ["PATH"],
        "GIT_DIR": str(git_dir),
        "GIT_WORK_TREE": str(root),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "HOME": "/nonexistent",
    }
    if not git_dir.exists():
        subprocess.run(["git", "init", "-q"], env=env, check=True, cwd=root)
    listed = subprocess.run(
        ["git", "ls-files", "-o", "-z", "--exclude-per-directory=.gitignore"],
        env=env,
        cwd=root,
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    return sorted(listed.split(b"\0")[:-1])


def _listed_by_us(root: Path) -> list[bytes]:
    tree = OsTree(Place(), os.fsencode(root))
    try:
        return [path for path, kind in walk(tree, Unreadable()) if kind != "directory"]
    finally:
        tree.close()


@given(
    st.lists(
        st.sampled_from(
            ["*.log", "/a", "b/", "a/b", "**/c", "d/**", "!a.log", "x?z", "[ab]c", "foo/*/bar"]
        ),
        min_size=1,
        max_size=4,
    ),
    st.lists(
        st.sampled_from(["a", "b", "c", "d", "a.log", "xyz", "ac", "foo", "bar"]),
        min_size=1,
        max_size=4,
    ),
)
def test_plain_rules_fit_as_in_pathspec(rules: list[str], parts: list[str]) -> None:
    spec = pathspec.GitIgnoreSpec.from_lines(rules)
    ours = IgnoreRules("\n".join(rules).encode())
    left_out = False
    for depth in range(1, len(parts) + 1):
        path = "/".join(parts[:depth]).encode()
        if ours.ignored(path, parts[depth - 1].encode(), depth < len(parts)):
            left_out = True
            break
    folders_left_out = any(
        spec.match_file("/".join(parts[:depth]) + "/") for depth in range(1, len(parts))
    )
    assert left_out is (folders_left_out or spec.match_file("/".join(parts)))
