"""What every backend promises for editing, and what the edit tool makes of it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from operations import PathIsDirectory, PathNotFound
from tests.conformance.places import refused, said

if TYPE_CHECKING:
    from tests.conformance.places import Place

pytestmark = pytest.mark.anyio


def change(old_text: str, new_text: str, **more: Any) -> dict[str, Any]:
    return {"old_text": old_text, "new_text": new_text, **more}


# Operations ------------------------------------------------------------------------------


async def test_read_versioned_tells_content_and_its_digest(place: Place) -> None:
    path = await place.put("f", b"content")
    read = await place.backend.read_versioned(path)
    assert read.content == b"content"
    assert read.version.digest == hashlib.sha256(b"content").digest()


async def test_the_version_follows_the_content_and_the_file(place: Place) -> None:
    path = await place.put("f", b"one")
    first = (await place.backend.read_versioned(path)).version
    assert (await place.backend.read_versioned(path)).version == first
    await place.put("f", b"two")
    assert (await place.backend.read_versioned(path)).version != first
    await place.put("g", b"one")
    other = (await place.backend.read_versioned(place.path("g"))).version
    assert other != first
    assert other.digest == first.digest


async def test_hard_links_share_a_version(place: Place) -> None:
    path = await place.put("a", b"x")
    other = await place.link("a", "b")
    read = place.backend.read_versioned
    assert (await read(path)).version == (await read(other)).version


async def test_read_versioned_fails_as_reading_does(place: Place) -> None:
    await place.put("d/f")
    with pytest.raises(PathNotFound):
        await place.backend.read_versioned(place.path("d/g"))
    with pytest.raises(PathIsDirectory):
        await place.backend.read_versioned(place.path("d"))


# The tool --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "edits", "after"),
    [
        (b"one two three", [change("two", "2")], b"one 2 three"),
        (b"a\nb\nc\n", [change("a\n", ""), change("c", "C")], b"b\nC\n"),
        (b"abcdef", [change("ab", "1"), change("cd", "2"), change("ef", "3")], b"123"),
        (b"x x x", [change("x", "y", replace_all=True)], b"y y y"),
        (b"aaa", [change("a", "aa", replace_all=True)], b"aaaaaa"),
        (b"tab\there\n", [change("\t", "    ")], b"tab    here\n"),
        (b"old", [change("old", "")], b""),
        ("é ü\n".encode(), [change("ü", "ö")], "é ö\n".encode()),
    ],
)
async def test_edits_replace_exactly_what_they_name(
    place: Place, before: bytes, edits: list[dict[str, Any]], after: bytes
) -> None:
    await place.put("f", before)
    said(await place.run("edit", path="f", edits=edits))
    assert await place.get("f") == after
    assert await place.names() == ["f"]


@pytest.mark.parametrize(
    ("before", "edits", "told"),
    [
        ("one", [change("two", "x")], "edits[0]"),
        ("x x", [change("x", "y")], "2"),
        ("aaa", [change("aa", "b")], "2"),
        ("abc", [change("ab", "1"), change("bc", "2")], "overlap"),
        ("abc", [change("a", "1"), change("zzz", "2")], "edits[1]"),
        ("abc", [change("b", "b")], ""),
        ("abc", [change("", "x")], "empty"),
        ("abc", [], ""),
        ("", [change("x", "y")], ""),
    ],
)
async def test_edits_that_cannot_be_made_change_nothing(
    place: Place, before: str, edits: list[dict[str, Any]], told: str
) -> None:
    await place.put("f", before, mode=0o640)
    version = (await place.backend.read_versioned(place.path("f"))).version
    assert told in refused(await place.run("edit", path="f", edits=edits)).lower()
    assert (await place.backend.read_versioned(place.path("f"))).version == version
    assert await place.mode("f") == 0o640
    assert await place.names() == ["f"]


async def test_the_closest_lines_are_shown_with_their_numbers(place: Place) -> None:
    await place.put("f.py", "def f():\n    value = 1\n    return value\n")
    told = refused(
        await place.run("edit", path="f.py", edits=[change("\tvalue = 1\n", "\tvalue = 2\n")])
    )
    assert "2" in told
    assert "value = 1" in told


async def test_details_hold_a_diff_and_the_first_changed_line(place: Place) -> None:
    await place.put("f", "a\nb\nc\nd\n")
    message = await place.run("edit", path="f", edits=[change("c", "C\nCC"), change("d", "D")])
    said(message)
    diff = message.details["diff"]
    assert "-c" in diff
    assert "+C" in diff
    assert "+CC" in diff
    first = [v for k, v in message.details.items() if "first" in k.lower()]
    assert first == [3]


async def test_a_tolerant_match_keeps_every_other_byte(place: Place) -> None:
    await place.put("f", "x = \u201cA\u201d   \ny = \u201cB\u201d  \n")
    said(await place.run("edit", path="f", edits=[change('y = "B"', "y = 'C'")]))
    assert await place.get("f") == "x = \u201cA\u201d   \ny = 'C'  \n".encode()


async def test_an_exact_match_wins_over_tolerant_ones(place: Place) -> None:
    await place.put("f", 'a = \u201cA\u201d\na = "A"\n')
    said(await place.run("edit", path="f", edits=[change('a = "A"', "a = 1")]))
    assert await place.get("f") == "a = \u201cA\u201d\na = 1\n".encode()


async def test_two_tolerant_matches_are_one_too_many(place: Place) -> None:
    before = "a = \u201cA\u201d\na = \u201dA\u201c\n".encode()
    await place.put("f", before)
    refused(await place.run("edit", path="f", edits=[change('a = "A"', "a = 1")]))
    assert await place.get("f") == before


async def test_parallel_edits_of_one_file_all_take_effect(place: Place) -> None:
    await place.put("f", "".join(f"line {n}.\n" for n in range(40)))
    await place.mkdir("d")
    await place.mkdir("d")
    calls = [
        ("edit", {"path": path, "edits": [change(f"line {n}.", f"LINE {n}!")]})
        for n, path in zip(range(40), ["f", "./f", place.path("f"), "d/../f"] * 10, strict=True)
    ]
    for message in await place.batch(*calls):
        said(message)
    assert await place.get("f") == "".join(f"LINE {n}!\n" for n in range(40)).encode()


async def test_parallel_edits_through_links_lose_nothing(place: Place) -> None:
    """Names that lead to one file are told apart from it; what is refused is said to be."""
    await place.put("f", "".join(f"line {n}.\n" for n in range(12)))
    await place.symlink("f", "soft")
    await place.link("f", "hard")
    calls = [
        ("edit", {"path": path, "edits": [change(f"line {n}.", f"LINE {n}!")]})
        for n, path in zip(range(12), ["f", "soft", "hard"] * 4, strict=True)
    ]
    done = []
    for number, message in enumerate(await place.batch(*calls)):
        if message.is_error:
            refused(message, "changed")
        else:
            done.append(number)
    assert len(done) >= 3
    lines = (f"LINE {n}!\n" if n in done else f"line {n}.\n" for n in range(12))
    assert await place.get("f") == "".join(lines).encode()
    assert await place.get("hard") == await place.get("f")
    assert await place.readlink("soft") == "f"


async def test_a_missing_file_is_named(place: Place) -> None:
    await place.put("real.txt", "x")
    told = refused(await place.run("edit", path="reel.txt", edits=[change("x", "y")]), "not_found")
    assert "reel.txt" in told
    assert "real.txt" in told


async def test_a_huge_line_is_edited_in_time(place: Place) -> None:
    await place.put("f", b"x" * 5_000_000 + b"NEEDLE" + b"y" * 5_000_000)
    message = await place.run("edit", path="f", edits=[change("NEEDLE", "THREAD")])
    said(message)
    assert b"THREAD" in await place.get("f")
    assert len(str(message.details)) < 100_000
    assert message.duration_ms < 5000
