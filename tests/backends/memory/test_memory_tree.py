"""The filesystem in memory answers as a Linux kernel does."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from backends.memory import Directory, File, MemoryBackend, Special, Symlink

if TYPE_CHECKING:
    from pathlib import Path


def test_seeds_are_files_folders_links_with_what_was_said_about_them() -> None:
    """A mapping becomes a tree under cwd; the rest is under its own path."""
    backend = MemoryBackend(
        {
            "src/a.py": "h\u00e9\n",
            "data.bin": b"\x00\xff",
            "empty/": None,
            "also-empty": None,
            "run.sh": File("#!/bin/sh\n", mode=0o755, mtime_ns=5),
            "link": Symlink("src/a.py"),
            "/etc/hosts": "127.0.0.1 localhost\n",
            "~/notes.txt": "n",
            "pipe": Special("fifo"),
            "locked/": Directory(mode=0o500),
            "locked/in": "x",
        }
    )
    assert backend.snapshot() == {
        "also-empty/": None,
        "data.bin": b"\x00\xff",
        "empty/": None,
        "link": Symlink("src/a.py"),
        "locked/": None,
        "locked/in": b"x",
        "pipe": Special("fifo"),
        "run.sh": b"#!/bin/sh\n",
        "src/": None,
        "src/a.py": "h\u00e9\n".encode(),
    }
    assert backend.read_text("/etc/hosts") == "127.0.0.1 localhost\n"
    assert backend.read_text("/home/user/notes.txt") == "n"
    assert (backend.stat("run.sh").mode, backend.stat("run.sh").mtime_ns) == (0o755, 5)
    assert backend.stat("locked").mode == 0o500
    assert backend.stat("src/a.py").mode == 0o644
    assert backend.stat("src").mode == 0o755


def test_a_snapshot_seeds_an_equal_tree() -> None:
    """What `snapshot` tells can be given to a new backend."""
    first = MemoryBackend({"a/b": b"1", "l": Symlink("nowhere"), "d/": None, "p": Special("fifo")})
    assert MemoryBackend(first.snapshot()).snapshot() == first.snapshot()


def test_the_umask_takes_bits_from_new_things_only() -> None:
    """Modes that are given are kept as they are."""
    backend = MemoryBackend({"a": "", "d/b": "", "s": File("", mode=0o777)}, umask=0o077)
    modes = [backend.stat(path).mode for path in ("a", "d", "d/b", "s")]
    assert modes == [0o600, 0o700, 0o600, 0o777]


@pytest.mark.parametrize(
    ("seeds", "error"),
    [
        ({"a": "", "a/b": ""}, NotADirectoryError),
        ({"a/b": "", "a": "text"}, IsADirectoryError),
        ({"a/": "text"}, ValueError),
        ({"a\0b": "text"}, ValueError),
    ],
)
def test_seeds_that_cannot_be_together_are_refused(
    seeds: dict[str, str], error: type[Exception]
) -> None:
    """A file and a folder of one name, a file that is named as a folder."""
    with pytest.raises(error):
        MemoryBackend(seeds)


@pytest.mark.parametrize("name", ["cwd", "home"])
def test_cwd_and_home_have_to_be_absolute(name: str) -> None:
    """A relative one would mean nothing."""
    with pytest.raises(ValueError, match=name):
        MemoryBackend(**{name: "relative"})  # type: ignore[arg-type]


def test_dot_dot_after_a_link_leads_from_where_the_link_points() -> None:
    """The kernel resolves names one by one; text is never shortened."""
    backend = MemoryBackend(
        {"a/b/deep/": None, "a/b/f": "right", "f": "wrong", "l": Symlink("a/b/deep")}
    )
    assert backend.read_text("l/../f") == "right"
    assert backend.read_text("a/b/../../f") == "wrong"
    assert backend.read_text("/../../work/./f") == "wrong"


def test_relative_links_are_against_their_own_folder_and_absolute_ones_against_the_root() -> None:
    """Chains of both kinds are followed."""
    backend = MemoryBackend(
        {
            "real/t.txt": "one",
            "sub/rel": Symlink("../real/t.txt"),
            "sub/abs": Symlink("/work/sub/rel"),
            "top": Symlink("sub/abs"),
        }
    )
    assert backend.read_text("top") == "one"
    assert backend.readlink("sub/abs") == "/work/sub/rel"


def test_forty_links_are_followed_and_one_more_is_a_loop() -> None:
    """As many as Linux follows."""
    backend = MemoryBackend({"0": "end"})
    for number in range(1, 42):
        backend.symlink(str(number - 1), str(number))
    assert backend.read_text("40") == "end"
    with pytest.raises(OSError) as caught:  # noqa: PT011
        backend.read_text("41")
    assert caught.value.errno == errno.ELOOP


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("missing", errno.ENOENT),
        ("missing/..", errno.ENOENT),
        ("f/", errno.ENOTDIR),
        ("f/x", errno.ENOTDIR),
        ("f/..", errno.ENOTDIR),
        ("dangling", errno.ENOENT),
        ("dangling/x", errno.ENOENT),
        ("loop", errno.ELOOP),
        ("x" * 256, errno.ENAMETOOLONG),
        ("/".join(["x"] * 3000), errno.ENAMETOOLONG),
    ],
)
def test_what_cannot_be_resolved_has_the_kernels_errno_and_names_the_path(
    path: str, number: int
) -> None:
    """The path stands in the error as it was given."""
    backend = MemoryBackend({"f": "", "dangling": Symlink("gone"), "loop": Symlink("loop")})
    with pytest.raises(OSError) as caught:  # noqa: PT011
        backend.stat(path)
    assert (caught.value.errno, caught.value.filename) == (number, path)


def test_names_of_255_bytes_and_of_bytes_that_are_not_utf_8_are_names() -> None:
    """Lone surrogates stand for the bytes."""
    long, odd = "é" * 127 + "x", os.fsdecode(b"caf\xe9")
    backend = MemoryBackend({long: "1", odd: "2"})
    assert backend.names() == sorted([long, odd])
    assert backend.read_text(odd) == "2"


def test_a_hard_link_is_the_same_file_until_one_name_is_removed() -> None:
    """Content, mode and number are shared, and the count of names is kept."""
    backend = MemoryBackend({"a": "1"})
    backend.link("a", "b")
    backend.write("b", "2")
    assert backend.read_text("a") == "2"
    assert backend.stat("a") == backend.stat("b")
    assert backend.stat("a").links == 2
    backend.remove("a")
    assert backend.stat("b").links == 1


def test_a_folder_takes_no_hard_link() -> None:
    """As on Linux."""
    with pytest.raises(PermissionError):
        MemoryBackend({"d/": None}).link("d", "e")


def test_remove_takes_a_link_itself_and_a_folder_with_all_below_it() -> None:
    """What a link points to stays; a file that has another name elsewhere does too."""
    backend = MemoryBackend({"d/x/f": "1", "l": Symlink("d")})
    backend.link("d/x/f", "kept")
    backend.remove("l")
    assert backend.has("d/x/f")
    backend.remove("d")
    assert backend.paths() == ["kept"]
    assert backend.stat("kept").links == 1
    with pytest.raises(FileNotFoundError):
        backend.remove("d")


def test_rename_moves_replaces_and_refuses_as_rename_does() -> None:
    """Into itself, over a folder that is not empty, over the other kind: no."""
    backend = MemoryBackend({"a": "1", "b": "2", "d/x": "3", "e/": None, "g/y": "4"})
    backend.rename("a", "b")
    assert (backend.read_text("b"), backend.has("a")) == ("1", False)
    backend.rename("d", "e")
    assert backend.read_text("e/x") == "3"
    for old, new, number in (
        ("e", "e/inner", errno.EINVAL),
        ("e", "g", errno.ENOTEMPTY),
        ("b", "g", errno.EISDIR),
        ("g", "b", errno.ENOTDIR),
    ):
        with pytest.raises(OSError) as caught:  # noqa: PT011
            backend.rename(old, new)
        assert caught.value.errno == number


def test_writing_by_hand_keeps_the_file_and_follows_links() -> None:
    """It is what `open(path, "wb")` does."""
    backend = MemoryBackend(
        {"f": File("1", mode=0o600), "l": Symlink("f"), "new": Symlink("d/made")}
    )
    inode = backend.stat("f").inode
    backend.write("l", "2")
    assert (backend.read_text("f"), backend.stat("f").inode) == ("2", inode)
    assert backend.stat("f").mode == 0o600
    backend.mkdir("d")
    backend.write("new", "3", mode=0o755)
    assert (backend.read_text("d/made"), backend.stat("d/made").mode) == ("3", 0o755)


def test_from_directory_copies_a_real_folder_and_says_what_it_left_out(tmp_path: Path) -> None:
    """Modes, times, symlinks and hard links are kept; the real folder is not touched later."""
    (tmp_path / "src").mkdir(mode=0o750)
    script = tmp_path / "src" / "run.sh"
    script.write_bytes(b"#!/bin/sh\n")
    script.chmod(0o755)
    os.utime(script, ns=(1, 1_234_567_890))
    (tmp_path / "same").hardlink_to(script)
    (tmp_path / "link").symlink_to("src/run.sh")
    (tmp_path / "gone").symlink_to("/no/such/file")
    os.mkfifo(tmp_path / "pipe")
    odd = os.fsencode(tmp_path) + b"/caf\xe9"
    with open(odd, "wb") as stream:
        stream.write(b"odd")
    os.utime(tmp_path / "src", ns=(2, 2_000_000_000))

    backend = MemoryBackend.from_directory(tmp_path, {"more.txt": "m"}, cwd="/repo")

    assert backend.skipped == ("pipe: not a regular file, folder or symlink",)
    assert backend.snapshot() == {
        os.fsdecode(b"caf\xe9"): b"odd",
        "gone": Symlink("/no/such/file"),
        "link": Symlink("src/run.sh"),
        "more.txt": b"m",
        "same": b"#!/bin/sh\n",
        "src/": None,
        "src/run.sh": b"#!/bin/sh\n",
    }
    assert backend.stat("src/run.sh").mode == 0o755
    assert backend.stat("src/run.sh").mtime_ns == 1_234_567_890
    assert backend.stat("src/run.sh").inode == backend.stat("same").inode
    assert (backend.stat("src").mode, backend.stat("src").mtime_ns) == (0o750, 2_000_000_000)
    backend.write("src/run.sh", "changed")
    assert script.read_bytes() == b"#!/bin/sh\n"


def test_from_directory_of_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    """Nothing is made up."""
    with pytest.raises(FileNotFoundError):
        MemoryBackend.from_directory(tmp_path / "missing")


def test_every_backend_is_a_machine_of_its_own() -> None:
    """Queues and versions never take one tree for another."""
    one, two = MemoryBackend(), MemoryBackend()
    assert one.facts.machine_id != two.facts.machine_id
    assert one.facts.machine_id == one.facts.machine_id
    assert (one.facts.platform, one.facts.shell) == ("memory", "bash")


def test_a_modification_time_can_be_set():
    """For tests of what goes by times; as with utime(2), the content stays."""
    backend = MemoryBackend({"a": "x"})
    backend.set_mtime("a", 5)
    assert (backend.stat("a").mtime_ns, backend.read_text("a")) == (5, "x")
