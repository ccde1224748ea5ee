"""What every backend promises for reading, and what the read tool makes of it."""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING

import pytest

from operations import (
    NotRegularFile,
    PathDenied,
    PathError,
    PathIsDirectory,
    PathNotDirectory,
    PathNotFound,
    Progress,
)
from tests.conformance.places import images, refused, said

if TYPE_CHECKING:
    from tests.conformance.places import Place

pytestmark = pytest.mark.anyio

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
BINARY = b"PK\x03\x04" + zlib.compress(bytes(range(256)) * 40) + b"\x00" * 16


# Operations ------------------------------------------------------------------------------


async def test_read_file_returns_every_byte(place: Place) -> None:
    data = bytes(range(256)) * 300
    path = await place.put("all bytes.bin", data)
    assert await place.backend.read_file(path) == data


async def test_read_file_of_an_empty_file_is_empty(place: Place) -> None:
    assert await place.backend.read_file(await place.put("empty")) == b""


async def test_read_file_follows_symlinks(place: Place) -> None:
    await place.put("real/t.txt", b"one\n")
    path = await place.symlink("real/t.txt", "link")
    await place.backend.access(path)
    assert await place.backend.read_file(path) == b"one\n"


async def test_a_path_below_home_is_expanded_on_the_target(place: Place) -> None:
    await place.put(f"{place.home}/notes.txt", b"at home")
    await place.backend.access("~/notes.txt")
    assert await place.backend.read_file("~/notes.txt") == b"at home"


@pytest.mark.parametrize("operation", ["access", "read_file", "detect_image_mime_type"])
async def test_a_missing_file_is_named_with_what_is_near(place: Place, operation: str) -> None:
    await place.put("src/main.py")
    await place.put("src/util.py")
    missing = place.path("src/mian.py")
    with pytest.raises(PathNotFound) as caught:
        await getattr(place.backend, operation)(missing)
    assert caught.value.path == missing
    assert caught.value.nearest == place.path("src")
    assert caught.value.names[0] == "main.py"


async def test_the_nearest_folder_of_a_deep_missing_path_is_found(place: Place) -> None:
    await place.put("src/main.py")
    with pytest.raises(PathNotFound) as caught:
        await place.backend.access(place.path("src/none/such/file.py"))
    assert caught.value.nearest == place.path("src")


async def test_a_broken_symlink_is_not_found(place: Place) -> None:
    path = await place.symlink("nowhere", "broken")
    with pytest.raises(PathNotFound):
        await place.backend.access(path)
    with pytest.raises(PathNotFound):
        await place.backend.read_file(path)


async def test_a_symlink_loop_is_an_error_about_the_path(place: Place) -> None:
    path = await place.symlink("loop", "loop")
    with pytest.raises(PathError, match="loop"):
        await place.backend.read_file(path)


async def test_a_folder_is_told_with_some_of_its_names(place: Place) -> None:
    await place.put("d/a.txt")
    await place.mkdir("d/sub")
    for operation in (place.backend.access, place.backend.read_file):
        with pytest.raises(PathIsDirectory) as caught:
            await operation(place.path("d"))
        assert caught.value.names == ("a.txt", "sub/")
        assert caught.value.total == 2


async def test_a_file_used_as_a_folder_is_told(place: Place) -> None:
    await place.put("f")
    with pytest.raises(PathNotDirectory):
        await place.backend.read_file(place.path("f/x"))


@pytest.mark.needs("fifo")
async def test_a_fifo_is_refused_at_once(place: Place) -> None:
    path = await place.fifo("pipe")
    for operation in (place.backend.access, place.backend.read_file):
        with pytest.raises(NotRegularFile):
            await operation(path)
    with pytest.raises(NotRegularFile):
        await place.backend.read_lines(path, start=1, max_lines=1, max_bytes=1)


@pytest.mark.needs("permissions")
@pytest.mark.unprivileged
async def test_an_unreadable_file_is_denied(place: Place) -> None:
    path = await place.put("secret", b"x", mode=0o000)
    for operation in (place.backend.access, place.backend.read_file):
        with pytest.raises(PathDenied):
            await operation(path)


@pytest.mark.needs("permissions")
@pytest.mark.unprivileged
async def test_a_file_below_a_closed_folder_is_denied(place: Place) -> None:
    path = await place.put("closed/f", b"x")
    await place.chmod("closed", 0o000)
    try:
        with pytest.raises(PathDenied):
            await place.backend.read_file(path)
    finally:
        await place.chmod("closed", 0o700)


@pytest.mark.parametrize(
    ("start", "max_lines", "max_bytes", "data", "lines", "stopped_by"),
    [
        (1, 10, 1000, b"one\ntwo\nthree", 3, None),
        (1, 3, 1000, b"one\ntwo\nthree", 3, None),
        (1, 2, 1000, b"one\ntwo\n", 2, "lines"),
        (2, 1, 1000, b"two\n", 1, "lines"),
        (3, 1, 1000, b"three", 1, None),
        (1, 10, 8, b"one\ntwo\n", 2, "bytes"),
        (1, 10, 7, b"one\n", 1, "bytes"),
        (4, 10, 1000, b"", 0, None),
        (400, 10, 1000, b"", 0, None),
    ],
)
async def test_read_lines_gives_whole_lines_of_the_window(
    place: Place,
    start: int,
    max_lines: int,
    max_bytes: int,
    data: bytes,
    lines: int,
    stopped_by: str | None,
) -> None:
    path = await place.put("f", b"one\ntwo\nthree")
    window = await place.backend.read_lines(
        path, start=start, max_lines=max_lines, max_bytes=max_bytes
    )
    assert (window.kind, window.data, window.lines) == ("text", data, lines)
    assert (window.total_lines, window.size, window.stopped_by) == (3, 13, stopped_by)


async def test_read_lines_reports_a_line_over_the_limit_by_its_size(place: Place) -> None:
    path = await place.put("f", b"a\n" + b"x" * 999 + b"\nb\n")
    window = await place.backend.read_lines(path, start=2, max_lines=5, max_bytes=100)
    assert (window.data, window.lines, window.long_line_bytes) == (b"", 0, 1000)
    assert window.total_lines == 3


async def test_read_lines_of_an_empty_file(place: Place) -> None:
    window = await place.backend.read_lines(
        await place.put("f"), start=1, max_lines=5, max_bytes=100
    )
    assert (window.data, window.lines, window.total_lines, window.size) == (b"", 0, 0, 0)


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
        (b"\xff\xfe\x00\x00", "utf-32-le"),
        (b"\x00\x00\xfe\xff", "utf-32-be"),
    ],
)
async def test_read_lines_counts_in_units_of_the_marked_encoding(
    place: Place, mark: bytes, encoding: str
) -> None:
    # U+0A0A and U+0D0A hold a byte 0x0A that ends no line in UTF-16 or UTF-32.
    lines = ["one \u0a0a\u0d0a\n", "two\r\n", "three"]
    path = await place.put("f", mark + "".join(lines).encode(encoding))
    window = await place.backend.read_lines(path, start=1, max_lines=2, max_bytes=1000)
    assert window.encoding == ("utf-8-sig" if encoding == "utf-8" else encoding)
    assert window.data.decode(encoding) == "".join(lines[:2])
    assert window.total_lines == 3
    last = await place.backend.read_lines(path, start=3, max_lines=2, max_bytes=1000)
    assert last.data.decode(encoding) == "three"


async def test_read_lines_tells_binary_and_images_without_data(place: Place) -> None:
    window = await place.backend.read_lines(
        await place.put("named.txt", BINARY), start=1, max_lines=5, max_bytes=100
    )
    assert (window.kind, window.data, window.size) == ("binary", b"", len(BINARY))
    assert window.mime_type == "application/zip"
    window = await place.backend.read_lines(
        await place.put("also.txt", PNG), start=1, max_lines=5, max_bytes=100
    )
    assert (window.kind, window.data, window.mime_type) == ("image", b"", "image/png")


async def test_a_long_scan_reports_progress(place: Place) -> None:
    path = await place.put("big", b"line of text\n" * 2_000_000)
    seen: list[Progress] = []
    window = await place.backend.read_lines(
        path, start=1_999_999, max_lines=5, max_bytes=1000, on_progress=seen.append
    )
    assert window.total_lines == 2_000_000
    assert window.data == b"line of text\n" * 2
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert all(0 < p.done <= window.size for p in seen)


@pytest.mark.parametrize(
    ("head", "mime_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01", "image/jpeg"),
        (b"GIF89a\x01\x00\x01\x00", "image/gif"),
        (b"RIFF\x24\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"BM" + (70).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")
         + (40).to_bytes(4, "little") + bytes(36), "image/bmp"),
        (b"BMW is a car\n", None),
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", None),
        (b"<svg/>", None),
        (b"", None),
    ],
)  # fmt: skip
async def test_images_are_told_by_content(place: Place, head: bytes, mime_type: str | None) -> None:
    path = await place.put("named.txt", head)
    assert await place.backend.detect_image_mime_type(path) == mime_type


# The tool --------------------------------------------------------------------------------


async def test_the_tool_shows_a_small_file_as_it_is(place: Place) -> None:
    await place.put("f.txt", "first\nsecond é\n")
    message = await place.run("read", path="f.txt")
    assert said(message).rstrip("\n") == "first\nsecond é"
    assert "truncation" not in (message.details or {}) or not message.details["truncation"]


async def test_the_tool_says_that_a_file_is_empty(place: Place) -> None:
    await place.put("f.txt", b"")
    assert "empty" in said(await place.run("read", path="f.txt")).lower()


async def test_a_window_is_followed_by_how_to_go_on(place: Place) -> None:
    await place.put("f.txt", "".join(f"line {n}\n" for n in range(1, 101)))
    shown = said(await place.run("read", path="f.txt", offset=11, limit=5))
    assert "line 11\nline 12\nline 13\nline 14\nline 15" in shown
    assert "line 10\n" not in shown
    assert "line 16\n" not in shown
    assert "100" in shown
    assert "16" in shown


async def test_the_line_limit_is_stated_with_totals(place: Place) -> None:
    await place.put("f.txt", "".join(f"{n}\n" for n in range(1, 2502)))
    message = await place.run("read", path="f.txt")
    shown = said(message)
    assert "\n2000\n" in shown
    assert "\n2002\n" not in shown
    assert "2501" in shown.replace(",", "")
    assert "2001" in shown.replace(",", "")
    assert message.details["truncation"]


async def test_the_byte_limit_never_cuts_a_line_or_character(place: Place) -> None:
    line = "\u3042" * 300
    await place.put("f.txt", f"{line}\n" * 100)
    message = await place.run("read", path="f.txt")
    body = [part for part in said(message).split("\n") if "\u3042" in part]
    assert set(body) == {line}
    assert len("\n".join(body).encode()) <= 50 * 1024
    assert "\ufffd" not in said(message)


async def test_a_line_over_the_limit_is_named_with_a_command_to_see_it(place: Place) -> None:
    await place.put("it's long.txt", "short\n" + "x" * 60_000 + "\n")
    shown = said(await place.run("read", path="it's long.txt", offset=2))
    assert "58.6" in shown
    assert "2" in shown
    assert len(shown) < 2000
    assert """/it'"'"'s long.txt'""" in shown


async def test_a_file_that_needs_no_window_is_read_through_a_link(place: Place) -> None:
    await place.put("real.txt", "x\n")
    await place.symlink("real.txt", "link.txt")
    assert "x" in said(await place.run("read", path="link.txt"))


async def test_a_missing_path_is_named_as_given_with_near_names(place: Place) -> None:
    await place.put("src/main.py")
    await place.put("src/util.py")
    said_ = refused(await place.run("read", path="src/mian.py"), "not_found")
    assert "src/mian.py" in said_
    assert "main.py" in said_
    assert place.cwd not in said_


async def test_a_folder_is_refused_with_what_it_holds(place: Place) -> None:
    await place.put("d/inside.txt")
    told = refused(await place.run("read", path="d"))
    assert "inside.txt" in told


@pytest.mark.parametrize("path", ["{cwd}/f.txt", "@f.txt", "./f.txt", "d/../f.txt",
                                  "file://{cwd}/f.txt", "{cwd}//f.txt"])  # fmt: skip
async def test_paths_may_be_written_in_several_ways(place: Place, path: str) -> None:
    await place.mkdir("d")
    await place.mkdir("d")
    await place.put("f.txt", "found\n")
    assert "found" in said(await place.run("read", path=path.format(cwd=place.cwd)))


async def test_a_name_that_begins_with_at_wins_over_the_shorthand(place: Place) -> None:
    await place.put("@f.txt", "with the sign\n")
    await place.put("f.txt", "without\n")
    assert "with the sign" in said(await place.run("read", path="@f.txt"))


async def test_home_is_the_targets_own(place: Place) -> None:
    await place.put(f"{place.home}/notes.txt", "at home\n")
    assert "at home" in said(await place.run("read", path="~/notes.txt"))


@pytest.mark.parametrize("path", ["", "a\x00b", "\x00"])
async def test_an_empty_path_or_nul_is_an_error(place: Place, path: str) -> None:
    refused(await place.run("read", path=path))


async def test_an_image_comes_as_a_note_and_a_block(place: Place) -> None:
    await place.put("picture.txt", PNG)
    message = await place.run("read", path="picture.txt")
    assert "image/png" in said(message)
    [block] = images(message)
    assert block.mime_type == "image/png"
    assert base64.b64decode(block.data).startswith(b"\x89PNG")


async def test_binary_content_is_told_by_type_and_size(place: Place) -> None:
    await place.put("a.txt", BINARY)
    shown = said(await place.run("read", path="a.txt"))
    assert "binary" in shown.lower()
    assert str(len(BINARY)) in shown.replace(",", "")
    assert "PK" not in shown
    assert len(shown) < 500


@pytest.mark.needs("fifo")
async def test_the_tool_never_hangs_on_a_fifo(place: Place) -> None:
    await place.fifo("pipe")
    assert "pipe" in refused(await place.run("read", path="pipe"))


async def test_line_endings_and_encoding_are_in_the_details(place: Place) -> None:
    await place.put("f.txt", b"a\r\nb\r\n")
    message = await place.run("read", path="f.txt")
    assert "\r" not in said(message)
    told = str(message.details).lower()
    assert "crlf" in told or "\\r\\n" in told
    assert "utf-8" in told


async def test_control_characters_never_reach_a_model(place: Place) -> None:
    await place.put("f.txt", b"\x1b[31mred\x1b[0m\n\x1b]0;title\x07plain\n")
    shown = said(await place.run("read", path="f.txt"))
    assert "\x1b" not in shown
    assert "plain" in shown
