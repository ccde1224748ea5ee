"""Files over lanes: every byte, every name, and nothing half-written."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backends.engine.lines import scan_lines
from backends.remote import convert, shell_files
from backends.remote.shell_quote import function_call, one_line, quoted
from operations import (
    ConnectionLost,
    FileChanged,
    PathDenied,
    PathError,
    PathNotFound,
    StorageFull,
    TooLarge,
)
from tests.backends.remote.shells import PRESENT, SHELLS, Shells

pytestmark = pytest.mark.anyio


@pytest.fixture(params=PRESENT)
def shells(request: pytest.FixtureRequest) -> Shells:
    return Shells(request.param)


NAMES = [
    b"plain",
    b"with space",
    b"new\nline",
    b"quote'\"`$(id)\\",
    b"-dash",
    b".dot",
    b"..two",
    b"ends\n",
    b"inv\xff\xfealid",
    b"*?[a]",
    "é漢".encode(),
    b"\x1e\x01\x7f",
    b"=a",
    b"n" * 255,
]


@pytest.mark.parametrize("name", SHELLS)
@given(text=st.binary(max_size=200).filter(lambda text: b"\0" not in text))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_shell_reads_back_what_was_quoted(name: str, text: bytes) -> None:
    if name not in PRESENT:
        pytest.skip("it is not installed here")
    line = one_line(function_call("printf", "%s", text))
    assert b"\n" not in line
    argv, _ = SHELLS[name]
    script = b"N=$(printf '\\n.'); N=${N%.}; " + line
    assert subprocess.run([*argv, "-c", script], capture_output=True, check=True).stdout == text
    assert b"\0" not in quoted(text)


async def test_every_name_is_listed_read_and_written(shells: Shells, tmp_path: Path) -> None:
    async with shells.backend() as backend:
        for number, name in enumerate(NAMES):
            path = os.fsdecode(os.fsencode(tmp_path) + b"/" + name)
            await backend.write_file(path, b"%d" % number)
            assert await backend.read_file(path) == b"%d" % number
            assert (await backend.read_lines(path, start=1, max_lines=1, max_bytes=9)).lines == 1
        listing = await backend.list_directory(str(tmp_path), limit=100)
    assert {os.fsencode(entry.name) for entry in listing.entries} == set(NAMES)
    assert set(os.listdir(os.fsencode(tmp_path))) == set(NAMES)


async def test_kinds_and_links_are_listed_exactly(shells: Shells, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_bytes(b"")
    os.mkfifo(tmp_path / "p")
    targets = {"l1": "d", "l2": "nowhere", "l3": "ends\n", "l4": "a'b c", "l5": "l5"}
    for name, target in targets.items():
        (tmp_path / name).symlink_to(target)
    async with shells.backend() as backend:
        listing = await backend.list_directory(str(tmp_path), limit=100)
    found = {e.name: (e.kind, e.link_target, e.broken) for e in listing.entries}
    assert found.pop("d") == ("directory", None, False)
    assert found.pop("f") == ("file", None, False)
    assert found.pop("p") == ("fifo", None, False)
    assert found == {name: ("symlink", t, name != "l1") for name, t in targets.items()}


# Windows in files that do not come whole -------------------------------------------------

LINES = st.lists(
    st.sampled_from([b"", b"a", b"\r", b"x" * 90, b"caf\xc3\xa9", b"\xff\xfe", b"y" * 3000]),
    max_size=40,
)


@pytest.mark.parametrize("name", ["sh", "busybox"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])
async def test_a_far_window_is_what_a_scan_finds(
    name: str, mark: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With files counting as large from 16 KiB on, for that is where its work begins."""
    if name not in PRESENT:
        pytest.skip("it is not installed here")
    monkeypatch.setattr(shell_files, "_SMALL", 16 << 10)
    examples = [
        (lines * 40 + ([b"last"] if unended else [b""]), start, count, most)
        for lines, unended in [
            ([b"a", b"", b"caf\xc3\xa9 \xff", b"x" * 600, b"\r"], True),
            ([b"a", b"", b"caf\xc3\xa9 \xff", b"x" * 600, b"\r"], False),
            ([b""] * 500, False),
            ([b"y" * 20_000], True),
        ]
        for start in (1, 2, 39, 41, 199, 200, 201, 202, 5000, 20_001)
        for count, most in ((1, 1000), (5, 50), (1000, 10_000), (3, 1), (2000, 50_000))
    ]
    async with Shells(name).backend() as backend:
        for number, (lines, start, count, most) in enumerate(examples):
            content = mark + b"\n".join(lines)
            path = tmp_path / f"f{number // 50}"
            if not number % 50:
                path.write_bytes(content)
            found = scan_lines([content], start, count, most, size=len(content))
            expected = convert.line_window(found, found.pop("data"))
            window = await backend.read_lines(
                str(path), start=start, max_lines=count, max_bytes=most
            )
            assert window == expected, (number // 50, start, count, most)


async def test_only_the_window_of_a_large_file_crosses(shells: Shells, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"line of text\n" * 1_000_000)
    seen = 0
    async with shells.backend() as backend:
        channel = shells.opened[0]
        receive = channel.receive

        async def counted() -> bytes:
            nonlocal seen
            data = await receive()
            seen += len(data)
            return data

        for opened in shells.opened:
            opened.receive = counted  # type: ignore[method-assign]
        window = await backend.read_lines(
            str(tmp_path / "f"), start=900_000, max_lines=3, max_bytes=1000
        )
    assert window.data == b"line of text\n" * 3
    assert (window.total_lines, window.size) == (1_000_000, 13_000_000)
    assert seen < 100_000


async def test_files_of_proc_are_read_to_the_end(shells: Shells) -> None:
    async with shells.backend() as backend:
        assert b"Linux" in await backend.read_file("/proc/version")
        window = await backend.read_lines("/proc/version", start=1, max_lines=5, max_bytes=5000)
    assert b"Linux" in window.data


async def test_a_file_over_the_limit_is_refused_before_it_comes(
    shells: Shells, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell_files, "MAX_WHOLE_READ", 1000)
    (tmp_path / "f").write_bytes(b"x" * 1001)
    async with shells.backend() as backend:
        with pytest.raises(TooLarge) as caught:
            await backend.read_file(str(tmp_path / "f"))
        assert caught.value.size == 1001
        (tmp_path / "f").write_bytes(b"x" * 1000)
        assert len(await backend.read_file(str(tmp_path / "f"))) == 1000


# Writing ---------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a file system of 1 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True
        ).returncode
    )
    if not mounted:
        pytest.skip("mounting a file system takes a superuser")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("links", [1, 2])
async def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    shells: Shells, small_disk: Path, links: int
) -> None:
    path = small_disk / "f"
    path.write_bytes(b"old content")
    if links == 2:
        os.link(path, small_disk / "g")
    async with shells.backend() as backend:
        for size in (3_000_000, 700_000) if links == 2 else (3_000_000,):
            with pytest.raises(StorageFull):
                await backend.replace_file(str(path), b"x" * size)
            assert path.read_bytes() == b"old content"
            assert len(os.listdir(small_disk)) == links
        with pytest.raises(StorageFull):
            await backend.replace_file(str(small_disk / "new"), b"x" * 3_000_000)
        assert len(os.listdir(small_disk)) == links
        await backend.write_file(str(path), b"fits")
    assert path.read_bytes() == b"fits"


async def test_an_upload_that_is_given_up_leaves_the_old_file(
    shells: Shells, tmp_path: Path
) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    async with shells.backend() as backend:
        # Whatever is free when that is done: either none of it is there, or all.
        for delay in (0.0, 0.005, 0.05):
            with anyio.move_on_after(delay):
                await backend.replace_file(str(path), b"x" * 30_000_000)
            assert path.stat().st_size in (3, 30_000_000)
        assert await backend.read_file(str(path))
    with anyio.fail_after(10):
        while os.listdir(tmp_path) != ["f"]:
            await anyio.sleep(0.02)


async def test_a_lane_that_dies_midway_leaves_the_old_file(shells: Shells, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    async with shells.backend() as backend, anyio.create_task_group() as group:

        async def write() -> None:
            with pytest.raises(ConnectionLost):
                await backend.replace_file(str(path), b"x" * 200_000_000)

        group.start_soon(write)
        with anyio.fail_after(20):
            while len(os.listdir(tmp_path)) == 1:
                await anyio.sleep(0.001)
        for channel in shells.opened:
            await channel.close()
    assert path.read_bytes() == b"old"
    with anyio.fail_after(10):
        while os.listdir(tmp_path) != ["f"]:
            await anyio.sleep(0.02)


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o444, 0o755, 0o4755, 0o000, 0o666, 0o2770, 0o1644])
async def test_every_mode_is_kept(shells: Shells, tmp_path: Path, mode: int) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(mode)
    if not os.access(path, os.W_OK):
        pytest.skip("only a superuser may write it")
    async with shells.backend() as backend:
        assert (await backend.replace_file(str(path), b"new")).atomic
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == b"new"


@pytest.mark.skipif(os.geteuid() != 0, reason="only a superuser gives files away")
async def test_the_owner_is_kept(shells: Shells, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    os.chown(path, 1234, 4321)
    async with shells.backend() as backend:
        assert (await backend.replace_file(str(path), b"new")).atomic
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes a superuser")
async def test_a_mounted_file_is_written_in_place(shells: Shells, tmp_path: Path) -> None:
    path, other = tmp_path / "f", tmp_path / "other"
    path.write_bytes(b"hidden")
    for content in (b"longer than before", b"short"):
        other.write_bytes(b"other content")
        if subprocess.run(["mount", "--bind", other, path], capture_output=True).returncode:
            pytest.skip("bind mounts are not allowed here")
        try:
            async with shells.backend() as backend:
                result = await backend.replace_file(str(path), content)
        finally:
            subprocess.run(["umount", path], check=True)
        assert (result.atomic, result.reason) == (False, "mount_point")
        assert (path.read_bytes(), other.read_bytes()) == (b"hidden", content)
        assert sorted(os.listdir(tmp_path)) == ["f", "other"]


@pytest.mark.skipif(os.geteuid() != 0, reason="planting takes two users")
async def test_a_link_that_another_user_planted_in_a_shared_folder_is_refused(
    shells: Shells, tmp_path: Path
) -> None:
    shared, target = tmp_path / "shared", tmp_path / "target"
    shared.mkdir()
    shared.chmod(0o1777)
    target.write_bytes(b"precious")
    (shared / "link").symlink_to(target)
    os.lchown(shared / "link", 1234, 1234)
    async with shells.backend() as backend:
        with pytest.raises(PathDenied):
            await backend.write_file(str(shared / "link"), b"mine")
    assert target.read_bytes() == b"precious"


async def test_a_dangling_link_is_followed_from_where_it_stands(
    shells: Shells, tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a/link").symlink_to("../b/other")
    (tmp_path / "b/other").symlink_to("new file\n")
    async with shells.backend() as backend:
        assert (await backend.replace_file(str(tmp_path / "a/link"), b"x")).created
    assert (tmp_path / "b/new file\n").read_bytes() == b"x"


async def test_links_in_a_circle_are_an_error(shells: Shells, tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to("l")
    async with shells.backend() as backend:
        with pytest.raises(PathError, match="levels"):
            await backend.write_file(str(tmp_path / "l"), b"x")
        with pytest.raises(PathError, match="levels"):
            await backend.exists(str(tmp_path / "l"))


async def test_a_version_is_of_the_file_and_of_what_it_holds(
    shells: Shells, tmp_path: Path
) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    async with shells.backend() as backend:
        version = (await backend.read_versioned(str(path))).version
        status = path.stat()
        assert (version.device, version.inode) == (status.st_dev, status.st_ino)
        path.write_bytes(b"OLD")
        with pytest.raises(FileChanged):
            await backend.replace_file(str(path), b"mine", expected=version)
        path.unlink()
        with pytest.raises(FileChanged):
            await backend.replace_file(str(path), b"mine", expected=version, make_parents=True)
        assert os.listdir(tmp_path) == []
        with pytest.raises(PathNotFound):
            await backend.read_versioned(str(path))


async def test_durable_writes_are_written(shells: Shells, tmp_path: Path) -> None:
    async with shells.backend() as backend:
        assert (await backend.replace_file(str(tmp_path / "f"), b"x", durable=True)).created
    assert (tmp_path / "f").read_bytes() == b"x"
