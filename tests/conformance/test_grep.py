"""What every backend promises for searching text, and what the grep tool makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from operations import (
    GrepContext,
    GrepMatch,
    GrepQuery,
    GrepResult,
    InvalidPattern,
    PathNotFound,
    SearchTimeout,
)
from tests.conformance.places import refused, said

if TYPE_CHECKING:
    from tests.conformance.places import Place

pytestmark = pytest.mark.anyio


async def search(place: Place, pattern: str, **options: Any) -> GrepResult:
    query = GrepQuery(**{"pattern": pattern, "path": place.cwd, **options})
    with anyio.fail_after(60):
        return await place.backend.grep(query)


def found(result: GrepResult) -> list[tuple[str, int, str]]:
    return [(match.path, match.line, match.text) for match in result.matches]


# Operations ------------------------------------------------------------------------------


async def test_is_directory_tells_folders(place: Place) -> None:
    await place.put("d/f")
    await place.symlink("d", "link")
    tell = place.backend.is_directory
    assert await tell(place.path("d")) is True
    assert await tell(place.path("link")) is True
    assert await tell(place.path("d/f")) is False
    with pytest.raises(PathNotFound):
        await tell(place.path("nope"))


async def test_matches_come_in_order_of_path_then_line(place: Place) -> None:
    await place.put("b.txt", "x\nneedle 1\n\nneedle 2")
    await place.put("a/z.txt", "needle\r\n")
    await place.put("a.txt", "a needle\n")
    await place.put("B.txt", "needle\n")
    result = await search(place, "needle")
    assert found(result) == [
        ("B.txt", 1, "needle"),
        ("a.txt", 1, "a needle"),
        ("a/z.txt", 1, "needle"),
        ("b.txt", 2, "needle 1"),
        ("b.txt", 4, "needle 2"),
    ]
    assert (result.more, result.files_searched, result.unreadable) == (False, 4, ())


@pytest.mark.parametrize(
    ("pattern", "options", "lines"),
    [
        ("NEEDLE", {}, []),
        ("NEEDLE", {"ignore_case": True}, [1]),
        ("É", {"ignore_case": True}, [2]),
        ("^caf.$", {}, [2]),
        (r"\bcaf\w\b", {}, [2]),
        (r"\d+", {}, [3]),
        (r"a.b", {}, [4, 5]),
        (r"a.b", {"literal": True}, [4]),
        ("[x](", {"literal": True}, [6]),
        ("a{", {}, []),
        ("needle$", {}, [1]),
        ("(foo|bar)+", {}, [7]),
        ("ba{2}r", {}, [8]),
        (r"^\s+$", {}, []),
        ("^$", {}, [9]),
        ("end", {}, [10]),
    ],
)
async def test_the_dialect_means_the_same_everywhere(
    place: Place, pattern: str, options: dict[str, Any], lines: list[int]
) -> None:
    await place.put("f", "a needle\r\ncafé\nnumber 42\na.b\naxb\n[x](y)\nfoobar\nbaar\n\nthe end")
    result = await search(place, pattern, **options)
    assert [match.line for match in result.matches] == lines


@pytest.mark.parametrize(
    "pattern",
    ["(", ")", "[", "*a", "a**", r"(?=x)", r"(?<!x)y", r"(a)\1", r"\p{", "(?P=x)", "\\"],
)
async def test_what_is_outside_the_dialect_is_refused(place: Place, pattern: str) -> None:
    await place.put("f", "a{ x\n")
    with pytest.raises(InvalidPattern) as caught:
        await search(place, pattern)
    assert caught.value.pattern == pattern
    assert caught.value.reason


async def test_context_lines_are_told_once(place: Place) -> None:
    await place.put("f", "1\n2\nhit a\nhit b\n5\n6\n7\nhit c\n")
    result = await search(place, "hit", context=1)
    assert result.matches == (
        GrepMatch(path="f", line=3, text="hit a", before=(GrepContext(line=2, text="2"),)),
        GrepMatch(path="f", line=4, text="hit b", after=(GrepContext(line=5, text="5"),)),
        GrepMatch(path="f", line=8, text="hit c", before=(GrepContext(line=7, text="7"),)),
    )


async def test_the_limit_keeps_the_first_in_order(place: Place) -> None:
    await place.put_all(dict.fromkeys("cab", "hit\nhit\n"))
    result = await search(place, "hit", limit=3)
    assert found(result) == [("a", 1, "hit"), ("a", 2, "hit"), ("b", 1, "hit")]
    assert result.more is True
    assert (await search(place, "hit", limit=6)).more is False


async def test_a_long_line_is_cut_around_the_match(place: Place) -> None:
    await place.put("f", "x" * 100_000 + "needle" + "y" * 100_000 + "\n")
    [match] = (await search(place, "needle", max_line_chars=60)).matches
    assert "needle" in match.text
    assert match.cut is True
    assert len(match.text) <= 70


async def test_binary_files_are_counted_not_searched(place: Place) -> None:
    await place.put("b.bin", b"needle\x00needle\n")
    await place.put("t.txt", b"needle\n")
    result = await search(place, "needle")
    assert found(result) == [("t.txt", 1, "needle")]
    assert result.binary_skipped == 1


async def test_bytes_that_are_not_utf8_do_not_hide_a_line(place: Place) -> None:
    await place.put("f", b"caf\xe9 needle\n")
    assert found(await search(place, "needle")) == [("f", 1, "caf\ufffd needle")]


async def test_a_named_file_is_searched_by_its_own_name(place: Place) -> None:
    path = await place.put("d/f.txt", "needle\n")
    assert found(await search(place, "needle", path=path)) == [("f.txt", 1, "needle")]


async def test_a_glob_is_relative_to_the_path(place: Place) -> None:
    files = ("a.py", "src/b.py", "src/c.txt", "src/deep/d.py")
    await place.put_all(dict.fromkeys(files, "needle\n"))
    names = lambda result: [match.path for match in result.matches]  # noqa: E731
    assert names(await search(place, "needle", glob="*.py")) == [
        "a.py", "src/b.py", "src/deep/d.py",
    ]  # fmt: skip
    assert names(await search(place, "needle", glob="src/*.py")) == ["src/b.py"]
    assert names(await search(place, "needle", glob="*.{py,txt}", path=place.path("src"))) == [
        "b.py", "c.txt", "deep/d.py",
    ]  # fmt: skip


async def test_hidden_files_are_searched_and_git_is_not(place: Place) -> None:
    files = (".hidden", ".config/x", ".git/config", "sub/.git/config")
    await place.put_all(dict.fromkeys(files, "needle\n"))
    assert [m.path for m in (await search(place, "needle")).matches] == [".config/x", ".hidden"]


async def test_symlinks_on_the_way_are_not_followed(place: Place) -> None:
    await place.put("real/f", "needle\n")
    await place.symlink("real", "dir")
    await place.symlink("real/f", "file")
    await place.symlink(".", "loop")
    assert [m.path for m in (await search(place, "needle")).matches] == ["real/f"]
    assert found(await search(place, "needle", path=place.path("dir"))) == [("f", 1, "needle")]


async def test_a_missing_path_is_an_error(place: Place) -> None:
    with pytest.raises(PathNotFound) as caught:
        await search(place, "x", path=place.path("nope"))
    assert caught.value.path == place.path("nope")


async def test_batches_hold_what_the_result_holds(place: Place) -> None:
    await place.put_all({f"f{number}": "needle\n" * 10 for number in range(30)})
    seen: list[GrepMatch] = []
    query = GrepQuery(pattern="needle", path=place.cwd, limit=1000)
    result = await place.backend.grep(query, on_matches=seen.extend)
    assert len(result.matches) == 300
    assert {(m.path, m.line) for m in seen} <= {(m.path, m.line) for m in result.matches}


async def test_a_catastrophic_pattern_ends(place: Place) -> None:
    """It is either searched in time or ended by its limit; the backend works afterwards."""
    await place.put("f", "a" * 5000 + "\n")
    try:
        result = await search(place, "(a*)*(a*)*b", timeout_s=1.0)
    except (SearchTimeout, InvalidPattern):
        pass
    else:
        assert result.matches == ()
    assert len((await search(place, "aaa", max_line_chars=10)).matches) == 1


async def test_cancelling_a_search_leaves_the_backend_working(place: Place) -> None:
    await place.put_all({f"f{number}": "needle\n" * 200 for number in range(200)})
    with anyio.move_on_after(0.002):
        await search(place, "n.*e", limit=100_000)
    assert (await search(place, "needle", limit=1)).more is True


# The tool --------------------------------------------------------------------------------


async def test_the_tool_shows_path_line_and_text(place: Place) -> None:
    await place.put("src/a.txt", "one\ntwo needle\nthree\n")
    shown = said(await place.run("grep", pattern="needle"))
    assert "src/a.txt:2: two needle" in shown
    with_context = said(await place.run("grep", pattern="needle", context=1))
    assert "src/a.txt-1- one" in with_context
    assert "src/a.txt-3- three" in with_context


async def test_no_matches_is_no_error(place: Place) -> None:
    await place.put("a.txt", "text\n")
    assert "no matches" in said(await place.run("grep", pattern="absent")).lower()


async def test_skipped_binaries_are_told(place: Place) -> None:
    await place.put("b.bin", b"needle\x00\n")
    assert "binary" in said(await place.run("grep", pattern="needle"))


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_limit_below_one_is_an_error(place: Place, limit: int) -> None:
    await place.put("a.txt", "x\n")
    told = refused(await place.run("grep", pattern="x", limit=limit), "invalid_arguments")
    assert "limit" in told


async def test_a_bad_pattern_is_an_error_with_the_reason(place: Place) -> None:
    await place.put("a.txt", "x\n")
    told = refused(await place.run("grep", pattern="a(b"))
    assert "a(b" in told


async def test_a_missing_path_is_named_as_given(place: Place) -> None:
    await place.put("source/a.txt", "x\n")
    told = refused(await place.run("grep", pattern="x", path="sauce"), "not_found")
    assert "sauce" in told
    assert "source" in told


async def test_an_ignored_path_named_outright_is_searched(place: Place) -> None:
    await place.put(".gitignore", "build/\n*.log\n")
    await place.put("build/out.txt", "needle\n")
    await place.put("x.log", "needle\n")
    assert "no matches" in said(await place.run("grep", pattern="needle")).lower()
    assert "out.txt:1: needle" in said(await place.run("grep", pattern="needle", path="build"))
    assert "x.log:1: needle" in said(await place.run("grep", pattern="needle", path="x.log"))
