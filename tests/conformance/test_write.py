"""What every backend promises for writing, and what the write tool makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest

from operations import (
    FileChanged,
    FileVersion,
    NotRegularFile,
    PathDenied,
    PathError,
    PathIsDirectory,
    PathNotDirectory,
    PathNotFound,
)
from tests.conformance.places import refused, said

if TYPE_CHECKING:
    from tests.conformance.places import Place

pytestmark = pytest.mark.anyio


# Operations ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 3_000_001])
async def test_write_file_stores_every_byte(place: Place, size: int) -> None:
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    await place.backend.write_file(place.path("f"), data)
    assert await place.get("f") == data


async def test_write_file_replaces_the_whole(place: Place) -> None:
    await place.put("f", b"something long")
    await place.backend.write_file(place.path("f"), b"short")
    assert await place.get("f") == b"short"
    assert await place.names() == ["f"]


async def test_write_file_makes_no_folder(place: Place) -> None:
    with pytest.raises(PathNotFound):
        await place.backend.write_file(place.path("no/such/f"), b"x")
    assert await place.names() == []


async def test_make_directory_makes_those_above_and_accepts_one_that_is_there(
    place: Place,
) -> None:
    await place.backend.make_directory(place.path("a/b/c"))
    await place.put("a/b/c/f", b"kept")
    await place.backend.make_directory(place.path("a/b/c"))
    assert await place.names("a/b/c") == ["f"]


async def test_make_directory_through_a_file_is_refused(place: Place) -> None:
    await place.put("f", b"x")
    with pytest.raises(PathNotDirectory):
        await place.backend.make_directory(place.path("f/sub"))
    with pytest.raises(PathNotDirectory):
        await place.backend.make_directory(place.path("f"))
    assert await place.get("f") == b"x"


async def test_replace_file_tells_created_from_replaced(place: Place) -> None:
    first = await place.backend.replace_file(place.path("f"), b"1")
    second = await place.backend.replace_file(place.path("f"), b"2")
    assert (first.created, first.atomic, first.reason) == (True, True, None)
    assert (second.created, second.atomic, second.reason) == (False, True, None)


async def test_replace_file_can_make_the_folders_above(place: Place) -> None:
    path = place.path("/".join("abcdefghij") + "/f")
    result = await place.backend.replace_file(path, b"deep", make_parents=True)
    assert result.created
    assert await place.get(path) == b"deep"


async def test_parents_get_the_masks_mode(place: Place) -> None:
    await place.backend.replace_file(place.path("a/f"), b"", make_parents=True)
    umask = place.backend.facts.umask
    assert await place.mode("a") == 0o777 & ~umask
    assert await place.mode("a/f") == 0o666 & ~umask


@pytest.mark.parametrize("mode", [0o755, 0o640, 0o600, 0o4755])
async def test_the_mode_is_kept(place: Place, mode: int) -> None:
    await place.put("f", b"old", mode=mode)
    await place.backend.replace_file(place.path("f"), b"new")
    assert await place.mode("f") == mode
    assert await place.get("f") == b"new"


@pytest.mark.parametrize("durable", [False, True])
async def test_a_symlink_stays_and_its_target_is_replaced(place: Place, durable: bool) -> None:
    await place.put("real/t.txt", b"one", mode=0o640)
    await place.symlink("real/t.txt", "link")
    await place.symlink("link", "link to link")
    path = place.path("link to link")
    result = await place.backend.replace_file(path, b"two", durable=durable)
    assert not result.created
    assert await place.readlink("link to link") == "link"
    assert await place.readlink("link") == "real/t.txt"
    assert await place.get("real/t.txt") == b"two"
    assert await place.mode("real/t.txt") == 0o640
    assert await place.names("real") == ["t.txt"]


async def test_a_dangling_symlink_gets_its_target(place: Place) -> None:
    await place.mkdir("d")
    await place.symlink("d/new.txt", "link")
    assert (await place.backend.replace_file(place.path("link"), b"x")).created
    assert await place.readlink("link") == "d/new.txt"
    assert await place.get("d/new.txt") == b"x"


async def test_hard_links_stay_links_and_are_written_in_place(place: Place) -> None:
    await place.put("a", b"old content", mode=0o640)
    await place.link("a", "b")
    result = await place.backend.replace_file(place.path("a"), b"new")
    assert (result.created, result.atomic, result.reason) == (False, False, "hard_links")
    assert await place.get("b") == b"new"
    assert await place.inode("a") == await place.inode("b")
    assert await place.mode("a") == 0o640


async def test_a_matching_version_is_replaced(place: Place) -> None:
    path = await place.put("f", b"old")
    read = await place.backend.read_versioned(path)
    assert read.content == b"old"
    await place.backend.replace_file(path, b"new", expected=read.version)
    assert await place.get("f") == b"new"


@pytest.mark.parametrize("change", ["content", "same size", "gone"])
async def test_another_version_is_left_alone(place: Place, change: str) -> None:
    path = await place.put("f", b"old")
    version = (await place.backend.read_versioned(path)).version
    if change == "content":
        await place.put("f", b"theirs, longer")
    elif change == "same size":
        await place.put("f", b"OLD")
    else:
        await place.remove("f")
    before = await place.get("f") if change != "gone" else None
    with pytest.raises(FileChanged) as caught:
        await place.backend.replace_file(path, b"mine", expected=version)
    assert caught.value.path == path
    assert (await place.get("f") if await place.exists("f") else None) == before


async def test_another_file_of_the_same_content_is_another_version(place: Place) -> None:
    path = await place.put("f", b"old")
    version = (await place.backend.read_versioned(path)).version
    await place.put("g", b"old")
    await place.rename("g", "f")
    with pytest.raises(FileChanged):
        await place.backend.replace_file(path, b"mine", expected=version)
    assert await place.get("f") == b"old"


async def test_the_version_is_of_the_file_behind_a_symlink(place: Place) -> None:
    path = await place.put("f", b"old")
    link = await place.symlink("f", "link")
    version: FileVersion = (await place.backend.read_versioned(link)).version
    assert version == (await place.backend.read_versioned(path)).version
    await place.backend.replace_file(link, b"new", expected=version)
    assert await place.get("f") == b"new"


async def test_of_two_that_expect_one_version_exactly_one_writes(place: Place) -> None:
    path = await place.put("f", b"old")
    version = (await place.backend.read_versioned(path)).version
    outcomes: list[str] = []

    async def write(content: bytes) -> None:
        try:
            await place.backend.replace_file(path, content, expected=version)
        except FileChanged:
            outcomes.append("changed")
        else:
            outcomes.append("written")

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(write, b"writer %d" % number)
    assert sorted(outcomes) == ["changed"] * 7 + ["written"]


async def test_a_folder_or_a_trailing_slash_is_refused(place: Place) -> None:
    await place.put("d/f", b"x")
    for path in (place.path("d"), place.path("d/"), place.path("new/")):
        with pytest.raises(PathIsDirectory):
            await place.backend.replace_file(path, b"y", make_parents=True)
    assert await place.names() == ["d"]
    assert await place.names("d") == ["f"]


async def test_a_file_used_as_a_folder_is_refused(place: Place) -> None:
    await place.put("f", b"x")
    for make_parents in (False, True):
        with pytest.raises(PathNotDirectory):
            await place.backend.replace_file(place.path("f/sub/g"), b"y", make_parents=make_parents)
    assert await place.get("f") == b"x"


@pytest.mark.needs("fifo")
async def test_a_fifo_is_never_replaced(place: Place) -> None:
    path = await place.fifo("pipe")
    with pytest.raises(NotRegularFile):
        await place.backend.replace_file(path, b"y")
    assert await place.names() == ["pipe"]


async def test_a_name_that_is_too_long_is_an_error_about_the_path(place: Place) -> None:
    with pytest.raises(PathError, match="long"):
        await place.backend.replace_file(place.path("n" * 300), b"y")
    assert await place.names() == []


async def test_a_name_with_room_for_no_suffix_can_be_written(place: Place) -> None:
    name = "n" * 255
    await place.backend.replace_file(place.path(name), b"1")
    await place.backend.replace_file(place.path(name), b"2")
    assert await place.names() == [name]
    assert await place.get(name) == b"2"


@pytest.mark.needs("permissions")
@pytest.mark.unprivileged
@pytest.mark.parametrize("mode", [0o444, 0o000, 0o555], ids=oct)
async def test_a_file_that_may_not_be_written_is_denied(place: Place, mode: int) -> None:
    """Its folder would allow a rename, which would not ask."""
    path = await place.put("f", b"old", mode=mode)
    with pytest.raises(PathDenied):
        await place.backend.replace_file(path, b"new")
    assert await place.mode("f") == mode
    await place.chmod("f", 0o600)
    assert await place.get("f") == b"old"
    assert await place.names() == ["f"]


@pytest.mark.needs("permissions")
@pytest.mark.unprivileged
async def test_a_folder_that_takes_no_new_names_is_written_in_place(place: Place) -> None:
    await place.put("d/f", b"old")
    await place.chmod("d", 0o555)
    try:
        result = await place.backend.replace_file(place.path("d/f"), b"new")
        assert (result.atomic, result.reason) == (False, "folder_not_writable")
        assert await place.get("d/f") == b"new"
        with pytest.raises(PathDenied):
            await place.backend.replace_file(place.path("d/g"), b"new")
        assert await place.names("d") == ["f"]
    finally:
        await place.chmod("d", 0o755)


# The tool --------------------------------------------------------------------------------


async def test_the_tool_writes_text_and_tells_what_it_did(place: Place) -> None:
    message = await place.run("write", path="new/dir/f.txt", content="één\ntwo\n")
    assert "f.txt" in said(message)
    assert await place.get("new/dir/f.txt") == "één\ntwo\n".encode()
    assert message.details["bytes"] == 10
    assert message.details["lines"] == 2
    assert message.details["created"] is True
    again = await place.run("write", path="new/dir/f.txt", content="x")
    assert again.details["created"] is False
    assert again.details["lines"] == 1


async def test_the_tool_says_when_it_wrote_in_place(place: Place) -> None:
    await place.put("a", b"old")
    await place.link("a", "b")
    message = await place.run("write", path="a", content="new")
    said(message)
    assert message.details["atomic"] is False
    assert "hard" in str(message.details)


async def test_a_large_text_arrives_whole(place: Place) -> None:
    content = "é" * 2_000_000
    said(await place.run("write", path="big.txt", content=content))
    assert await place.get("big.txt") == content.encode()


async def test_line_endings_are_written_as_given(place: Place) -> None:
    said(await place.run("write", path="f", content="a\r\nb\nc\r"))
    assert await place.get("f") == b"a\r\nb\nc\r"


async def test_a_new_file_takes_the_name_as_it_stands(place: Place) -> None:
    await place.put("caf\u00e9", b"composed")
    said(await place.run("write", path="cafe\u0301", content="decomposed"))
    assert await place.get("caf\u00e9") == b"composed"
    assert await place.get("cafe\u0301") == b"decomposed"


async def test_a_lone_surrogate_is_refused_and_nothing_is_written(place: Place) -> None:
    refused(await place.run("write", path="f", content="bad \ud800 text"))
    assert await place.names() == []


async def test_parallel_writes_of_one_file_take_effect_in_call_order(place: Place) -> None:
    for message in await place.batch(
        *(("write", {"path": "f", "content": str(number) * 1000}) for number in range(10))
    ):
        said(message)
    assert await place.get("f") == b"9" * 1000
    assert await place.names() == ["f"]


async def test_a_reader_never_sees_half(place: Place) -> None:
    contents = [bytes([65 + n]) * 200_000 for n in range(5)]
    path = await place.put("f", contents[0])
    seen: set[bytes] = set()
    done = anyio.Event()

    async def read() -> None:
        while not done.is_set():
            seen.add(await place.backend.read_file(path))
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        for content in contents * 4:
            await place.backend.write_file(path, content)
        done.set()
    assert seen <= set(contents)
