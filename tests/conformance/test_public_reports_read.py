"""Faults that users met in other tool kits when files were read, and inputs close to them."""

# ruff: noqa: N802 - a test is named after the report that it stands for

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.conformance.places import refused, said, text

if TYPE_CHECKING:
    from tests.conformance.places import Place

pytestmark = pytest.mark.anyio

#: Bytes without sense, the same in each run.
NOISE = random.Random(7).randbytes(5000)


@pytest.mark.parametrize(
    "inside",
    ["\x0c", "\u2028", "\x85", "\x1c", "\x1d", "\x1e", "\x0b", "\u2029", "\r"],
    ids=lambda character: f"U+{ord(character):04X}",
)
async def test_B12_only_a_line_feed_ends_a_line(place: Place, inside: str) -> None:
    await place.put("f.txt", f"a{inside}b\nc{inside}{inside}d\nNEEDLE\n")
    assert "f.txt:3: NEEDLE" in said(await place.run("grep", pattern="NEEDLE"))
    shown = said(await place.run("read", path="f.txt", offset=3, limit=1))
    assert shown.strip() == "NEEDLE"
    told = refused(await place.run("read", path="f.txt", offset=4))
    assert "3" in told
    message = await place.run(
        "edit", path="f.txt", edits=[{"old_text": "NEEDLE", "new_text": "FOUND"}]
    )
    said(message)
    assert [v for k, v in message.details.items() if "first" in k.lower()] == [3]
    assert await place.get("f.txt") == f"a{inside}b\nc{inside}{inside}d\nFOUND\n".encode()


@pytest.mark.parametrize(
    ("mark", "encoding", "line"),
    [
        (b"\xff\xfe", "utf-16-le", "h\u00e9llo\r\nx\r\n"),
        (b"\xfe\xff", "utf-16-be", "h\u00e9llo\nx\n"),
        (b"\xff\xfe\x00\x00", "utf-32-le", "h\u00e9llo\r\nx\r\n"),
        (b"\xff\xfe", "utf-16-le", "\U0001f600 pair h\u00e9llo\nx"),
    ],
    ids=["utf-16-le", "utf-16-be", "utf-32-le", "beyond the first plane"],
)
async def test_B54_marked_encodings_are_decoded_and_named(
    place: Place, mark: bytes, encoding: str, line: str
) -> None:
    await place.put("f.txt", mark + line.encode(encoding))
    message = await place.run("read", path="f.txt")
    shown = said(message)
    assert "h\u00e9llo\nx" in shown
    assert "\x00" not in shown
    assert "\ufeff" not in shown
    assert encoding[:6] in str(message.details).lower()


@pytest.mark.parametrize(
    ("line", "encoding"),
    [
        ("\u30c6\u30b9\u30c8 " * 30 + "\n", "shift_jis"),
        ("caf\u00e9 na\u00efve \u00fcber\n" * 10, "latin-1"),
        ("\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440\n" * 10, "koi8-r"),
        ("\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440\n" * 10, "cp1251"),
    ],
)
async def test_B54_a_guess_is_said_to_be_one(place: Place, line: str, encoding: str) -> None:
    await place.put("f.txt", line.encode(encoding))
    message = await place.run("read", path="f.txt")
    told = text(message).lower()
    assert "encod" in told or "guess" in told or "decoded" in told
    assert (message.details or {}).get("encoding")


@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("count", [1, 10, 2000])
async def test_B65_a_trailing_newline_is_no_line(place: Place, count: int, ending: str) -> None:
    await place.put("f.txt", "".join(f"line {n}{ending}" for n in range(1, count + 1)))
    window = await place.backend.read_lines(
        place.path("f.txt"), start=1, max_lines=5, max_bytes=50_000
    )
    assert window.total_lines == count
    assert said(await place.run("read", path="f.txt", offset=count)).strip() == f"line {count}"
    told = refused(await place.run("read", path="f.txt", offset=count + 1))
    assert str(count) in told
    assert str(count + 1) in told
    if count > 5:
        shown = said(await place.run("read", path="f.txt", limit=5))
        assert str(count) in shown
        assert "6" in shown.split("line 5")[1]
        assert str(count + 1) not in shown


@pytest.mark.parametrize(
    ("data", "total", "last"),
    [
        (b"a\nb\nc", 3, "c"),
        (b"c", 1, "c"),
        (b"a\r\nb\r\nc", 3, "c"),
        (b"\n\nc", 3, "c"),
        (b"a\nb\nc\r", 3, "c"),
    ],
    ids=["lf", "one line", "crlf", "blank lines", "cr at the end"],
)
async def test_B66_a_last_line_without_newline_counts(
    place: Place, data: bytes, total: int, last: str
) -> None:
    await place.put("f.txt", data)
    window = await place.backend.read_lines(
        place.path("f.txt"), start=total, max_lines=5, max_bytes=100
    )
    assert window.total_lines == total
    assert said(await place.run("read", path="f.txt", offset=total)).strip() == last
    refused(await place.run("read", path="f.txt", offset=total + 1))


@pytest.mark.needs("proc")
@pytest.mark.parametrize(
    ("path", "holds"),
    [
        ("/proc/self/status", "Name:"),
        ("/proc/version", "Linux"),
        ("/proc/cpuinfo", "processor"),
        ("/proc/self/mounts", "/proc"),
    ],
)
async def test_B68_files_that_say_size_zero_are_read(place: Place, path: str, holds: str) -> None:
    assert holds in said(await place.run("read", path=path))
    assert holds.encode() in await place.backend.read_file(path)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"PK\x03\x04" + NOISE + b"\x00", "zip"),
        (b"\x7fELF\x02\x01\x01" + bytes(9) + NOISE, "executable"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + NOISE[:3000] + bytes(10), "pdf"),
        (b"text at first\n" * 100 + b"\x00" + NOISE[:100], ""),
        (b"\x00", ""),
    ],
    ids=["zip", "elf", "pdf", "text at first", "one nul"],
)
async def test_B94_binary_content_is_told_not_shown(place: Place, data: bytes, word: str) -> None:
    await place.put("f.dat", data)
    message = await place.run("read", path="f.dat")
    told = text(message)
    assert "binary" in told.lower()
    assert word in told.lower()
    assert "\x00" not in told
    assert len(told) < 1000
    edited = await place.run(
        "edit", path="f.dat", edits=[{"old_text": "no such text", "new_text": "x"}]
    )
    refused(edited)
    assert await place.get("f.dat") == data


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        ("Shot 3.00.00\u202fPM.txt", "Shot 3.00.00 PM.txt"),
        ("cafe\u0301.txt", "caf\u00e9.txt"),
        ("caf\u00e9.txt", "cafe\u0301.txt"),
        ("it\u2019s.txt", "it's.txt"),
        ("a\u00a0b.txt", "a b.txt"),
    ],
    ids=["narrow no-break space", "decomposed", "composed", "apostrophe", "no-break space"],
)
async def test_B107_a_name_pasted_with_other_characters_is_found_and_said(
    place: Place, held: str, asked: str
) -> None:
    await place.put(held, b"content\n")
    message = await place.run("read", path=asked)
    if message.is_error:
        refused(message, "not_found")
        assert held in text(message)
    else:
        assert "content" in text(message)
        assert held in text(message)


async def test_B107_two_candidates_are_never_chosen_between(place: Place) -> None:
    await place.put("a\u00a0b.txt", b"no-break\n")
    await place.put("a\u202fb.txt", b"narrow\n")
    told = refused(await place.run("read", path="a b.txt"), "not_found")
    assert "no-break" not in told
    await place.put("a b.txt", b"exact\n")
    assert said(await place.run("read", path="a b.txt")).strip() == "exact"


async def test_B107_a_new_file_takes_no_other_name(place: Place) -> None:
    await place.put("a\u00a0b.txt", b"kept\n")
    said(await place.run("write", path="a b.txt", content="new\n"))
    assert await place.get("a\u00a0b.txt") == b"kept\n"
    assert await place.get("a b.txt") == b"new\n"


@pytest.mark.parametrize(
    ("count", "width"),
    [(1999, 1), (2000, 1), (2001, 1), (50, 1023), (51, 1023)],
)
async def test_B96_a_notice_stands_only_where_something_is_left_out(
    place: Place, count: int, width: int
) -> None:
    line = "x" * width
    await place.put("f.txt", f"{line}\n" * count)
    message = await place.run("read", path="f.txt")
    left_out = count > 2000 or count * (width + 1) > 50 * 1024
    assert bool((message.details or {}).get("truncation")) is left_out
    rest = said(message).replace(line, "").strip()
    assert bool(rest) is left_out
    if left_out:
        assert str(count) in rest.replace(",", "")
