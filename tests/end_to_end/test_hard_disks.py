"""Writing and editing where the filesystem is against it: the old content or the new, told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from backends.local import EngineBackend, LocalBackend
from tests.conformance.places import Place, refused, said
from tests.conformance.seeders import HostSeeder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

pytestmark = pytest.mark.anyio

OLD = b"old line\n" * 20_000  # 180 KB
NEW = "new line\n" * 100_000  # 900 KB: does not fit beside the old one


@pytest.fixture
def mount() -> Iterator[Callable[..., None]]:
    """Give a function that mounts something and undoes it at the end of the test."""
    mounted: list[Path] = []

    def do(point: Path, *arguments: str) -> None:
        done = subprocess.run(
            ["mount", *arguments, str(point)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"this user cannot mount: {done.stderr.strip()}")
        if point not in mounted:
            mounted.append(point)

    yield do
    for point in reversed(mounted):
        subprocess.run(["umount", "-l", str(point)], check=True)


@pytest.fixture(params=[LocalBackend, EngineBackend])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with request.param(cwd=str(workspace)) as backend:
        yield Place(backend, str(workspace), HostSeeder(), "")


async def change(place: Place, way: str, path: str, new: str) -> Any:
    """Write or edit a file that holds "old line" first so that it holds `new`."""
    if way == "write":
        return await place.run("write", path=path, content=new)
    old = (await place.get(path)).decode()
    return await place.run("edit", path=path, edits=[{"old_text": old, "new_text": new}])


@pytest.mark.parametrize("way", ["write", "edit"])
@pytest.mark.parametrize("links", [1, 2], ids=["renamed", "in place"])
async def test_a_full_disk_leaves_the_old_content(
    place: Place, mount: Callable[..., None], way: str, links: int
) -> None:
    disk = Path(await place.mkdir("disk"))
    mount(disk, "-t", "tmpfs", "-o", "size=1m", "tmpfs")
    await place.put("disk/f", OLD)
    if links == 2:
        await place.link("disk/f", "disk/g")
        await place.put("disk/filler", b"x" * 300_000)
    before = await place.names("disk")
    told = refused(await change(place, way, "disk/f", NEW))
    assert "space" in told
    assert await place.get("disk/f") == OLD
    assert await place.names("disk") == before
    await place.put("disk/after", b"there is room again")


@pytest.mark.parametrize("size", [0, 2_000_000])
async def test_a_new_file_on_a_full_disk_is_not_there_at_all(
    place: Place, mount: Callable[..., None], size: int
) -> None:
    disk = Path(await place.mkdir("disk"))
    mount(disk, "-t", "tmpfs", "-o", "size=1m", "tmpfs")
    await place.put("disk/filler", b"x" * ((1 << 20) - 8192 if not size else 10))
    message = await place.run("write", path="disk/f", content="x" * (size or 100_000))
    assert "space" in refused(message)
    assert await place.names("disk") == ["filler"]


@pytest.mark.parametrize("way", ["write", "edit"])
async def test_a_bind_mounted_file_is_written_in_place(
    place: Place, mount: Callable[..., None], way: str
) -> None:
    real = await place.put("real", b"old line\n", mode=0o640)
    point = await place.put("point", b"")
    mount(Path(point), "--bind", real)
    message = await change(place, way, "point", "new line\n")
    said(message)
    assert message.details["atomic"] is False
    assert "mount" in str(message.details)
    assert await place.get("real") == b"new line\n"
    assert await place.mode("real") == 0o640
    assert await place.names() == ["point", "real"]


@pytest.mark.parametrize("way", ["write", "edit"])
async def test_a_read_only_mount_is_denied(
    place: Place, mount: Callable[..., None], way: str
) -> None:
    await place.put("d/f", b"old line\n")
    mount(Path(place.path("d")), "--bind", place.path("d"))
    mount(Path(place.path("d")), "-o", "remount,bind,ro")
    refused(await change(place, way, "d/f", "new line\n"), "denied")
    refused(await place.run("write", path="d/g", content="x"), "denied")
    assert await place.get("d/f") == b"old line\n"
    assert await place.names("d") == ["f"]


@pytest.mark.parametrize("way", ["write", "edit"])
async def test_hard_links_stay_one_file(place: Place, way: str) -> None:
    await place.put("a", b"old line\n", mode=0o640)
    await place.link("a", "b")
    message = await change(place, way, "a", "new line\n")
    said(message)
    assert message.details["atomic"] is False
    assert await place.get("b") == b"new line\n"
    assert await place.inode("a") == await place.inode("b")


@pytest.mark.unprivileged
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("way", ["write", "edit"])
async def test_a_read_only_folder_is_written_in_place(place: Place, way: str) -> None:
    await place.put("d/f", b"old line\n")
    await place.chmod("d", 0o555)
    try:
        message = await change(place, way, "d/f", "new line\n")
        said(message)
        assert message.details["atomic"] is False
        assert await place.get("d/f") == b"new line\n"
        refused(await place.run("write", path="d/g", content="x"), "denied")
        refused(await place.run("write", path="d/sub/g", content="x"), "denied")
        assert await place.names("d") == ["f"]
    finally:
        await place.chmod("d", 0o755)


@pytest.mark.unprivileged
@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_an_unreadable_file_cannot_be_edited_and_a_read_only_one_is_told(
    place: Place,
) -> None:
    await place.put("f", b"old line\n", mode=0o200)
    edits = [{"old_text": "old", "new_text": "new"}]
    refused(await place.run("edit", path="f", edits=edits), "denied")
    refused(await place.run("read", path="f"), "denied")
    await place.chmod("f", 0o644)
    assert await place.get("f") == b"old line\n"


@pytest.mark.parametrize("tool", ["read", "write", "edit", "ls", "grep", "find", "bash"])
async def test_a_removed_working_folder_is_told(place: Place, tool: str) -> None:
    arguments = {
        "read": {"path": "f"},
        "write": {"path": "f", "content": "x"},
        "edit": {"path": "f", "edits": [{"old_text": "a", "new_text": "b"}]},
        "ls": {},
        "grep": {"pattern": "x"},
        "find": {"pattern": "*"},
        "bash": {"command": "echo hi"},
    }[tool]
    await place.remove("")
    message = await place.run(tool, **arguments)
    if tool == "write":
        said(message)  # parents are made
        assert await place.get("f") == b"x"
    else:
        refused(message, "not_found")


@pytest.mark.parametrize("way", ["write", "edit"])
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
async def test_the_owner_is_kept(place: Place, way: str) -> None:
    path = Path(await place.put("f", b"old line\n", mode=0o640))
    os.chown(path, 1234, 2345)
    said(await change(place, way, "f", "new line\n"))
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (1234, 2345, 0o640)
    assert await place.get("f") == b"new line\n"


@pytest.mark.parametrize("way", ["write", "edit"])
async def test_extended_attributes_are_kept(place: Place, way: str) -> None:
    path = await place.put("f", b"old line\n")
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("this filesystem has no extended attributes")
    said(await change(place, way, "f", "new line\n"))
    assert os.getxattr(path, "user.note") == b"kept"
    assert await place.get("f") == b"new line\n"


async def test_a_swapped_symlink_makes_an_edit_start_again_or_fail(place: Place) -> None:
    """The version read is that of the file that is replaced, wherever the link leads by then."""
    await place.put("one", b"old line 1\n")
    await place.put("two", b"old line 2\n")
    await place.symlink("one", "link")
    read = await place.backend.read_versioned(place.path("link"))
    await place.remove("link")
    await place.symlink("two", "link")
    with pytest.raises(Exception, match="changed"):
        await place.backend.replace_file(place.path("link"), b"new\n", expected=read.version)
    assert await place.get("one") == b"old line 1\n"
    assert await place.get("two") == b"old line 2\n"
