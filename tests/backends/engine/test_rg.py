"""ripgrep is trusted with a walk only where it leaves out what git leaves out."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from backends.engine import rg, search
from backends.engine.ignore import is_plain
from backends.engine.place import Place
from backends.engine.walk import OsTree, Unreadable, walk
from tests.backends.engine.ripgreps import programs

pytestmark = pytest.mark.skipif(not programs(), reason="no ripgrep here")


@pytest.fixture(params=programs())
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(
    "line",
    [
        "a", "*.py[cod]", "/build/", "!keep", "**/x", "x/**", "a/**/b", "a b", "# ü", ".env*",
        "dist/", "[0-9a-z]x", "*~", "a  ",
    ],
)  # fmt: skip
def test_rule_that_everyone_takes_alike_is_plain(line: str) -> None:
    assert is_plain(f"a\n{line}\n".encode())


@pytest.mark.parametrize(
    "line",
    [b"{a,b}", b"a?", b"\\#a", b"a**", b"**a", b"***", b"[!a]",
     b"[^a]", b"[z-a]", b"[a", b"[[:alpha:]]", "é".encode(), b"a\t", b"./a",
     b"a//b", b"/", b"a/../b", b"\xff", b"# \xff", b"a\0b", b"[a-", b"\x0ca"],
)  # fmt: skip
def test_rule_that_ripgrep_may_take_otherwise_is_not_plain(line: bytes) -> None:
    assert not is_plain(b"a\n" + line + b"\n")


def test_byte_order_mark_is_not_plain() -> None:
    assert not is_plain(b"\xef\xbb\xbfa\n")


NAMES = ["a", "b", "ab", "a.log", ".a", "A", "a-b", "é", "build", "1x"]
PIECES = [
    "a",
    "b",
    "ab",
    "*",
    "**",
    "*.log",
    "a*",
    "*b",
    ".*",
    "[ab]",
    "[a-z]x",
    "1*",
    "build",
    "*.*",
    " ",
    "a ",
    "#",
]
rule = st.builds(
    lambda negation, start, parts, end: negation + start + "/".join(parts) + end,
    st.sampled_from(["", "", "", "!"]),
    st.sampled_from(["", "", "/", "**/"]),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=3),
    st.sampled_from(["", "", "/", "/**", "/*", " ", "\r"]),
)
paths = st.lists(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join), min_size=1, max_size=12
)


@settings(
    max_examples=int(os.environ.get("REMOTEHANDS_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
@given(rules=st.lists(rule, min_size=1, max_size=5), deeper=st.lists(rule, max_size=3), files=paths)
def test_plain_rules_hide_the_same_files_from_ripgrep(
    tmp_path: Path, program: str, rules: list[str], deeper: list[str], files: list[str]
) -> None:
    contents = ["\n".join(lines).encode() for lines in (rules, deeper)]
    assume(all(is_plain(content) for content in contents))
    root = tmp_path / "tree"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for name in files:
        try:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(b"x\n")
        except (NotADirectoryError, FileExistsError, IsADirectoryError):
            continue
    (root / ".gitignore").write_bytes(contents[0])
    if deeper and (root / "a").is_dir():
        (root / "a" / ".gitignore").write_bytes(contents[1])
    options = [option for option in rg._OPTIONS if option not in ("--json", "--binary")]
    listed = subprocess.run(
        [program, *options, *rg._BY_WALK, "--files", "--null", "--", "./"],
        cwd=root,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    ).stdout
    tree = OsTree(Place(), os.fsencode(root))
    ours = [path for path, kind in walk(tree, Unreadable()) if kind == "file"]
    tree.close()
    assert sorted(path[2:] for path in listed.split(b"\0")[:-1]) == ours


def grep(program: str, root: Path, pattern: str, **query: Any) -> tuple[list[Any], dict[str, Any]]:
    final: list[Any] = []
    tree = OsTree(Place(), os.fsencode(root))
    summary = search.grep(
        tree,
        {"pattern": pattern, **query},
        lambda part: final.extend(part.get("final", ())),
        program=os.fsencode(program),
    )
    tree.close()
    return final, summary


def fill(root: Path, names: list[str], content: bytes = b"needle\n") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


@pytest.mark.parametrize("special", ["", "sub/.git/HEAD", "sub/.git"])
def test_repository_within_the_tree_is_just_a_folder(
    tmp_path: Path, program: str, special: str
) -> None:
    fill(tmp_path, [f"many/{number:03}.txt" for number in range(100)], b"nothing\n")
    fill(tmp_path, ["sub/a.log", "sub/a.txt", "z.txt"])
    if special:
        fill(tmp_path, [special])
    (tmp_path / ".gitignore").write_bytes(b"*.log\n")
    found, summary = grep(program, tmp_path, "needle")
    assert [match[0] for match in found] == [b"sub/a.txt", b"z.txt"]
    assert (summary["engine"], summary["files_searched"]) == ("rg", 103)


def test_other_ignore_files_and_settings_count_for_nothing(
    tmp_path: Path, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, [f"{number:03}.txt" for number in range(100)])
    for name in (".ignore", ".rgignore", ".git/info/exclude", "config/git/ignore"):
        fill(tmp_path, [name], b"*.txt\n")
    fill(tmp_path, ["ripgreprc"], b"--max-count=0\n--glob=!*.txt\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "ripgreprc"))
    found, summary = grep(program, tmp_path, "needle", limit=1000)
    assert (len(found), summary["engine"]) == (100, "rg")


def test_rules_above_the_tree_hold_in_a_work_tree_and_nowhere_else(
    tmp_path: Path, program: str
) -> None:
    root = tmp_path / "outer/repo/sub"
    fill(root, [f"{number:03}.txt" for number in range(100)] + ["a.log", "a.out"])
    fill(tmp_path, ["outer/.gitignore"], b"*.out\n")
    fill(tmp_path, ["outer/repo/.gitignore"], b"/sub/*.log\n")
    assert len(grep(program, root, "needle", limit=1000)[0]) == 102
    (tmp_path / "outer/repo/.git").mkdir()
    found, summary = grep(program, root, "needle", limit=1000)
    assert [match[0] for match in found[-2:]] == [b"099.txt", b"a.out"]
    assert (len(found), summary["engine"]) == (101, "rg")


def test_common_pattern_needs_no_ripgrep(tmp_path: Path, program: str) -> None:
    fill(tmp_path, [f"{number:03}.txt" for number in range(300)])
    found, summary = grep(program, tmp_path, "needle", limit=5)
    assert [match[0] for match in found] == [b"%03d.txt" % number for number in range(5)]
    assert summary["more"]


def test_first_matches_come_in_order_of_path(tmp_path: Path, program: str) -> None:
    """Also when ripgrep meets the later ones first."""
    fill(tmp_path, [f"{number:04}.txt" for number in range(1000)], b"nothing\n")
    fill(tmp_path, [f"{number:04}.txt" for number in range(500, 1000)], b"needle\nneedle\n")
    found, summary = grep(program, tmp_path, "needle", limit=7)
    assert [match[:2] for match in found] == [
        [b"%04d.txt" % (500 + number // 2), 1 + number % 2] for number in range(7)
    ]
    assert (summary["engine"], summary["more"]) == ("rg", True)


def test_line_without_end_is_left_to_our_own_engine(
    tmp_path: Path, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rg, "_LONGEST_RECORD", 1 << 20)
    fill(tmp_path, ["a.txt"], b"x" * (3 << 20) + b"needle\nlast needle\n")
    fill(tmp_path, ["b.txt"])
    (tmp_path / ".gitignore").write_bytes(b"{}\n")
    found, summary = grep(program, tmp_path, "needle|(a+)+b")
    assert [match[:2] for match in found] == [[b"a.txt", 1], [b"a.txt", 2], [b"b.txt", 1]]
    assert summary["engine"] == "python"
