"""What every backend promises for finding names, and what the find tool makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from operations import InvalidPattern, PathNotDirectory, PathNotFound
from tests.conformance.places import refused, said

if TYPE_CHECKING:
    from tests.conformance.places import Place

pytestmark = pytest.mark.anyio

TREE = ["README.md", "src/main.py", "src/util.py", "src/sub/deep.py", "src/data.json",
        "docs/a.md", "docs/b[1].md", ".hidden/x.py", ".eslintrc.json", "a b.txt"]  # fmt: skip


async def glob(place: Place, pattern: str, root: str = "", limit: int = 1000) -> list[str]:
    result = await place.backend.glob(pattern, place.path(root).rstrip("/"), limit=limit)
    return list(result.paths)


# Operations ------------------------------------------------------------------------------


async def test_exists_tells_anything_that_is_there(place: Place) -> None:
    await place.put("d/f")
    await place.symlink("d/f", "link")
    await place.symlink("nowhere", "broken")
    tell = place.backend.exists
    assert [await tell(place.path(n)) for n in ("d", "d/f", "link")] == [True, True, True]
    assert [await tell(place.path(n)) for n in ("nope", "broken", "d/nope")] == [False] * 3


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("*.py", [".hidden/x.py", "src/main.py", "src/sub/deep.py", "src/util.py"]),
        ("src/*.py", ["src/main.py", "src/util.py"]),
        ("./src/*.py", ["src/main.py", "src/util.py"]),
        ("**/*.py", [".hidden/x.py", "src/main.py", "src/sub/deep.py", "src/util.py"]),
        ("src/**/*.py", ["src/main.py", "src/sub/deep.py", "src/util.py"]),
        ("src/**", ["src/data.json", "src/main.py", "src/sub/", "src/sub/deep.py", "src/util.py"]),
        ("*.{json,md}", [".eslintrc.json", "README.md", "docs/a.md", "docs/b[1].md",
                         "src/data.json"]),
        ("?.md", ["docs/a.md"]),
        ("[mu]*.py", ["src/main.py", "src/util.py"]),
        ("[!mu]*.py", [".hidden/x.py", "src/sub/deep.py"]),
        ("sub", ["src/sub/"]),
        ("src", ["src/"]),
        ("b[[]1].md", ["docs/b[1].md"]),
        ("a b.txt", ["a b.txt"]),
        ("readme.md", []),
        ("nothing*", []),
    ],
)  # fmt: skip
async def test_globs_mean_the_same_everywhere(place: Place, pattern: str, paths: list[str]) -> None:
    await place.put_all(dict.fromkeys(TREE))
    assert await glob(place, pattern) == paths


async def test_paths_are_relative_to_the_root(place: Place) -> None:
    await place.put_all(dict.fromkeys(TREE))
    assert await glob(place, "*.py", "src") == ["main.py", "sub/deep.py", "util.py"]
    assert await glob(place, "sub/*.py", "src") == ["sub/deep.py"]


async def test_the_limit_keeps_the_first_in_order(place: Place) -> None:
    await place.put_all({f"{name}.txt": b"" for name in "edcba"})
    result = await place.backend.glob("*.txt", place.cwd, limit=3)
    assert (result.paths, result.more) == (("a.txt", "b.txt", "c.txt"), True)
    result = await place.backend.glob("*.txt", place.cwd, limit=5)
    assert (len(result.paths), result.more) == (5, False)


async def test_symlinks_are_listed_and_not_followed(place: Place) -> None:
    await place.put("real/x.txt")
    await place.symlink("real", "link")
    await place.symlink("nowhere", "broken.txt")
    await place.symlink(".", "loop")
    assert await glob(place, "*.txt") == ["broken.txt", "real/x.txt"]
    assert await glob(place, "l*") == ["link", "loop"]


async def test_git_is_left_out(place: Place) -> None:
    await place.put(".git/config")
    await place.put("sub/.git/config")
    await place.put("config")
    assert await glob(place, "config") == ["config"]


@pytest.mark.parametrize("pattern", ["[", "a[b", "{a,b", ""])
async def test_a_malformed_glob_is_refused(place: Place, pattern: str) -> None:
    await place.put("a")
    with pytest.raises(InvalidPattern):
        await glob(place, pattern)


async def test_a_bad_root_is_an_error(place: Place) -> None:
    await place.put("f")
    with pytest.raises(PathNotFound):
        await glob(place, "*", "nope")
    with pytest.raises(PathNotDirectory):
        await glob(place, "*", "f")


async def test_names_of_any_bytes_are_told(place: Place) -> None:
    names = sorted(["new\nline.txt", 'quote".txt', "bad\udcff.txt", " lead.txt", "-rf.txt"])
    await place.put_all(dict.fromkeys(names))
    assert sorted(await glob(place, "*.txt")) == names


async def test_ignored_paths_are_counted_when_nothing_is_found(place: Place) -> None:
    await place.put(".gitignore", "*.log\n")
    await place.put("a.log")
    await place.put("b.log")
    result = await place.backend.glob("*.log", place.cwd, limit=10)
    assert (result.paths, result.ignored) == ((), 2)


async def test_a_hostile_glob_ends(place: Place) -> None:
    await place.put("a" * 200)
    assert await glob(place, "*a" * 40 + "b") == []
    assert await glob(place, "**/" * 30 + "b") == []


# The tool --------------------------------------------------------------------------------


async def test_the_tool_lists_paths_sorted(place: Place) -> None:
    await place.put_all(dict.fromkeys(TREE))
    shown = said(await place.run("find", pattern="*.py")).strip().split("\n")
    assert shown == [".hidden/x.py", "src/main.py", "src/sub/deep.py", "src/util.py"]


async def test_nothing_found_is_no_error(place: Place) -> None:
    await place.put("a")
    message = await place.run("find", pattern="*.zig")
    assert "nothing" in said(message).lower()


async def test_odd_names_stay_on_one_line_each(place: Place) -> None:
    await place.put_all(dict.fromkeys(("new\nline.txt", "bad\udcff.txt", "plain.txt")))
    shown = said(await place.run("find", pattern="*.txt")).strip().split("\n")
    assert len(shown) == 3
    assert "plain.txt" in shown


async def test_a_missing_root_is_named(place: Place) -> None:
    assert "nope" in refused(await place.run("find", pattern="*", path="nope"), "not_found")


async def test_a_file_as_root_is_told(place: Place) -> None:
    await place.put("f.txt")
    assert "f.txt" in refused(await place.run("find", pattern="*", path="f.txt"))


@pytest.mark.parametrize("limit", [0, -5])
async def test_a_limit_below_one_is_an_error(place: Place, limit: int) -> None:
    refused(await place.run("find", pattern="*", limit=limit), "invalid_arguments")
