"""The edit tool, on mocks that have only what it needs."""

from __future__ import annotations

import hashlib

import anyio
import pytest

from operations import (
    FileChanged,
    FileVersion,
    OperationUnsupported,
    PathNotFound,
    VersionedContent,
    WriteResult,
)
from toolkit.calls import ToolCall
from toolkit.runner import run_tool_calls
from toolkit.tools.edit import create_edit_tool
from toolkit.tools.write import create_write_tool

pytestmark = pytest.mark.anyio


class Disk:
    """The smallest place to edit in."""

    def __init__(self, content: bytes | None = None) -> None:
        self.content = content
        self.writes = 0

    async def access(self, path):
        if self.content is None:
            raise PathNotFound(path, "/w", ("g",))

    async def read_file(self, path):
        await anyio.lowlevel.checkpoint()
        return self.content

    async def write_file(self, path, content):
        await anyio.lowlevel.checkpoint()
        self.writes += 1
        self.content = content

    async def make_directory(self, path):
        pass


class VersionedDisk(Disk):
    """A place that compares versions when it writes."""

    changes: tuple[bytes, ...] = ()
    reads = 0

    async def read_versioned(self, path):
        self.reads += 1
        await self.access(path)
        content = self.content
        if self.reads <= len(self.changes):
            self.content = self.changes[self.reads - 1]
        return VersionedContent(content=content, version=self._version(content))

    async def replace_file(
        self, path, content, *, make_parents=False, expected=None, durable=False
    ):
        if expected != self._version(self.content):
            raise FileChanged(path)
        self.writes += 1
        self.content = content
        return WriteResult(created=False)

    def _version(self, content):
        return FileVersion(device=1, inode=2, digest=hashlib.sha256(content).digest())


def pairs(*texts):
    return [{"old_text": old, "new_text": new} for old, new in texts]


async def edit(run, content, *texts, disk=None, **arguments):
    disk = disk or Disk(content)
    arguments.setdefault("edits", pairs(*texts))
    message = await run(create_edit_tool("/w", operations=disk), path="f", **arguments)
    return disk, message


async def test_an_edit_replaces_and_tells(run):
    disk, message = await edit(run, b"a\nb\nc\n", ("b", "B\nB2"), ("c", "C"))
    assert disk.content == b"a\nB\nB2\nC\n"
    assert message.text == "Edited f: 2 replacements (+3 -2 lines), the first in line 2."
    details = message.details
    assert details["diff"].startswith("--- f\n+++ f\n@@ -1,3 +1,4 @@\n")
    assert details["first_changed_line"] == 2
    assert (details["added_lines"], details["removed_lines"], details["replacements"]) == (3, 2, 2)
    assert details["attempts"] == 1


@pytest.mark.parametrize(
    ("content", "old", "new", "after"),
    [
        (b"x = 1\n# caf\xe9\n\x83e\x83X\n", "x = 1", "x = 2", b"x = 2\n# caf\xe9\n\x83e\x83X\n"),
        (b"a\x00\xff\xfe\x80b", "b", "c", b"a\x00\xff\xfe\x80c"),
        (
            "größe ä ü\n".encode() + b"\xff x\n",
            "x",
            "ö",
            "größe ä ü\n".encode() + b"\xff \xc3\xb6\n",
        ),
        (
            b"\xef\xbb\xbfimport os\r\nx = 1\r\n",
            "import os",
            "import sys",
            b"\xef\xbb\xbfimport sys\r\nx = 1\r\n",
        ),
        (
            b"\xef\xbb\xbfimport os\r\nx = 1\r\n",
            "x = 1",
            "y\nz",
            b"\xef\xbb\xbfimport os\r\ny\r\nz\r\n",
        ),
        (b"a\r\nb\nc", "c", "C", b"a\r\nb\nC"),
        (b"a PLACE b\n", "PLACE", "$& \\1 \\g<0> {x} %s", b"a $& \\1 \\g<0> {x} %s b\n"),
        (b"a\nb", "a\n", "", b"b"),
        ("café\n".encode("latin-1"), "café", "thé", "thé\n".encode("latin-1")),
        ("テスト\n".encode("shift_jis"), "テスト", "テ", "テ\n".encode("shift_jis")),
    ],
)
async def test_every_other_byte_stays(run, content, old, new, after):
    """B01, B17, B54, B83, B93, B104."""
    disk, message = await edit(run, content, (old, new))
    assert not message.is_error, message.text
    assert disk.content == after


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
async def test_a_file_stays_in_its_encoding(run, codec):
    """B54."""
    mark = "\ufeff".encode(codec)
    disk, message = await edit(run, mark + "héllo\r\nx\r\n".encode(codec), ("héllo\nx", "€\n2"))
    assert disk.content == mark + "€\r\n2\r\n".encode(codec)
    assert message.details["encoding"] == codec


@pytest.mark.parametrize(
    ("content", "new", "says"),
    [
        ("café au lait\n".encode("latin-1"), "日本", "U+65E5"),
        (b"\xff\xfeabc", "x", "byte order mark"),
    ],
)
async def test_what_the_file_cannot_hold_is_refused(run, content, new, says):
    disk, message = await edit(run, content, ("au", new))
    assert message.is_error
    assert says in message.text
    assert (disk.content, disk.writes) == (content, 0)


@pytest.mark.parametrize(
    ("content", "texts", "says"),
    [
        (b"abc", [("", "X")], "edits[0]: old_text must not be empty"),
        (b"abc", [("a", "b"), ("", "X")], "edits[1]: old_text must not be empty"),
        (b"", [("x", "y")], "the file is empty"),
        (b"a b c\n", [("a b", "X"), ("b c", "Y")], "edits[1]: overlaps edits[0] at line 1"),
        (b"a b c\n", [("a", "Z"), ("nope", "Q")], "edits[1]: old_text is not in the file"),
        (b"a", [("a", "a")], "no change"),
        (b"aaa", [("aa", "b")], "2 times"),
        (
            b"def f():\n\treturn 1\n",
            [("def f():\n    return 1", "x")],
            "the file has 1 tab, old_text has 4 spaces",
        ),
    ],
)
async def test_all_or_nothing(run, content, texts, says):
    """B84, B85."""
    disk, message = await edit(run, content, *texts)
    assert message.is_error
    assert says in message.text
    assert message.text.endswith("Nothing was changed.")
    assert (disk.content, disk.writes) == (content, 0)


async def test_a_missing_file_is_told_with_its_neighbours(run):
    """B84."""
    _, message = await edit(run, None, ("a", "b"), disk=Disk(None))
    assert message.text == "f: no such file; the working folder has g"


async def test_a_tolerant_match_is_said(run):
    """B02."""
    disk, message = await edit(run, "say “hi”  \n".encode(), ('say "hi"\n', "x\n"))
    assert disk.content == b"x\n"
    assert message.details["tolerant_edits"] == [0]
    assert "edits[0] is not in the file exactly as given" in message.text


async def test_replace_all(run):
    disk, message = await edit(
        run, b"a\na\n", edits=[{"old_text": "a", "new_text": "b", "replace_all": True}]
    )
    assert disk.content == b"b\nb\n"
    assert message.details["replacements"] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        {"edits": '[{"oldText":"a","newText":"b"}]'},
        {"edits": {"oldText": "a", "newText": "b"}},
        {"oldText": "a", "newText": "b"},
        {"old_text": "a", "new_text": "b"},
        {"edits": '{"oldText":"a","newText":"b"}'},
        {"edits": [{"old_text": "a", "new_text": "b", "why": "unknown keys are ignored here"}]},
    ],
)
async def test_forms_that_models_send(run, arguments):
    """B69."""
    disk, message = await edit(run, b"a\n", **arguments)
    assert not message.is_error, message.text
    assert disk.content == b"b\n"


@pytest.mark.parametrize("edits", [[], "nonsense", [{"old_text": "a"}], [None], 3])
async def test_nonsense_is_refused(run, edits):
    disk, message = await edit(run, b"a\n", edits=edits)
    assert message.error_kind == "invalid_arguments"
    assert disk.writes == 0


async def test_one_trip_to_read_and_one_to_write(run):
    disk, message = await edit(run, None, ("a", "b"), disk=VersionedDisk(b"a\n"))
    assert (disk.content, disk.reads, disk.writes) == (b"b\n", 1, 1)
    assert message.details["atomic"] is True


async def test_a_file_that_changed_meanwhile_is_matched_again(run):
    disk = VersionedDisk(b"a\n")
    disk.changes = (b"x\na\n",)
    _, message = await edit(run, None, ("a", "b"), disk=disk)
    assert disk.content == b"x\nb\n"
    assert message.details["attempts"] == 2
    assert "changed meanwhile" in message.text
    assert message.details["first_changed_line"] == 2


async def test_a_file_that_never_rests_is_an_error(run):
    disk = VersionedDisk(b"a0\n")
    disk.changes = tuple(b"a%d\n" % number for number in range(1, 20))
    _, message = await edit(run, None, ("a", "b"), disk=disk)
    assert message.error_kind == "changed"
    assert "4 times" in message.text
    assert disk.writes == 0


async def test_a_change_that_takes_the_text_away_is_told(run):
    disk = VersionedDisk(b"a\n")
    disk.changes = (b"gone\n",)
    _, message = await edit(run, None, ("a", "b"), disk=disk)
    assert "old_text is not in the file" in message.text
    assert disk.content == b"gone\n"


async def test_a_place_that_turns_out_not_to_is_edited_the_plain_way(run):
    class Refusing(VersionedDisk):
        async def read_versioned(self, path):
            raise OperationUnsupported("read_versioned", "no")

        async def replace_file(self, path, content, **_):
            raise OperationUnsupported("replace_file", "no")

    disk, message = await edit(run, None, ("a", "b"), disk=Refusing(b"a\n"))
    assert not message.is_error
    assert disk.content == b"b\n"


@pytest.mark.parametrize("rounds", [10])
async def test_parallel_edits_and_writes_of_one_file_take_effect_in_call_order(rounds):
    """B04: no update is lost."""
    for _ in range(rounds):
        disk = Disk(b"".join(b"%d\n" % number for number in range(1, 101)))
        tools = [create_edit_tool("/w", operations=disk), create_write_tool("/w", operations=disk)]
        calls = [
            ToolCall(
                id=str(number),
                name="edit",
                arguments={"path": "n.txt", "edits": pairs((f"{number}\n", f"x{number}x\n"))},
            )
            for number in range(40, 50)
        ]
        messages = await run_tool_calls(calls, tools)
        assert not any(message.is_error for message in messages)
        assert disk.content.count(b"x\n") == 10
        calls.append(ToolCall(id="w", name="write", arguments={"path": "n.txt", "content": "end"}))
        disk.content = b"".join(b"%d\n" % number for number in range(1, 101))
        await run_tool_calls(calls, tools)
        assert disk.content == b"end"


async def test_a_10_mb_line_does_not_take_seconds(run):
    import time

    content = b"y" * 5_000_000 + b"PLACE" + b"z" * 5_000_000
    start = time.perf_counter()
    disk, message = await edit(run, content, ("PLACE", "hello"))
    assert time.perf_counter() - start < 3
    assert b"yhelloz" in disk.content
    assert "yhelloz" in message.details["diff"]
    assert len(message.details["diff"]) < 3000
