"""What every backend promises for listing folders, and what the ls tool makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from operations import Entry, PathDenied, PathNotDirectory, PathNotFound
from tests.conformance.places import refused, said

if TYPE_CHECKING:
    from tests.conformance.places import Place

pytestmark = pytest.mark.anyio


# Operations ------------------------------------------------------------------------------


async def test_entries_tell_what_they_are(place: Place) -> None:
    await place.put("file.txt")
    await place.mkdir("dir")
    await place.symlink("file.txt", "link")
    await place.symlink("../no where", "zbroken")
    listing = await place.backend.list_directory(place.cwd, limit=100)
    assert listing.entries == (
        Entry(name="dir", kind="directory"),
        Entry(name="file.txt", kind="file"),
        Entry(name="link", kind="symlink", link_target="file.txt"),
        Entry(name="zbroken", kind="symlink", link_target="../no where", broken=True),
    )
    assert listing.total == 4


@pytest.mark.needs("fifo")
async def test_a_fifo_is_told(place: Place) -> None:
    await place.fifo("pipe")
    listing = await place.backend.list_directory(place.cwd, limit=100)
    assert listing.entries == (Entry(name="pipe", kind="fifo"),)


async def test_entries_are_sorted_without_case_then_by_code_point(place: Place) -> None:
    names = ("b", "A", "a", "C", ".dot", "Émile", "émile", "zz", "B")
    await place.put_all(dict.fromkeys(names))
    listing = await place.backend.list_directory(place.cwd, limit=100)
    names = [entry.name for entry in listing.entries]
    assert names == [".dot", "A", "a", "B", "b", "C", "zz", "Émile", "émile"]


async def test_the_limit_keeps_the_first_and_tells_the_total(place: Place) -> None:
    await place.put_all(dict.fromkeys("edcba"))
    listing = await place.backend.list_directory(place.cwd, limit=2)
    assert [entry.name for entry in listing.entries] == ["a", "b"]
    assert listing.total == 5


async def test_a_large_folder_is_listed_whole(place: Place) -> None:
    names = [f"{number:05}" for number in range(2500)]
    await place.put_all({f"d/{name}": b"" for name in names})
    listing = await place.backend.list_directory(place.path("d"), limit=5000)
    assert [e.name for e in listing.entries] == names


async def test_a_link_to_a_folder_is_listed(place: Place) -> None:
    await place.put("d/f")
    await place.symlink("d", "link")
    listing = await place.backend.list_directory(place.path("link"), limit=10)
    assert [entry.name for entry in listing.entries] == ["f"]


async def test_home_can_be_listed(place: Place) -> None:
    await place.put(f"{place.home}/at-home")
    for path in ("~", "~/"):
        listing = await place.backend.list_directory(path, limit=100)
        assert "at-home" in [entry.name for entry in listing.entries]


async def test_names_of_any_bytes_are_told(place: Place) -> None:
    names = ["bad\udcff", "new\nline", " lead", "-rf", "q\"'\\"]
    await place.put_all(dict.fromkeys(names))
    listing = await place.backend.list_directory(place.cwd, limit=100)
    assert sorted(entry.name for entry in listing.entries) == sorted(names)


async def test_a_bad_path_is_an_error(place: Place) -> None:
    await place.put("f")
    with pytest.raises(PathNotFound):
        await place.backend.list_directory(place.path("nope"), limit=10)
    with pytest.raises(PathNotDirectory):
        await place.backend.list_directory(place.path("f"), limit=10)


@pytest.mark.needs("permissions")
@pytest.mark.unprivileged
async def test_a_closed_folder_is_denied(place: Place) -> None:
    await place.mkdir("closed", mode=0o000)
    try:
        with pytest.raises(PathDenied):
            await place.backend.list_directory(place.path("closed"), limit=10)
    finally:
        await place.chmod("closed", 0o755)


# The tool --------------------------------------------------------------------------------


async def test_the_tool_marks_kinds(place: Place) -> None:
    await place.put("b.txt")
    await place.mkdir("a")
    await place.put(".dot")
    await place.symlink("b.txt", "link")
    await place.symlink("nowhere", "zbroken")
    shown = said(await place.run("ls")).strip().split("\n")
    assert shown[:4] == [".dot", "a/", "b.txt", "link@ -> b.txt"]
    assert shown[4].startswith("zbroken@ -> nowhere")


async def test_an_empty_folder_is_said(place: Place) -> None:
    assert "empty" in said(await place.run("ls")).lower()


async def test_a_file_is_an_error_that_says_so(place: Place) -> None:
    await place.put("f.txt")
    told = refused(await place.run("ls", path="f.txt"))
    assert "f.txt" in told
    assert "file" in told


async def test_a_missing_folder_is_named_with_near_names(place: Place) -> None:
    await place.mkdir("source")
    told = refused(await place.run("ls", path="sourc"), "not_found")
    assert "sourc" in told
    assert "source/" in told


@pytest.mark.parametrize(("count", "noted"), [(4, False), (5, False), (6, True)])
async def test_only_what_is_left_out_is_noted(place: Place, count: int, noted: bool) -> None:
    await place.put_all({f"f{number}": b"" for number in range(count)})
    shown = said(await place.run("ls", limit=5))
    assert ("f5" in shown.split("\n")) is False
    assert bool([line for line in shown.split("\n") if "limit" in line.lower()]) is noted
    if noted:
        assert "6" in shown


async def test_odd_names_stay_on_one_line_each(place: Place) -> None:
    await place.put_all(dict.fromkeys(("new\nline", "bad\udcff", "esc\x1b[31m")))
    shown = said(await place.run("ls")).strip()
    assert len(shown.split("\n")) == 3
    assert "\x1b" not in shown
