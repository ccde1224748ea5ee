"""File operations in memory keep the promises of the Protocols, rights included."""

from __future__ import annotations

import hashlib

import anyio
import pytest

from backends.memory import Directory, File, ManualClock, MemoryBackend, Special, Symlink
from operations import (
    FileChanged,
    FileVersion,
    NotRegularFile,
    PathDenied,
    PathError,
    PathIsDirectory,
    PathNotDirectory,
    PathNotFound,
    Progress,
    WriteResult,
)

pytestmark = pytest.mark.anyio


async def test_read_versioned_tells_the_identity_and_the_digest_of_what_was_read() -> None:
    """Two names of one file have one version."""
    backend = MemoryBackend({"a": b"abc"})
    backend.link("a", "b")
    read = await backend.read_versioned("/work/a")
    assert read.content == b"abc"
    assert read.version.digest == hashlib.sha256(b"abc").digest()
    assert read.version.inode == backend.stat("b").inode
    assert read.version == (await backend.read_versioned("/work/b")).version


async def test_a_replaced_file_is_a_new_inode_with_the_old_mode_and_owner() -> None:
    """As after a rename; a symlink stays, and its target is replaced."""
    backend = MemoryBackend({"s.sh": File("1", mode=0o755), "l": Symlink("s.sh")}, uid=0)
    backend.chown("s.sh", 12, 34)
    before = backend.stat("s.sh")
    written = await backend.replace_file("/work/l", b"2")
    after = backend.stat("s.sh")
    assert written == WriteResult(created=False)
    assert backend.readlink("l") == "s.sh"
    assert backend.read_bytes("s.sh") == b"2"
    assert (after.mode, after.uid, after.gid) == (0o755, 12, 34)
    assert after.inode != before.inode


async def test_a_new_file_gets_the_umask_and_a_dangling_link_its_target() -> None:
    """Missing folders are made only on request."""
    backend = MemoryBackend({"l": Symlink("d/made"), "d/": None}, umask=0o027)
    assert await backend.replace_file("/work/l", b"x") == WriteResult(created=True)
    assert (backend.read_bytes("d/made"), backend.stat("d/made").mode) == (b"x", 0o640)
    with pytest.raises(PathNotFound):
        await backend.replace_file("/work/no/such/f", b"x")
    with pytest.raises(PathNotFound):
        await backend.write_file("/work/no/such/f", b"x")
    await backend.replace_file("/work/no/such/f", b"x", make_parents=True)
    assert backend.stat("no/such").mode == 0o750


@pytest.mark.parametrize(
    ("reason", "prepare"),
    [
        ("hard_links", lambda b: b.link("f", "other")),
        ("folder_not_writable", lambda b: b.chmod(".", 0o555)),
        ("owner", lambda b: (b.chown("f", 4242), b.chmod("f", 0o666))),
    ],
)
async def test_a_file_is_written_in_place_where_a_rename_would_change_it(
    reason: str, prepare: object
) -> None:
    """It stays the same inode, and the result says why it was not atomic."""
    backend = MemoryBackend({"f": "1"})
    prepare(backend)  # type: ignore[operator]
    before = backend.stat("f")
    written = await backend.replace_file("/work/f", b"2")
    assert written == WriteResult(created=False, atomic=False, reason=reason)
    assert backend.read_bytes("f") == b"2"
    assert backend.stat("f").inode == before.inode
    assert backend.stat("f").links == before.links


async def test_an_expected_version_is_checked_by_content_and_by_identity() -> None:
    """An equal content in another file is another file; a missing one has changed too."""
    backend = MemoryBackend({"f": "1"})
    version = (await backend.read_versioned("/work/f")).version
    await backend.replace_file("/work/f", b"2", expected=version)
    with pytest.raises(FileChanged):
        await backend.replace_file("/work/f", b"3", expected=version)
    version = (await backend.read_versioned("/work/f")).version
    backend.write("f", "2!")
    with pytest.raises(FileChanged):
        await backend.replace_file("/work/f", b"3", expected=version)
    backend.write("f", "2")
    assert (await backend.read_versioned("/work/f")).version == version
    backend.remove("f")
    backend.write("f", "2")
    with pytest.raises(FileChanged):
        await backend.replace_file("/work/f", b"3", expected=version)
    backend.remove("f")
    with pytest.raises(FileChanged):
        await backend.replace_file("/work/f", b"3", expected=version)
    assert not backend.has("f")


async def test_versions_of_two_backends_are_never_equal() -> None:
    """Also when the numbers of the files and the contents are."""
    one, two = MemoryBackend({"f": "1"}), MemoryBackend({"f": "1"})
    version = (await one.read_versioned("/work/f")).version
    with pytest.raises(FileChanged):
        await two.replace_file("/work/f", b"2", expected=version)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/work/d", PathIsDirectory),
        ("/work/new/", PathIsDirectory),
        ("/work/f/x", PathNotDirectory),
        ("/work/pipe", NotRegularFile),
        ("/work/ro/new", PathDenied),
        ("/work/read-only", PathDenied),
        ("/work/loop", PathError),
        ("/work/" + "n" * 256, PathError),
        ("/work/a\0b", PathError),
        ("relative", PathError),
        ("", PathError),
        ("/work/\ud800", PathError),
    ],
)
async def test_what_cannot_be_written_is_refused_and_nothing_changes(
    path: str, error: type[PathError]
) -> None:
    """Each condition has its error."""
    backend = MemoryBackend(
        {
            "d/": None,
            "f": "1",
            "pipe": Special("fifo"),
            "ro/": Directory(mode=0o555),
            "read-only": File("1", mode=0o444),
            "loop": Symlink("loop"),
        }
    )
    before = backend.snapshot("/")
    with pytest.raises(error):
        await backend.replace_file(path, b"x", make_parents=True)
    assert backend.snapshot("/") == before


async def test_modes_are_enforced_for_the_user_and_not_for_the_superuser() -> None:
    """Reading, listing, and passing through a folder have each their bit."""
    seeds = {
        "secret": File("s", mode=0o000),
        "shut/in": "x",
        "shut/": Directory(mode=0o600),
        "dark/in": "y",
        "dark/": Directory(mode=0o300),
        "theirs": File("t", mode=0o640, uid=7, gid=8),
    }
    user, superuser = MemoryBackend(seeds), MemoryBackend(seeds, uid=0)
    for path in ("/work/secret", "/work/shut/in", "/work/theirs"):
        with pytest.raises(PathDenied):
            await user.read_file(path)
        assert await superuser.read_file(path)
    with pytest.raises(PathDenied):
        await user.list_directory("/work/dark", limit=10)
    assert await user.read_file("/work/dark/in") == b"y"
    assert (await user.list_directory("/work/shut", limit=10)).total == 1
    with pytest.raises(PathDenied):
        await user.exists("/work/shut/in")
    member = MemoryBackend(seeds, uid=9, gid=8)
    assert await member.read_file("/work/theirs") == b"t"


async def test_special_files_are_refused_at_once() -> None:
    """By every way of reading."""
    backend = MemoryBackend({"p": Special("fifo"), "s": Special("socket"), "d": Special("device")})
    for name in "psd":
        for operation in (backend.access, backend.read_file, backend.detect_image_mime_type):
            with pytest.raises(NotRegularFile):
                await operation(f"/work/{name}")


async def test_a_listing_tells_kinds_links_and_broken_links_in_order() -> None:
    """Without regard to case, then by code point; the total counts what the limit cut."""
    backend = MemoryBackend(
        {
            "b": "",
            "A": "",
            "B/": None,
            "c": Symlink("b"),
            "d": Symlink("gone"),
            "e": Symlink("e"),
            "p": Special("fifo"),
        }
    )
    listing = await backend.list_directory("/work", limit=100)
    assert [(e.name, e.kind, e.link_target, e.broken) for e in listing.entries] == [
        ("A", "file", None, False),
        ("B", "directory", None, False),
        ("b", "file", None, False),
        ("c", "symlink", "b", False),
        ("d", "symlink", "gone", True),
        ("e", "symlink", "e", True),
        ("p", "fifo", None, False),
    ]
    few = await backend.list_directory("/work", limit=2)
    assert ([e.name for e in few.entries], few.total) == (["A", "B"], 7)
    with pytest.raises(PathNotDirectory):
        await backend.list_directory("/work/b", limit=1)


async def test_a_missing_name_comes_with_the_names_it_may_be() -> None:
    """Those of the nearest folder that is there."""
    backend = MemoryBackend({"src/main.py": "", "src/util.py": "", "docs/": None})
    with pytest.raises(PathNotFound) as caught:
        await backend.read_file("/work/src/mian.py")
    assert caught.value.nearest == "/work/src"
    assert caught.value.names[0] == "main.py"
    with pytest.raises(PathNotFound) as caught:
        await backend.read_file("/work/scr/deep/main.py")
    assert (caught.value.nearest, caught.value.names[0]) == ("/work", "src/")


async def test_a_folder_in_place_of_a_file_tells_what_it_holds() -> None:
    """Some names and how many there are."""
    backend = MemoryBackend({f"d/{n:02}": "" for n in range(30)} | {"d/aa/": None})
    with pytest.raises(PathIsDirectory) as caught:
        await backend.read_file("/work/d")
    assert caught.value.total == 31
    assert caught.value.names[0] == "00"


async def test_tilde_is_the_home_of_the_backend_and_errors_show_the_path_as_given() -> None:
    """Nothing of the host's home gets in."""
    backend = MemoryBackend({"~/n.txt": "n"}, home="/home/someone")
    assert await backend.read_file("~/n.txt") == b"n"
    assert await backend.is_directory("~")
    with pytest.raises(PathNotFound) as caught:
        await backend.read_file("~/m.txt")
    assert (caught.value.path, caught.value.nearest) == ("~/m.txt", "~")


async def test_exists_and_is_directory_follow_links_and_tell_nothing_from_no_folder() -> None:
    """A broken link is nothing."""
    backend = MemoryBackend({"f": "", "d/": None, "l": Symlink("d"), "x": Symlink("gone")})
    assert [await backend.exists(f"/work/{n}") for n in ("f", "d", "l", "x", "f/y")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert [await backend.is_directory(f"/work/{n}") for n in ("f", "d", "l")] == [
        False,
        True,
        True,
    ]
    with pytest.raises(PathNotFound):
        await backend.is_directory("/work/none")


async def test_lines_of_a_large_file_are_found_with_progress_on_the_loop() -> None:
    """The scan runs beside the loop; progress comes in order."""
    content = b"".join(b"line %d\n" % n for n in range(1_500_000))
    backend = MemoryBackend({"big": content})
    seen: list[Progress] = []
    window = await backend.read_lines(
        "/work/big", start=1_000_000, max_lines=2, max_bytes=1000, on_progress=seen.append
    )
    assert window.data == b"line 999999\nline 1000000\n"
    assert (window.total_lines, window.size) == (1_500_000, len(content))
    assert [p.done for p in seen] == sorted(p.done for p in seen)


async def test_making_a_folder_is_fine_twice_and_refused_over_a_file() -> None:
    """Also below a file, and over a broken link."""
    backend = MemoryBackend({"f": "", "x": Symlink("gone")})
    await backend.make_directory("/work/a/b/")
    await backend.make_directory("/work/a/b")
    assert backend.paths("a") == ["b/"]
    for path in ("/work/f", "/work/f/g"):
        with pytest.raises(PathNotDirectory):
            await backend.make_directory(path)
    with pytest.raises(PathNotFound):
        await backend.make_directory("/work/x")
    assert not backend.has("gone")


async def test_times_of_change_go_by_the_backends_clock() -> None:
    """A file's when it is written, a folder's when its names change."""
    clock = ManualClock()
    backend = MemoryBackend({"d/f": "1"}, clock=clock)
    start = backend.stat("d").mtime_ns
    clock.advance(10)
    await backend.write_file("/work/d/g", b"")
    assert backend.stat("d").mtime_ns == start + 10_000_000_000
    assert backend.stat("d/f").mtime_ns == start
    clock.advance(1)
    backend.write("d/f", "2")
    assert backend.stat("d/f").mtime_ns == start + 11_000_000_000
    assert backend.stat("d").mtime_ns == start + 10_000_000_000


async def test_a_cancelled_write_has_not_happened() -> None:
    """Cancellation comes before the effect, never in the middle."""
    backend = MemoryBackend({"f": "old"})
    with anyio.CancelScope() as scope:
        scope.cancel()
        await backend.replace_file("/work/f", b"new")
    assert scope.cancelled_caught
    assert backend.read_text("f") == "old"


async def test_a_version_that_names_no_file_is_a_change() -> None:
    """A made-up version never fits."""
    backend = MemoryBackend({"f": "1"})
    with pytest.raises(FileChanged):
        await backend.replace_file(
            "/work/f", b"2", expected=FileVersion(device=0, inode=0, digest=b"\0" * 32)
        )
    assert backend.read_text("f") == "1"
