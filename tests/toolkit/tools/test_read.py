"""The read tool, on mocks that have only what it needs."""

from __future__ import annotations

import base64
import io

import pytest

from operations import LineWindow, OperationUnsupported, PathIsDirectory, PathNotFound, Progress
from toolkit.abort import AbortController
from toolkit.failures import ToolFailure
from toolkit.tools.read import create_read_tool, create_read_tool_definition

pytestmark = pytest.mark.anyio


class Files:
    """The smallest place to read from: two methods of one line."""

    def __init__(self, **contents: bytes) -> None:
        self.contents = {f"/w/{name}": content for name, content in contents.items()}

    async def access(self, path):
        return self.contents.get(path) is None and missing(path)

    async def read_file(self, path):
        return self.contents[path]


def missing(path):
    raise PathNotFound(path, "/w", ("main.py", "util.py"))


def tool(content: bytes, **options):
    return create_read_tool("/w", operations=Files(f=content), **options)


TEN = b"".join(b"line %d\n" % number for number in range(1, 11))


async def test_a_file_is_shown_without_its_last_line_ending(run):
    message = await run(tool(b"a\nb\n"), path="f")
    assert (message.text, message.is_error) == ("a\nb", False)
    assert message.details["total_lines"] == 2
    assert message.details["final_newline"] is True
    assert "truncation" not in message.details


@pytest.mark.parametrize(
    ("arguments", "text", "notice"),
    [
        (
            {"limit": 5},
            "line 1\nline 2\nline 3\nline 4\nline 5",
            "lines 1-5 of 10; continue with offset=6",
        ),
        ({"offset": 10}, "line 10", None),
        ({"offset": 9, "limit": 2}, "line 9\nline 10", None),
        ({"offset": 9, "limit": 1}, "line 9", "line 9 of 10; continue with offset=10"),
        ({}, TEN.decode().rstrip("\n"), None),
    ],
)
async def test_windows_and_their_notices(run, arguments, text, notice):
    """B65, B96."""
    message = await run(tool(TEN), path="f", **arguments)
    body, _, rest = message.text.partition("\n\n")
    assert body == text
    assert rest == (f"[Showing {notice}.]" if notice else "")
    assert ("truncation" in message.details) == bool(notice)


async def test_past_the_end_is_an_error_that_names_the_lines(run):
    """B65."""
    message = await run(tool(TEN), path="f", offset=11)
    assert message.is_error
    assert message.text == "f: offset 11 is past the end; the file has 10 lines"


async def test_the_last_line_needs_no_newline(run):
    """B66."""
    message = await run(tool(b"a\nb\nc"), path="f", offset=3)
    assert message.text == "c"
    assert message.details["total_lines"] == 3
    assert message.details["final_newline"] is False


async def test_only_lf_ends_a_line(run):
    """B12."""
    reader = tool(b"a\x0cb\nc\xe2\x80\xa8d\nNEEDLE\n")
    assert (await run(reader, path="f", offset=3, limit=1)).text == "NEEDLE"
    assert (await run(reader, path="f", limit=1)).text.startswith("a\x0cb\n\n[Showing")
    assert (await run(tool(b"a\r\nb\r\n"), path="f")).text == "a\nb"


async def test_an_empty_file_says_so(run):
    message = await run(tool(b""), path="f")
    assert (message.text, message.is_error) == ("f is empty.", False)
    assert (await run(tool(b""), path="f", offset=2)).is_error


@pytest.mark.parametrize("arguments", [{"offset": 0}, {"limit": 0}, {"offset": -1}, {"limit": 1.5}])
async def test_bounds_are_checked(run, arguments):
    message = await run(tool(TEN), path="f", **arguments)
    assert message.error_kind == "invalid_arguments"
    assert next(iter(arguments)) in message.text


async def test_a_long_file_is_cut_at_2000_lines(run):
    message = await run(tool(b"x\n" * 2001), path="f")
    assert message.text.endswith("[Showing lines 1-2000 of 2001; continue with offset=2001.]")
    assert message.details["truncation"]["next_offset"] == 2001
    assert "[" not in (await run(tool(b"x\n" * 2000), path="f")).text


async def test_a_wide_file_is_cut_at_50_kib_between_lines(run):
    message = await run(tool((b"y" * 1023 + b"\n") * 60), path="f")
    assert "[Showing lines 1-50 of 60; continue with offset=51.]" in message.text
    assert message.details["truncation"]["truncated_by"] == "bytes"


async def test_a_window_that_ends_in_blank_lines_counts_them(run):
    message = await run(tool(b"a\n\n\n" + b"x" * 60_000), path="f")
    assert message.text == "a\n\n\n\n[Showing lines 1-3 of 4; continue with offset=4.]"
    message = await run(tool(b"\n\nb\n"), path="f", limit=1)
    assert message.text.endswith("[Showing line 1 of 3; continue with offset=2.]")


async def test_a_line_that_is_too_long_is_told_with_a_command_to_see_it(run):
    reader = create_read_tool("/w", operations=Files(**{"it's": b"a\n" + b"x" * 60_000 + b"\nb\n"}))
    first = await run(reader, path="it's")
    assert first.text == "a\n\n[Showing line 1 of 3; continue with offset=2.]"
    second = await run(reader, path="it's", offset=2)
    assert "Line 2 of 3 is 58.6 KB" in second.text
    assert "sed -n '2{p;q;}' '/w/it'\"'\"'s' | head -c 2000" in second.text
    assert "offset=3" in second.text
    assert (await run(reader, path="it's", offset=3)).text == "b"


@pytest.mark.parametrize(
    ("content", "text", "encoding", "notice"),
    [
        (b"\xef\xbb\xbfimport os\r\nx = 1\r\n", "import os\nx = 1", "utf-8-sig", None),
        (
            b"\xff\xfe" + "h\u00e9llo\r\nx\r\n".encode("utf-16-le"),
            "héllo\nx",
            "utf-16-le",
            "UTF-16 LE",
        ),
        (b"\xfe\xff" + "h\u00e9llo\n".encode("utf-16-be"), "héllo", "utf-16-be", "UTF-16 BE"),
        (b"\xff\xfe\0\0" + "hé\n".encode("utf-32-le"), "hé", "utf-32-le", "UTF-32 LE"),
        ("\u30c6\u30b9\u30c8".encode("shift_jis"), "テスト", "cp932", "a guess"),
        ("caf\u00e9".encode("latin-1"), "café", "cp1252", "a guess"),
    ],
)
async def test_encodings_are_told(run, content, text, encoding, notice):
    """B54, B83."""
    message = await run(tool(content), path="f")
    body, _, rest = message.text.partition("\n\n")
    assert body == text
    assert "\ufeff" not in message.text
    assert message.details["encoding"] == encoding
    assert (notice in rest) if notice else rest == ""


async def test_line_endings_are_in_the_details(run):
    for content, endings in (
        (b"a\n", "lf"),
        (b"a\r\n", "crlf"),
        (b"a\r\nb\n", "mixed"),
        (b"a", "none"),
    ):
        assert (await run(tool(content), path="f")).details["line_endings"] == endings


async def test_terminal_codes_in_a_file_do_not_reach_the_model(run):
    message = await run(tool(b"x" * 9000 + b"\n\x1b[31mred\x00\n"), path="f")
    assert "\x1b" not in message.text
    assert "\x00" not in message.text
    assert "␛[31mred␀" in message.text


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"PK\x03\x04\x00" + bytes(range(256)) * 20, "binary file (application/zip), 5.0 KB"),
        (b"\x7fELF\x00rest", "binary file (application/x-executable), 9 bytes"),
        (b"a\x00b", "binary file, 3 bytes"),
    ],
)
async def test_binary_content_is_not_shown(run, content, says):
    """B94."""
    message = await run(tool(content), path="f")
    assert message.text == f"f: {says}; its content is not shown"
    assert not message.is_error


async def test_line_numbers_can_be_put_before_the_lines(run):
    message = await run(tool(TEN, line_numbers=True), path="f", offset=9)
    assert message.text == " 9│ line 9\n10│ line 10"


async def test_the_language_is_told_by_the_name(run):
    reader = create_read_tool("/w", operations=Files(**{"a.py": b"x\n", "b.zzz": b"x\n"}))
    assert (await run(reader, path="a.py")).details["language"] == "python"
    assert (await run(reader, path="b.zzz")).details["language"] is None


async def test_a_missing_file_is_told_with_its_neighbours(run):
    message = await run(create_read_tool("/w", operations=Files()), path="mian.py")
    assert message.text == "mian.py: no such file; the working folder has main.py, util.py"
    assert message.error_kind == "not_found"


async def test_a_folder_says_what_it_holds(run):
    class Folder(Files):
        async def access(self, path):
            raise PathIsDirectory(path, ("a.py", "sub/"), 2)

    message = await run(create_read_tool("/w", operations=Folder()), path="src")
    assert message.text == "src: is a folder, not a file; it has a.py, sub/"
    assert message.is_error


class Windows(Files):
    """A place that can send windows, or says that it cannot."""

    window: LineWindow | Exception = LineWindow(kind="text", data=b"w\n", lines=1, total_lines=1)

    async def read_lines(self, path, *, start, max_lines, max_bytes, on_progress=None):
        self.asked = (path, start, max_lines, max_bytes)
        on_progress(Progress(done=1024, total=2048))
        if isinstance(self.window, Exception):
            raise self.window
        return self.window


async def test_a_place_that_can_send_windows_is_asked_for_one():
    place = Windows()
    updates = []
    reader = create_read_tool("/w", operations=place)
    params = reader.parameters(path="f", offset=7, limit=3)
    result = await reader.execute("1", params, AbortController().signal, updates.append)
    assert place.asked == ("/w/f", 7, 3, 51200)
    assert updates[0].content[0].text == "f: 1.0 KB of 2.0 KB scanned"
    assert result.content[0].text == "w"


async def test_a_place_that_turns_out_not_to_is_asked_the_plain_way(run):
    place = Windows(f=b"plain\n")
    place.window = OperationUnsupported("read_lines", "no python")
    assert (await run(create_read_tool("/w", operations=place), path="f")).text == "plain"


async def test_a_legacy_window_that_grows_when_decoded_stays_within_the_limit(run):
    place = Windows()
    data = (b"\xe9" * 99 + b"\n") * 500
    place.window = LineWindow(kind="text", data=data, lines=500, total_lines=500, size=50_000)
    message = await run(create_read_tool("/w", operations=place), path="f")
    assert len(message.text.encode()) < 52_000
    shown = message.details["shown_lines"]
    assert f"continue with offset={shown + 1}." in message.text


async def test_an_abort_ends_a_scan_at_once():
    controller = AbortController()

    class Slow(Files):
        async def access(self, path):
            import anyio

            controller.abort()
            await anyio.sleep_forever()

    reader = create_read_tool("/w", operations=Slow())
    with pytest.raises(ToolFailure, match="aborted") as caught:
        await reader.execute("1", reader.parameters(path="f"), controller.signal, print)
    assert caught.value.kind == "aborted"


def picture(width, height, kind="PNG", mode="RGB"):
    image = pytest.importorskip("PIL.Image").new(mode, (width, height))
    out = io.BytesIO()
    image.save(out, kind)
    return out.getvalue()


async def test_a_small_image_comes_back_as_it_is(run):
    content = picture(10, 20)
    message = await run(
        create_read_tool("/w", operations=Files(**{"no-name": content})), path="no-name"
    )
    note, image = message.content
    assert note.text.startswith("no-name: image/png, 10x20, ")
    assert (base64.b64decode(image.data), image.mime_type) == (content, "image/png")


async def test_a_large_image_is_scaled_and_says_by_how_much(run):
    message = await run(tool(picture(4000, 1000)), path="f")
    note, image = message.content
    assert "scaled to 2000x500 (multiply its coordinates by 2.00 for the original)" in note.text
    shown = pytest.importorskip("PIL.Image").open(io.BytesIO(base64.b64decode(image.data)))
    assert shown.size == (2000, 500)
    assert message.details["scale"] == 0.5


async def test_a_broken_image_is_a_note(run):
    pytest.importorskip("PIL")
    message = await run(tool(b"\x89PNG\r\n\x1a\nrubbish"), path="f")
    (note,) = message.content
    assert "cannot be shown" in note.text


async def test_the_place_may_tell_an_image(run):
    class Detecting(Files):
        async def detect_image_mime_type(self, path):
            return "image/webp"

    place = Detecting(f=picture(3, 3, "WEBP"))
    message = await run(create_read_tool("/w", operations=place), path="f")
    assert message.content[1].mime_type == "image/webp"


def test_a_tool_on_a_mock_is_described_without_being_run():
    definition = create_read_tool_definition("/w", operations=Files())
    described = definition.describe()
    assert described["name"] == "read"
    assert set(described["parameters"]["properties"]) == {"path", "offset", "limit"}
    params = definition.parameters(path="f", offset=2, limit=3)
    assert str(definition.render_call(params)) == "read f 2-4"


@pytest.mark.parametrize(
    ("content", "arguments", "says"),
    [
        (b"\n", {}, "[Line 1 is empty.]"),
        (b"a\n\n", {"offset": 2}, "[Line 2 is empty.]"),
        (b"\na", {"limit": 1}, "[Showing line 1 of 2; continue with offset=2.]"),
        (b"\n\n", {}, "\n"),
    ],
)
async def test_one_empty_line_is_told_in_words(run, content, arguments, says):
    """An empty text block is refused by some models' APIs, and tells nothing."""
    message = await run(tool(content), path="f", **arguments)
    assert message.text == says


async def test_an_offset_beyond_all_numbers_of_the_wire_is_past_the_end(run):
    """An engine refuses numbers of more than 64 bits, in words that name none of ours."""
    message = await run(tool(b"a\n"), path="f", offset=10**30)
    assert message.text == f"f: offset {2**53} is past the end; the file has 1 line"
