"""The write tool, on mocks that have only what it needs."""

from __future__ import annotations

import pytest

from operations import (
    OperationUnsupported,
    PathDenied,
    PathIsDirectory,
    PathNotDirectory,
    StorageFull,
    TargetFacts,
    WriteResult,
)
from toolkit.tools.write import create_write_tool

pytestmark = pytest.mark.anyio


class Disk:
    """The smallest place to write to."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.folders: list[str] = []

    async def write_file(self, path, content):
        self.files[path] = content

    async def make_directory(self, path):
        self.folders.append(path)


class ReplacingDisk(Disk):
    """A place that writes with all that belongs to it in one trip."""

    result = WriteResult(created=True)
    error: Exception | None = None

    async def replace_file(
        self, path, content, *, make_parents=False, expected=None, durable=False
    ):
        self.options = (make_parents, expected, durable)
        if self.error:
            raise self.error
        self.files[path] = content
        return self.result


async def test_the_plain_way_makes_the_folder_first(run):
    disk = Disk()
    message = await run(create_write_tool("/w", operations=disk), path="a/b.txt", content="x\né")
    assert disk.folders == ["/w/a"]
    assert disk.files == {"/w/a/b.txt": "x\né".encode()}
    assert message.text == "Wrote a/b.txt (2 lines, 4 bytes)."
    assert message.details == {"path": "/w/a/b.txt", "bytes": 4, "lines": 2}


@pytest.mark.parametrize("created", [True, False])
async def test_one_trip_where_the_place_can(run, created):
    disk = ReplacingDisk()
    disk.result = WriteResult(created=created)
    message = await run(create_write_tool("/w", operations=disk), path="f", content="")
    assert disk.options == (True, None, False)
    assert disk.files == {"/w/f": b""}
    assert message.text.startswith("Created f" if created else "Replaced f")
    assert message.details["created"] is created
    assert message.details["atomic"] is True


async def test_content_is_written_exactly(run):
    """B82, B104: nothing is converted or interpreted."""
    disk = Disk()
    content = "\ufeffa\r\nb\rc\n\n$& \\1 {x} %s \x0c"
    await run(create_write_tool("/w", operations=disk), path="f", content=content)
    assert disk.files["/w/f"] == content.encode()


async def test_durable_is_passed_on(run):
    disk = ReplacingDisk()
    await run(create_write_tool("/w", operations=disk, durable=True), path="f", content="x")
    assert disk.options[2] is True


async def test_a_place_that_turns_out_not_to_is_written_the_plain_way(run):
    disk = ReplacingDisk()
    disk.error = OperationUnsupported("replace_file", "no")
    assert not (await run(create_write_tool("/w", operations=disk), path="f", content="x")).is_error
    assert disk.files == {"/w/f": b"x"}


async def test_writing_in_place_says_why(run):
    disk = ReplacingDisk()
    disk.result = WriteResult(created=False, atomic=False, reason="hard_links")
    message = await run(create_write_tool("/w", operations=disk), path="f", content="x")
    assert "hard links" in message.text
    assert (message.details["atomic"], message.details["reason"]) == (False, "hard_links")


@pytest.mark.parametrize("path", ["dir/", "", "a\x00b", "x/.", "x/.."])
async def test_what_is_no_file_name_is_refused_before_anything_happens(run, path):
    """B101."""
    disk = Disk()
    message = await run(create_write_tool("/w", operations=disk), path=path, content="x")
    assert message.is_error
    assert (disk.files, disk.folders) == ({}, [])


@pytest.mark.parametrize(
    ("error", "says", "kind"),
    [
        (PathIsDirectory("/w/f"), "f: is a folder, not a file", "failed"),
        (PathNotDirectory("/w/f", "/w is not a folder"), "f: /w is not a folder", "failed"),
        (PathDenied("/w/f"), "f: permission denied", "denied"),
        (StorageFull("/w/f"), "f: no space left on the target", "failed"),
    ],
)
async def test_faults_are_told_with_the_path_as_given(run, error, says, kind):
    """B101."""
    disk = ReplacingDisk()
    disk.error = error
    message = await run(create_write_tool("/w", operations=disk), path="f", content="x")
    assert (message.text, message.error_kind) == (says, kind)


async def test_writers_of_one_file_take_turns_under_every_name_of_it():
    """The key knows the machine and the home, so ~/f and /h/f are one file."""
    import anyio

    from toolkit.abort import AbortController

    class Slow(ReplacingDisk):
        facts = TargetFacts(home="/h", machine_id="slow", platform="memory", shell=None)
        inside = 0
        log: list[bytes]

        async def replace_file(self, path, content, **_):
            self.inside += 1
            assert self.inside == 1
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            self.inside -= 1
            self.log.append(content)
            return WriteResult(created=True)

    disk = Slow()
    disk.log = []
    writer = create_write_tool("/h", operations=disk)
    names = ["f", "/h/f", "~/f", "./x/../f"] * 3
    async with anyio.create_task_group() as tasks:
        for number, name in enumerate(names):
            params = writer.parameters(path=name, content=str(number))
            tasks.start_soon(writer.execute, "1", params, AbortController().signal, print)
    assert sorted(map(int, disk.log)) == list(range(12))
