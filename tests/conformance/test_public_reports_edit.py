"""Faults that users met in other tool kits when files were changed, and inputs close to them."""

# ruff: noqa: N802 - a test is named after the report that it stands for

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from operations import FileChanged
from tests.conformance.places import refused, said, text

if TYPE_CHECKING:
    from tests.conformance.places import Place

pytestmark = pytest.mark.anyio

REPLACEMENT = b"\xef\xbf\xbd"


def change(old_text: str, new_text: str, **more: Any) -> dict[str, Any]:
    return {"old_text": old_text, "new_text": new_text, **more}


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"x = 1\n# caf\xe9\n\x83e\x83X\n", "x = 1", "x = 2", b"x = 2\n# caf\xe9\n\x83e\x83X\n"),
        (b"x \xff\xfe\xfd\ny\n", "y", "Y", b"x \xff\xfe\xfd\nY\n"),
        (b"a\xc3\nb\n", "b", "B", b"a\xc3\nB\n"),
        (b"\xed\xa0\x80 half of a pair\nb\n", "b", "B", b"\xed\xa0\x80 half of a pair\nB\n"),
        (b"caf\xe9 = 1\n", "= 1", "= 2", b"caf\xe9 = 2\n"),
        (b"\xf8\x88\x80\x80\x80\nend", "end", "END", b"\xf8\x88\x80\x80\x80\nEND"),
    ],
    ids=["latin-1 and shift-jis", "ff fe fd", "cut sequence", "surrogate", "same line", "5 bytes"],
)
async def test_B01_bytes_that_are_not_utf8_stay(
    place: Place, before: bytes, old: str, new: str, after: bytes
) -> None:
    await place.put("f", before)
    message = await place.run("edit", path="f", edits=[change(old, new)])
    if message.is_error:
        assert await place.get("f") == before
        assert "encod" in text(message).lower() or "utf" in text(message).lower()
    else:
        assert await place.get("f") == after
    assert REPLACEMENT not in await place.get("f")


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (
            "\u201cA\u201d \u2014 x   \nname = \u201cAl\u201d\nnb\u00a0sp  \n",
            'name = "Al"',
            'name = "Bo"',
            '\u201cA\u201d \u2014 x   \nname = "Bo"\nnb\u00a0sp  \n',
        ),
        (
            '\u201cA\u201d \u2014 x   \nname = "Al"\nnb\u00a0sp  \n',
            "name = \u201cAl\u201d",
            'name = "Bo"',
            '\u201cA\u201d \u2014 x   \nname = "Bo"\nnb\u00a0sp  \n',
        ),
        ("\ufb01 \u2460 \u00bd\na\u2013b \u2018c\u2019\n", "a-b", "a+b",
         "\ufb01 \u2460 \u00bd\na+b \u2018c\u2019\n"),
        ("e\u0301 one\u00a0two e\u0301  \nend\t\n", "one two", "1 2",
         "e\u0301 1 2 e\u0301  \nend\t\n"),
        ("x  \ny\t\nz \n", "x\ny\n", "X\nY\n", "X\nY\nz \n"),
    ],
    ids=["curly in file", "curly in text", "dash by quotes", "no-break space", "blanks at ends"],
)  # fmt: skip
async def test_B02_a_tolerant_match_touches_its_span_alone(
    place: Place, before: str, old: str, new: str, after: str
) -> None:
    await place.put("f", before)
    message = await place.run("edit", path="f", edits=[change(old, new)])
    held = (await place.get("f")).decode()
    assert held == (before if message.is_error else after)


@pytest.mark.parametrize(
    "pairs",
    [
        [("50", "FIFTY"), ("75", "SEVENTYFIVE")],
        [(str(n), f"<{n}>") for n in range(20, 30)],
        [("100", "LAST"), ("10", "TEN")],
    ],
    ids=["two", "ten", "nested numbers"],
)
async def test_B04_parallel_edits_are_all_there(place: Place, pairs: list[tuple[str, str]]) -> None:
    for _ in range(3):
        await place.put("n.txt", "".join(f"{n}\n" for n in range(1, 101)))
        calls = [
            ("edit", {"path": "n.txt", "edits": [change(f"\n{old}\n", f"\n{new}\n")]})
            for old, new in pairs
        ]
        for message in await place.batch(*calls):
            said(message)
        expected = dict(pairs)
        numbers = (str(n) for n in range(1, 101))
        assert (await place.get("n.txt")).decode() == "".join(
            f"{expected.get(n, n)}\n" for n in numbers
        )


async def test_B04_edits_and_one_write_take_effect_in_call_order(place: Place) -> None:
    await place.put("n.txt", "".join(f"line {n};\n" for n in range(10)))
    first = [
        ("edit", {"path": "n.txt", "edits": [change(f"line {n};", f"LINE {n}!")]}) for n in range(5)
    ]
    write = ("write", {"path": "n.txt", "content": "line 7;\nline 8;\n"})
    last = [
        ("edit", {"path": "n.txt", "edits": [change(f"line {n};", f"LINE {n}!")]}) for n in (7, 8)
    ]
    for message in await place.batch(*first, write, *last):
        said(message)
    assert await place.get("n.txt") == b"LINE 7!\nLINE 8!\n"


@pytest.mark.parametrize(
    ("before", "edits", "after"),
    [
        (b"a\r\nb\nc", [change("c", "C")], b"a\r\nb\nC"),
        (b"a\r\nb\nc\n", [change("a", "A1\nA2")], b"A1\r\nA2\r\nb\nc\n"),
        (b"a\r\nb\nc\n", [change("b", "B1\nB2")], b"a\r\nB1\nB2\nc\n"),
        (b"a\nb\r\nc\rd\r\n", [change("c\rd", "x")], b"a\nb\r\nx\r\n"),
        (b"a\rb\rc", [change("b", "B")], b"a\rB\rc"),
        (b"a\r\nb\r\n\nc\n", [change("c", "C"), change("a", "A")], b"A\r\nb\r\n\nC\n"),
    ],
    ids=["last line", "into crlf", "into lf", "lone cr", "only cr", "two edits"],
)
async def test_B17_untouched_lines_keep_their_endings(
    place: Place, before: bytes, edits: list[dict[str, Any]], after: bytes
) -> None:
    await place.put("f", before)
    said(await place.run("edit", path="f", edits=edits))
    assert await place.get("f") == after


@pytest.mark.parametrize(
    ("links", "asked"),
    [
        ([("real/t.txt", "link")], "link"),
        ([("../real/t.txt", "sub/link")], "sub/link"),
        ([("real/t.txt", "one"), ("one", "two")], "two"),
        ([("real", "folder")], "folder/t.txt"),
        ([("{cwd}/real/t.txt", "absolute")], "absolute"),
    ],
    ids=["link", "relative from a subfolder", "link to a link", "linked folder", "absolute"],
)
@pytest.mark.parametrize("tool", ["edit", "write"])
async def test_B22_links_stay_links(
    place: Place, tool: str, links: list[tuple[str, str]], asked: str
) -> None:
    await place.put("real/t.txt", b"one\n")
    for target, name in links:
        await place.symlink(target.format(cwd=place.cwd), name)
    before = [await place.readlink(name) for _, name in links]
    if tool == "edit":
        said(await place.run("edit", path=asked, edits=[change("one", "two")]))
    else:
        said(await place.run("write", path=asked, content="two\n"))
    assert await place.get("real/t.txt") == b"two\n"
    assert [await place.readlink(name) for _, name in links] == before
    assert await place.names("real") == ["t.txt"]


@pytest.mark.parametrize("mode", [0o755, 0o640, 0o600, 0o4755], ids=oct)
@pytest.mark.parametrize("tool", ["edit", "write"])
async def test_B23_the_mode_is_kept(place: Place, tool: str, mode: int) -> None:
    await place.put("s.sh", b"one\n", mode=mode)
    if tool == "edit":
        message = await place.run("edit", path="s.sh", edits=[change("one", "two")])
    else:
        message = await place.run("write", path="s.sh", content="two\n")
    said(message)
    assert await place.get("s.sh") == b"two\n"
    assert await place.mode("s.sh") == mode


@pytest.mark.parametrize(
    ("mark", "encoding", "line"),
    [
        (b"\xff\xfe", "utf-16-le", "h\u00e9llo\r\nx\r\n"),
        (b"\xfe\xff", "utf-16-be", "h\u00e9llo\r\nx\r\n"),
        (b"\xff\xfe\x00\x00", "utf-32-le", "h\u00e9llo\r\nx\r\n"),
        (b"", "shift_jis", "\u30c6\u30b9\u30c8\r\nx\r\n"),
        (b"", "latin-1", "caf\u00e9\nx\n"),
        (b"", "cp1252", "\u201cquoted\u201d \u2013 caf\u00e9\nx\n"),
    ],
    ids=["utf-16-le", "utf-16-be", "utf-32-le", "shift-jis", "latin-1", "cp1252"],
)
async def test_B54_a_file_stays_in_its_encoding(
    place: Place, mark: bytes, encoding: str, line: str
) -> None:
    before = mark + line.encode(encoding)
    await place.put("f", before)
    message = await place.run("edit", path="f", edits=[change("x", "y")])
    held = await place.get("f")
    assert held == (before if message.is_error else mark + line.replace("x", "y").encode(encoding))


@pytest.mark.parametrize(
    ("encoding", "new"),
    [("latin-1", "\u6f22"), ("shift_jis", "\U0001f600"), ("ascii", "fine")],
)
async def test_B54_what_the_encoding_cannot_hold_is_never_mixed_in(
    place: Place, encoding: str, new: str
) -> None:
    before = ("caf\u00e9\nx\n" if encoding == "latin-1" else "x\n").encode(encoding)
    await place.put("f", before)
    message = await place.run("edit", path="f", edits=[change("x", new)])
    if message.is_error:
        assert await place.get("f") == before
    else:
        after = await place.get("f")
        assert new in after.decode("utf-8" if encoding != "latin-1" else encoding)


@pytest.mark.parametrize(
    ("before", "edits", "after"),
    [
        (b"one\r\ntwo\r\nthree\r\n", [change("one\ntwo", "ONE\nX\nTWO")],
         b"ONE\r\nX\r\nTWO\r\nthree\r\n"),
        (b"a\nb\n", [change("a\r\nb", "A\r\nB")], b"A\nB\n"),
        (b"a\r\nb\r\n", [change("a\r\nb", "A\r\nB")], b"A\r\nB\r\n"),
        (b"a\r\nb\r\n", [change("b", "B\r\nC")], b"a\r\nB\r\nC\r\n"),
        (b"a\r\nb\r\n", [change("a\nb\n", "")], b""),
        (b"a\r\n\r\nb\r\n", [change("a\n\nb", "a\nb")], b"a\r\nb\r\n"),
    ],
    ids=["lf into crlf", "crlf into lf", "crlf in both", "new crlf", "all away", "blank line"],
)  # fmt: skip
async def test_B82_line_endings_of_the_text_do_not_matter(
    place: Place, before: bytes, edits: list[dict[str, Any]], after: bytes
) -> None:
    await place.put("f", before)
    said(await place.run("edit", path="f", edits=edits))
    assert await place.get("f") == after
    assert b"\r\r" not in await place.get("f")


@pytest.mark.parametrize(
    ("edits", "after"),
    [
        ([change("import os", "import sys")], "import sys\r\nx = 1 # \ufeff\r\n"),
        ([change("x = 1", "x = 2")], "import os\r\nx = 2 # \ufeff\r\n"),
        ([change("import os\nx = 1", "y")], "y # \ufeff\r\n"),
        ([change("\ufeffimport os", "import re")], "import re\r\nx = 1 # \ufeff\r\n"),
    ],
    ids=["first line", "second line", "both", "mark pasted"],
)
async def test_B83_the_byte_order_mark_stays_once(
    place: Place, edits: list[dict[str, Any]], after: str
) -> None:
    before = b"\xef\xbb\xbf" + "import os\r\nx = 1 # \ufeff\r\n".encode()
    await place.put("f", before)
    shown = said(await place.run("read", path="f"))
    assert shown.startswith("import os\n")
    message = await place.run("edit", path="f", edits=edits)
    if message.is_error:
        assert "\ufeff" in edits[0]["old_text"]
        assert await place.get("f") == before
    else:
        assert await place.get("f") == b"\xef\xbb\xbf" + after.encode()


@pytest.mark.parametrize("before", [b"abc", b"", b"\n"], ids=["text", "empty", "one newline"])
@pytest.mark.parametrize(
    "edits",
    [
        [change("", "X")],
        [change("b", "B"), change("", "X")],
        [change("", "")],
        [change("", "X", replace_all=True)],
    ],
    ids=["alone", "after a good one", "both empty", "everywhere"],
)
async def test_B84_an_empty_text_is_refused(
    place: Place, before: bytes, edits: list[dict[str, Any]]
) -> None:
    await place.put("f", before)
    told = refused(await place.run("edit", path="f", edits=edits))
    assert "empty" in told.lower() or "at least 1" in told.lower()
    assert await place.get("f") == before


async def test_B84_an_empty_text_for_a_missing_file_makes_none(place: Place) -> None:
    refused(await place.run("edit", path="f", edits=[change("", "X")]))
    assert await place.names() == []


@pytest.mark.parametrize(
    ("edits", "after", "told"),
    [
        ([change("a", "b"), change("b", "c")], b"b c c\n", ()),
        ([change("a b", "X"), change("b c", "Y")], None, ("0", "1")),
        ([change("a", "Z"), change("nope", "Q")], None, ("1",)),
        ([change("a", "a")], None, ("change",)),
        ([change("a", "1"), change(" b", "2"), change(" c", "3")], b"123\n", ()),
        ([change("a b c", "x"), change("b", "y")], None, ("0", "1")),
        ([change("a", "c"), change("c", "a")], b"c b a\n", ()),
        ([change("a", "1"), change("a", "2")], None, ("0", "1")),
    ],
    ids=["on the original", "overlap", "one missing", "no change", "touching", "inside", "swap",
         "twice the same"],
)  # fmt: skip
async def test_B85_edits_of_one_call_match_the_original_all_or_none(
    place: Place, edits: list[dict[str, Any]], after: bytes | None, told: tuple[str, ...]
) -> None:
    await place.put("f", b"a b c\n")
    message = await place.run("edit", path="f", edits=edits)
    if after is None:
        words = refused(message)
        assert all(word in words for word in told)
        assert await place.get("f") == b"a b c\n"
    else:
        said(message)
        assert await place.get("f") == after


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        (b"a\nb", change("b", "B"), b"a\nB"),
        (b"a\nb", change("a\n", ""), b"b"),
        (b"x\n", change("x\n", "x"), b"x"),
        (b"x", change("x", "x\n"), b"x\n"),
        (b"a\r\nb", change("b", "b\nc"), b"a\r\nb\r\nc"),
        (b"\n\n\nend\n\n", change("end\n\n", "end\n"), b"\n\n\nend\n"),
    ],
    ids=["last line", "first line away", "newline away", "newline added", "crlf", "blank end"],
)
async def test_B93_the_end_of_the_file_is_as_asked(
    place: Place, before: bytes, edit: dict[str, Any], after: bytes
) -> None:
    await place.put("f", before)
    message = await place.run("edit", path="f", edits=[edit])
    said(message)
    assert await place.get("f") == after
    assert message.details["diff"].strip()


@pytest.mark.parametrize(
    "new",
    [
        "$& $1 $` \\1 \\g<0> \\n \\\\ %s {x}",
        "\\0 \\x41 \\u0041 \\N{BULLET}",
        "{0} {} %(a)s %% ${HOME} `id`",
        "line\\\n\\g<1>\ttab",
    ],
    ids=["references", "escapes", "formats", "mixed"],
)
@pytest.mark.parametrize("replace_all", [False, True])
async def test_B104_the_new_text_is_only_text(place: Place, new: str, replace_all: bool) -> None:
    await place.put("f", b"a PLACE b\n")
    said(await place.run("edit", path="f", edits=[change("PLACE", new, replace_all=replace_all)]))
    assert (await place.get("f")).decode() == f"a {new} b\n"


async def test_B104_a_tolerant_match_does_not_read_it_either(place: Place) -> None:
    await place.put("f", "a \u201cPLACE\u201d b\n")
    said(await place.run("edit", path="f", edits=[change('"PLACE"', "\\1 $& \\g<0>")]))
    assert await place.get("f") == b"a \\1 $& \\g<0> b\n"


@pytest.mark.parametrize("way", ["write", "edit", "make_parents"])
async def test_B105_what_is_written_is_what_the_name_led_to_as_a_whole(
    place: Place, way: str
) -> None:
    """A name swapped between a file and a link never leaves a mixture or a temporary file."""
    await place.put("safe/t", b"safe one\n")
    await place.put("d/x", b"file one\n")
    running = True

    async def swap() -> None:
        while running:
            await place.put("d/y", b"file one\n")
            await place.rename("d/y", "d/x")
            await place.symlink("../safe/t", "d/z")
            await place.rename("d/z", "d/x")
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(swap)
        for number in range(60):
            if way == "write":
                await place.run("write", path="d/x", content=f"written {number} one\n")
            elif way == "edit":
                await place.run("edit", path="d/x", edits=[change("one", "two")])
            else:
                with suppress(FileChanged):  # seen to be swapped: refused, nothing is written
                    await place.backend.replace_file(
                        place.path("d/x"), b"made one\n", make_parents=True
                    )
        running = False
    assert (await place.get("safe/t")).count(b"\n") == 1
    assert set(await place.names("d")) <= {"x", "y", "z"}
    assert await place.names("safe") == ["t"]


@pytest.mark.parametrize("size", [96 * 1024, 131_072, 400_000, 2_000_000])
async def test_B21_content_of_any_size_arrives(place: Place, size: int) -> None:
    content = "\u00e9" * (size - 1) + "!"
    said(await place.run("write", path="big.txt", content=content))
    assert await place.get("big.txt") == content.encode()
    said(await place.run("edit", path="big.txt", edits=[change("\u00e9!", "?")]))
    assert await place.get("big.txt") == content.encode()[:-3] + b"?"


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (".", "folder"),
        ("dir", "folder"),
        ("dir/", "folder"),
        ("file.txt/x", "folder"),
        ("", "path"),
        ("file.txt/", ""),
        ("dir/..", "folder"),
        ("a\x00b", ""),
    ],
)
async def test_B101_odd_targets_are_refused_whole(place: Place, path: str, told: str) -> None:
    await place.put("file.txt", b"kept")
    await place.mkdir("dir")
    words = refused(await place.run("write", path=path, content="x")).lower()
    assert told in words or "directory" in words
    assert await place.names() == ["dir", "file.txt"]
    assert await place.get("file.txt") == b"kept"
    assert await place.names("dir") == []


@pytest.mark.parametrize(
    ("path", "content"),
    [("empty", ""), ("/".join("abcdefghij") + "/f", "deep"), ("caf\u00e9/\u6f22", "x"),
     ("a b/ c /-d", "x"), ("...", "x")],
    ids=["empty", "ten parents", "not ascii", "blanks", "dots"],
)  # fmt: skip
async def test_B101_and_what_can_be_written_is(place: Place, path: str, content: str) -> None:
    said(await place.run("write", path=path, content=content))
    assert await place.get(path) == content.encode()
