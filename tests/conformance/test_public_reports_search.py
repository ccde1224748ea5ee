"""Faults that users met in other tool kits when searching, and inputs close to them."""

# ruff: noqa: N802 - a test is named after the report that it stands for

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.places import refused, said, text

if TYPE_CHECKING:
    from tests.conformance.places import Place

pytestmark = pytest.mark.anyio


async def found(place: Place, **arguments: Any) -> list[str]:
    """Return the paths that find prints; they begin with `path` when one is given."""
    shown = said(await place.run("find", **arguments)).strip()
    return [] if shown.startswith("Nothing found") else shown.split("\n")


async def matched(place: Place, **arguments: Any) -> list[str]:
    """Return the match lines that grep prints."""
    shown = said(await place.run("grep", **arguments))
    if "no matches" in shown.lower():
        return []
    return [line for line in shown.split("\n") if ":" in line and not line.startswith("[")]


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [("--help", 1), ("-x", 1), ("->", 1), ("--pre=./pre.sh", 0), ("-e", 0), ("--", 2),
     ("-f/etc/passwd", 0), ("--version", 0)],
)  # fmt: skip
@pytest.mark.parametrize("literal", [False, True])
async def test_B03_a_pattern_is_never_an_option(
    place: Place, pattern: str, lines: int, literal: bool
) -> None:
    await place.put("pre.sh", "#!/bin/sh\ntouch PWNED\ncat\n", mode=0o755)
    await place.put("f.txt", "usage: app --help\n-x ->\n")
    if pattern == "--":
        lines = 1
    shown = await matched(place, pattern=pattern, literal=literal)
    assert len(shown) == lines
    assert not await place.exists("PWNED")


@pytest.mark.parametrize("name", ["-n", "--help", "-rf", "-", "--", "-exec"])
async def test_B03_a_name_is_never_an_option(place: Place, name: str) -> None:
    await place.put(name, "needle\n")
    assert "needle" in said(await place.run("read", path=name))
    assert await found(place, pattern=name) == [name]
    assert await matched(place, pattern="needle", path=name) == [f"{name}:1: needle"]
    assert await matched(place, pattern="needle", glob=name) == [f"{name}:1: needle"]
    assert name in said(await place.run("ls"))


@pytest.mark.needs("permissions")
@pytest.mark.unprivileged
@pytest.mark.parametrize("mode", [0o000, 0o300, 0o444, 0o600], ids=oct)
async def test_B28_an_unreadable_folder_is_a_note(place: Place, mode: int) -> None:
    await place.put("ok/n.txt", "answer\n")
    await place.put("locked/m.txt", "answer\n")
    await place.chmod("locked", mode)
    try:
        message = await place.run("grep", pattern="answer", path=".")
        assert "ok/n.txt:1: answer" in said(message)
        assert "locked" in text(message)
        message = await place.run("find", pattern="n.txt")
        assert "ok/n.txt" in said(message)
        if not mode & 0o400:
            assert "locked" in text(message)
    finally:
        await place.chmod("locked", 0o755)


@pytest.mark.needs("permissions")
@pytest.mark.unprivileged
async def test_B28_an_unreadable_file_is_a_note(place: Place) -> None:
    await place.put("n.txt", "answer\n")
    await place.put("secret.txt", "answer\n", mode=0o000)
    message = await place.run("grep", pattern="answer")
    assert "n.txt:1: answer" in said(message)
    assert "secret.txt" in text(message)


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        ({"pattern": "2026/07/*.md"}, ["2026/07/26.md"]),
        ({"pattern": "2026/07/26.md"}, ["2026/07/26.md"]),
        ({"pattern": "**/07/*.md"}, ["2026/07/26.md"]),
        ({"pattern": "*.md"}, ["2026/07/26.md", "top.md"]),
        ({"pattern": "07/*.md", "path": "2026"}, ["2026/07/26.md"]),
        ({"pattern": "07/*.md"}, []),
        ({"pattern": "/2026/07/*.md"}, ["2026/07/26.md"]),
        ({"pattern": "2026/**"}, ["2026/07/", "2026/07/26.md"]),
        ({"pattern": "**"}, ["2026/", "2026/07/", "2026/07/26.md", "top.md"]),
    ],
)
async def test_B30_a_pattern_with_a_slash_is_anchored(
    place: Place, arguments: dict[str, Any], paths: list[str]
) -> None:
    await place.put("2026/07/26.md", "x\n")
    await place.put("top.md", "x\n")
    assert await found(place, **arguments) == paths


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        (".github/workflows/*.yml", [".github/workflows/ci.yml"]),
        ("*.json", [".eslintrc.json"]),
        (".*", [".eslintrc.json", ".github/"]),
        ("**/ci.yml", [".github/workflows/ci.yml"]),
        ("config", []),
    ],
)
async def test_B62_hidden_files_are_found_by_all(
    place: Place, pattern: str, paths: list[str]
) -> None:
    await place.put(".github/workflows/ci.yml", "needle\n")
    await place.put(".eslintrc.json", "needle\n")
    await place.put(".git/config", "needle\n")
    assert await found(place, pattern=pattern) == paths
    assert await matched(place, pattern="needle") == [
        ".eslintrc.json:1: needle",
        ".github/workflows/ci.yml:1: needle",
    ]
    assert {".eslintrc.json", ".github/"} <= set(said(await place.run("ls")).split("\n"))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("grep", {"pattern": "x", "path": "nope"}),
        ("find", {"pattern": "*", "path": "nope"}),
        ("ls", {"path": "nope"}),
        ("grep", {"pattern": "x", "path": "dir/nope/deeper"}),
        ("find", {"pattern": "*", "path": "broken"}),
        ("ls", {"path": "file.txt/x"}),
    ],
)
async def test_B63_a_missing_search_path_is_an_error(
    place: Place, tool: str, arguments: dict[str, Any]
) -> None:
    await place.put("file.txt", "text\n")
    await place.mkdir("dir")
    await place.symlink("nowhere", "broken")
    told = refused(await place.run(tool, **arguments))
    assert arguments["path"] in told
    assert "no matches" not in told.lower()


async def test_B63_a_file_without_matches_is_searched(place: Place) -> None:
    await place.put("file.txt", "text\n")
    shown = said(await place.run("grep", path="file.txt", pattern="absent")).lower()
    assert "no matches" in shown
    assert "no files" not in shown
    assert "file.txt" in refused(await place.run("ls", path="file.txt"))


ODD_NAMES = ["a'; touch PWNED; '.txt", "$(touch PWNED)", "`touch PWNED`", "-rf", " lead",
             'q"\\', "a\nb", "*", "a b.txt ", "#x", "~", "{a,b}", "[x]"]  # fmt: skip


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_B78_every_tool_works_on_exactly_that_name(place: Place, name: str) -> None:
    await place.put("a", b"a\n")
    await place.put("other.txt", b"other\n")
    asked = f"./{name}" if name[0] in "~@" else name
    said(await place.run("write", path=asked, content="needle one\n"))
    assert await place.get(name) == b"needle one\n"
    assert "needle one" in said(await place.run("read", path=asked))
    edits = [{"old_text": "one", "new_text": "two"}]
    said(await place.run("edit", path=asked, edits=edits))
    assert await place.get(name) == b"needle two\n"
    assert ":1: needle two" in said(await place.run("grep", pattern="needle", path=asked))
    assert len(await found(place, pattern="*")) == 3
    assert len(said(await place.run("ls")).strip("\n").split("\n")) == 3
    assert await place.names() == sorted([name, "a", "other.txt"])


@pytest.mark.parametrize(
    "data",
    [
        b"PK\x03\x04needle" + bytes(range(256)) * 20,
        b"\x7fELF\x00needle\n",
        b"%PDF-1.7\nneedle\n\x00\x00",
        b"needle\n" * 3000 + b"\x00",
    ],
    ids=["zip", "elf", "pdf", "nul at the end"],
)
async def test_B94_matches_in_binary_files_do_not_flood(place: Place, data: bytes) -> None:
    await place.put("f.bin", data)
    await place.put("t.txt", b"needle\n")
    shown = said(await place.run("grep", pattern="needle"))
    assert "t.txt:1: needle" in shown
    assert "\x00" not in shown
    assert len(shown) < 2000
    assert "binary" in shown.lower()


@pytest.mark.parametrize(("count", "more"), [(9, False), (10, False), (11, True)])
async def test_B96_search_limits_are_noted_only_beyond(
    place: Place, count: int, more: bool
) -> None:
    await place.put_all({f"f{number:02}.txt": "needle\n" for number in range(count)})
    for tool, arguments in (
        ("grep", {"pattern": "needle", "limit": 10}),
        ("find", {"pattern": "*.txt", "limit": 10}),
        ("ls", {"limit": 10}),
    ):
        shown = said(await place.run(tool, **arguments))
        assert sum(".txt" in line for line in shown.split("\n")) == min(count, 10), tool
        notes = [line for line in shown.split("\n") if line.strip() and ".txt" not in line]
        assert bool(notes) is more, tool
        if more:
            assert "10" in "".join(notes) or "11" in "".join(notes)
            assert "limit" in "".join(notes)


@pytest.mark.parametrize(
    "line",
    [
        "needle " + "x" * 120_000,
        "x" * 100_000 + " needle " + "y" * 20_000,
        "x" * 120_000 + " needle",
        "\u3042" * 50_000 + "needle" + "\u3042" * 50_000,
    ],
    ids=["at the start", "inside", "at the end", "between wide characters"],
)
async def test_B97_a_huge_line_is_cut_around_the_match(place: Place, line: str) -> None:
    await place.put("f.min.js", line + "\n")
    shown = said(await place.run("grep", pattern="needle"))
    assert "needle" in shown
    assert len(shown) < 1200
    assert "\ufffd" not in shown


IGNORED = {
    "build/a.txt": False,
    "sub/build/a.txt": True,
    "q.log": False,
    "keep.log": True,
    "sub/x.txt": False,
    "x.txt": True,
}


@pytest.mark.parametrize("repository", ["none", "here", "above"])
async def test_B98_ignore_rules_hold_with_and_without_a_repository(
    place: Place, repository: str
) -> None:
    top = "top/" if repository == "above" else ""
    if repository != "none":
        await place.put(".git/HEAD", "ref: refs/heads/main\n")
        await place.put(".git/config", "[core]\n")
        await place.mkdir(".git/objects")
        await place.mkdir(".git/refs")
    await place.put(f"{top}.gitignore", "/build/\n*.log\n!keep.log\n")
    await place.put(f"{top}sub/.gitignore", "x.txt\n")
    await place.put_all({f"{top}{name}": "needle\n" for name in IGNORED})
    shown = sorted(name for name, is_shown in IGNORED.items() if is_shown)
    arguments = {"path": "top"} if top else {}
    lines = await matched(place, pattern="needle", **arguments)
    assert [line.split(":")[0].removeprefix("top/") for line in lines] == shown
    paths = [*await found(place, pattern="*.txt", **arguments),
             *await found(place, pattern="*.log", **arguments)]  # fmt: skip
    assert sorted(path.removeprefix("top/") for path in paths) == shown
    assert len(await matched(place, pattern="needle", path=f"{top}build")) == 1


@pytest.mark.parametrize(
    ("rules", "name", "shown"),
    [
        ("*.txt\n!a.txt\n", "a.txt", True),
        ("/a.txt\n", "d/a.txt", True),
        ("/a.txt\n", "a.txt", False),
        ("d/\n", "d/a.txt", False),
        ("d/\n", "d", True),
        ("d/\n!d/a.txt\n", "d/a.txt", False),
        ("d/*\n!d/a.txt\n", "d/a.txt", True),
        ("**/z/a.txt\n", "x/y/z/a.txt", False),
        ("x/**/a.txt\n", "x/a.txt", False),
        ("x/**\n", "x/y/a.txt", False),
        ("\\#a.txt\n", "#a.txt", False),
        ("#a.txt\n", "#a.txt", True),
        ("a.txt   \n", "a.txt", False),
        ("a[0-9].txt\n", "a5.txt", False),
        ("a?.txt\n", "a/.txt", True),
        ("foo/*/*\n", "foo/a", True),
        ("foo/*/*\n", "foo/a/b", False),
        ("a.txt\r\n", "a.txt", False),
    ],
)
async def test_B98_ignore_rules_mean_what_git_means(
    place: Place, rules: str, name: str, shown: bool
) -> None:
    await place.put(".gitignore", rules)
    await place.put(name, "needle\n")
    lines = await matched(place, pattern="needle", glob="**")
    assert any(line.startswith(f"{name}:") for line in lines) is shown
    assert (name in await found(place, pattern="**")) is shown


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"pattern": "\\bfoo\\d+\\b"}, [1]),
        ({"pattern": "(?i)FOO"}, [1, 2]),
        ({"pattern": "[x](", "literal": True}, [3]),
        ({"pattern": "foo|bar"}, [1, 2]),
        ({"pattern": "^foo"}, [1, 2]),
        ({"pattern": "o{2}"}, [1, 2]),
        ({"pattern": "\\.$"}, [4]),
        ({"pattern": "o{b"}, []),
    ],
)
async def test_B106_the_dialect_is_one(
    place: Place, arguments: dict[str, Any], lines: list[int]
) -> None:
    await place.put("f.txt", "foo12 x\nfoo bar\n[x](y)\nthe end.\n")
    shown = await matched(place, **arguments)
    assert [int(line.split(":")[1]) for line in shown] == lines


@pytest.mark.parametrize(
    "pattern",
    ["foo(?=1)", "foo(?!1)", "(?<=x)foo", "(f)oo\\1", "(?P<n>f)(?P=n)", "\\Afoo", "foo\\", "[z-a]"],
)
async def test_B106_what_is_not_in_the_dialect_is_said(place: Place, pattern: str) -> None:
    await place.put("f.txt", "foo1\n")
    told = refused(await place.run("grep", pattern=pattern))
    assert repr(pattern) in told
    assert "no matches" not in told.lower()


@pytest.mark.parametrize("pattern", ["one\ntwo", "one\\ntwo", "two\n"])
async def test_B106_a_pattern_over_lines_is_refused_or_matches_nothing_silently_never(
    place: Place, pattern: str
) -> None:
    await place.put("f.txt", "one\ntwo\n")
    refused(await place.run("grep", pattern=pattern))


@pytest.mark.parametrize(
    ("rules", "link", "shown"),
    [
        ("node_modules/\n", "node_modules", True),
        ("node_modules\n", "node_modules", False),
        ("*/\n", "node_modules", True),
        ("node_*\n", "node_modules", False),
    ],
)
async def test_B108_a_rule_for_folders_does_not_fit_a_link(
    place: Place, rules: str, link: str, shown: bool
) -> None:
    await place.put(".gitignore", rules)
    await place.put("other/inside.txt", "needle\n")
    await place.symlink("other", link)
    assert await found(place, pattern="node_modules") == ([link] if shown else [])
    assert f"{link}/inside.txt" not in await found(place, pattern="**")


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"pattern": "node_modules/effect/package.json"}, "node_modules/effect/package.json"),
        ({"pattern": "*.json", "path": "node_modules"}, "node_modules/effect/package.json"),
        ({"pattern": "effect/*.json", "path": "node_modules"}, "node_modules/effect/package.json"),
        (
            {"pattern": "package.json", "path": "node_modules/effect"},
            "node_modules/effect/package.json",
        ),
    ],
)
async def test_B109_an_ignored_path_is_found_or_said_to_be_left_out(
    place: Place, arguments: dict[str, Any], path: str
) -> None:
    await place.put(".gitignore", "node_modules\n")
    await place.put("node_modules/effect/package.json", "{}\n")
    shown = said(await place.run("find", **arguments))
    assert path in shown.split("\n") or "ignore" in shown.lower()


@pytest.mark.parametrize("arguments", [
    {"pattern": "x"}, {"pattern": "x", "path": None}, {"pattern": "x", "path": "."},
    {"pattern": "x", "glob": "*"},
])  # fmt: skip
async def test_B88_a_search_without_a_path_looks_at_the_folder(
    place: Place, arguments: dict[str, Any]
) -> None:
    """The process's own stdin, here whatever the test runner has, is never what is searched."""
    await place.put("f.txt", "x\n")
    message = await place.run("grep", **arguments)
    assert said(message).strip() == "f.txt:1: x"


@pytest.mark.parametrize("glob", ["src/*.py", "*.py", "**/*.py", "src/**"])
async def test_B90_matches_in_several_files_are_all_there(place: Place, glob: str) -> None:
    await place.put("src/a.py", "needle\n")
    await place.put("src/b.py", "needle\n")
    await place.put("c.txt", "needle\n")
    assert len(await matched(place, pattern="needle", glob=glob)) == 2
