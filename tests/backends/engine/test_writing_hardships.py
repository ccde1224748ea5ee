"""Replacing files when disks are full, users lack rights, mounts refuse and processes die."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import pytest

from backends.engine.faults import Fault
from backends.engine.place import Place
from backends.engine.writing import BytesContent, replace_file

ROOT = Path(__file__).parents[3]
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="mounting and changing users needs root")


@pytest.fixture
def place():
    place = Place()
    yield place
    place.close()


@pytest.fixture
def mount(tmp_path):
    """Mount things below tmp_path; unmounted afterwards."""
    mounted = []

    def do(*arguments):
        target = arguments[-1]
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot mount here: {done.stderr.strip()}")
        mounted.append(target)

    yield do
    for target in reversed(mounted):
        subprocess.run(["umount", target], check=True)


def put(place, path, data, **options):
    return replace_file(place, os.fsencode(path), BytesContent(data), **options)


def as_nobody(script, *arguments):
    """Run a script as an unprivileged user, with `place`, `put` and `Fault` at hand."""
    head = f"""
        import os, sys
        sys.path.insert(0, {str(ROOT)!r})
        from backends.engine.faults import Fault
        from backends.engine.place import Place
        from backends.engine.writing import BytesContent, make_directory, replace_file
        from backends.engine import listing, reading
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
        place = Place()
        def put(path, data, **options):
            try:
                return replace_file(place, os.fsencode(path), BytesContent(data), **options)
            except Fault as fault:
                return fault.code, fault.arguments[1]
        """
    done = subprocess.run(
        [sys.executable, "-B", "-c", textwrap.dedent(head) + textwrap.dedent(script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def shared_path():
    """A folder that every user can get to; pytest's own may stand below one of mode 0700."""
    path = Path(tempfile.mkdtemp(prefix="remotehands-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@needs_root
@pytest.mark.parametrize("linked", [False, True])
def test_a_full_disk_changes_nothing(place, tmp_path, mount, linked):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount("-t", "tmpfs", "-o", "size=1m", "none", str(disk))
    (disk / "f").write_bytes(b"old" * 1000)
    if linked:
        os.link(disk / "f", disk / "g")
    before = sorted(os.listdir(disk))
    for name, size in (("f", 2_000_000), ("new", 2_000_000), ("f", 20_000_000)):
        with pytest.raises(Fault) as caught:
            put(place, disk / name, b"x" * size)
        assert caught.value.code == "storage_full"
        assert sorted(os.listdir(disk)) == before
        assert (disk / "f").read_bytes() == b"old" * 1000
    assert put(place, disk / "f", b"y" * 300_000)["atomic"] is not linked
    assert (disk / "f").read_bytes() == b"y" * 300_000


@needs_root
def test_a_file_in_place_is_never_shortened_by_a_disk_that_fills_up(place, tmp_path, mount):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount("-t", "tmpfs", "-o", "size=1m", "none", str(disk))
    with open(disk / "f", "wb") as file:  # a hole that needs room once it is written
        file.truncate(500_000)
    os.link(disk / "f", disk / "g")
    (disk / "filler").write_bytes(b"z" * 800_000)
    with pytest.raises(Fault) as caught:
        put(place, disk / "f", b"x" * 400_000)
    assert caught.value.code == "storage_full"
    assert (disk / "f").read_bytes() == bytes(500_000)


def test_room_is_reserved_where_the_system_call_is_missing(place, tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate")
    (tmp_path / "f").write_bytes(b"old")
    os.link(tmp_path / "f", tmp_path / "g")
    assert put(place, tmp_path / "f", b"x" * 3_000_000)["reason"] == "hard_links"
    assert (tmp_path / "g").read_bytes() == b"x" * 3_000_000


@needs_root
def test_a_bind_mounted_file_is_written_in_place(place, tmp_path, mount):
    (tmp_path / "outside").write_bytes(b"old")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").touch()
    mount("--bind", str(tmp_path / "outside"), str(tmp_path / "d" / "f"))
    assert put(place, tmp_path / "d" / "f", b"new and longer") == {
        "created": False,
        "atomic": False,
        "reason": "mount_point",
    }
    assert (tmp_path / "outside").read_bytes() == b"new and longer"
    assert os.listdir(tmp_path / "d") == ["f"]


@needs_root
def test_a_read_only_mount_is_refused(place, tmp_path, mount):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount("-t", "tmpfs", "-o", "size=1m", "none", str(disk))
    (disk / "f").write_bytes(b"old")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for name in ("f", "new"):
        with pytest.raises(Fault) as caught:
            put(place, disk / name, b"new")
        assert caught.value.code == "denied"
        assert caught.value.arguments[1] == "Read-only file system"


@needs_root
def test_a_folder_that_takes_no_names_has_its_files_written_in_place(shared_path):
    (shared_path / "f").write_bytes(b"old")
    os.chown(shared_path / "f", 65534, 65534)
    done = as_nobody(
        "print(put(sys.argv[1] + '/f', b'new')); print(put(sys.argv[1] + '/new', b'x'))",
        str(shared_path),
    )
    assert done == [
        "{'created': False, 'atomic': False, 'reason': 'folder_not_writable'}",
        "('denied', 'Permission denied')",
    ]
    assert (shared_path / "f").read_bytes() == b"new"
    assert os.listdir(shared_path) == ["f"]


@needs_root
def test_a_file_that_may_not_be_written_is_refused_though_its_folder_takes_names(shared_path):
    os.chown(shared_path, 65534, 65534)
    for name, owner, mode in (("mine", 65534, 0o444), ("roots", 0, 0o644)):
        (shared_path / name).write_bytes(b"old")
        (shared_path / name).chmod(mode)
        os.chown(shared_path / name, owner, owner)
    done = as_nobody(
        "for name in ('mine', 'roots'): print(put(sys.argv[1] + '/' + name, b'new'))",
        str(shared_path),
    )
    assert done == ["('denied', 'Permission denied')"] * 2
    assert sorted(os.listdir(shared_path)) == ["mine", "roots"]
    assert (shared_path / "roots").read_bytes() == b"old"


@needs_root
def test_another_users_file_keeps_its_owner_by_being_written_in_place(shared_path):
    os.chown(shared_path, 65534, 65534)
    (shared_path / "f").write_bytes(b"old")
    (shared_path / "f").chmod(0o666)
    done = as_nobody("print(put(sys.argv[1] + '/f', b'new'))", str(shared_path))
    assert done == ["{'created': False, 'atomic': False, 'reason': 'owner'}"]
    assert (shared_path / "f").stat().st_uid == 0
    assert (shared_path / "f").read_bytes() == b"new"
    assert os.listdir(shared_path) == ["f"]


@needs_root
def test_anothers_file_in_a_sticky_folder_is_written_in_place(shared_path):
    shared_path.chmod(0o1777)
    (shared_path / "f").write_bytes(b"old")
    (shared_path / "f").chmod(0o666)
    done = as_nobody("print(put(sys.argv[1] + '/f', b'new')['atomic'])", str(shared_path))
    assert done == ["False"]
    assert (shared_path / "f").read_bytes() == b"new"
    assert os.listdir(shared_path) == ["f"]


@needs_root
def test_what_may_not_be_read_or_entered_is_denied(shared_path):
    (shared_path / "secret").write_bytes(b"x")
    (shared_path / "secret").chmod(0o600)
    (shared_path / "closed").mkdir(mode=0o700)
    (shared_path / "closed" / "f").touch()
    done = as_nobody(
        """
        for call in (
            lambda path: reading.access(place, path + b"/secret"),
            lambda path: reading.access(place, path + b"/closed/f"),
            lambda path: listing.list_directory(place, path + b"/closed", 9),
            lambda path: listing.exists(place, path + b"/closed/f"),
            lambda path: make_directory(place, path + b"/new"),
        ):
            try:
                print(call(os.fsencode(sys.argv[1])))
            except Fault as fault:
                print(fault.code)
        """,
        str(shared_path),
    )
    assert done == ["denied"] * 5


def test_a_killed_writer_leaves_the_old_file_or_the_new_one(tmp_path):
    """Content and length of a file prove which write it is; a mixture of two does not add up."""
    path = tmp_path / "f"
    script = f"""
        import sys
        sys.path.insert(0, {str(ROOT)!r})
        from backends.engine.place import Place
        from backends.engine.writing import replace_file
        place = Place()
        class Content:
            def __init__(self, number):
                self.number = number
                self.size = 40 * (8000 + number)
            def chunks(self):
                for _ in range(40):
                    yield b"%c" % (65 + self.number % 26) * (8000 + self.number)
        print("ready", flush=True)
        number = 0
        while True:
            replace_file(place, sys.argv[1].encode(), Content(number % 1000))
            number += 1
        """
    dice = random.Random(20)
    for _ in range(40):
        with subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", textwrap.dedent(script), str(path)],
            stdout=subprocess.PIPE,
        ) as writer:
            assert writer.stdout.readline() == b"ready\n"
            time.sleep(dice.uniform(0.0, 0.01))
            writer.send_signal(signal.SIGKILL)
        if not path.exists():
            continue
        content = path.read_bytes()
        number = len(content) // 40 - 8000
        assert len(content) % 40 == 0
        assert content == b"%c" % (65 + number % 26) * len(content)
    assert path.exists()
    others = [name for name in os.listdir(tmp_path) if name != "f"]
    assert all(name.startswith(".remotehands-") for name in others)


def test_a_reader_never_sees_half_a_file(place, tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"a" * 100_000)
    stop = threading.Event()
    torn = []

    def read():
        while not stop.is_set():
            content = path.read_bytes()
            if len(content) != 100_000 or len(set(content)) != 1:
                torn.append(content)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(200):
            put(place, path, b"%c" % (97 + number % 26) * 100_000)
    finally:
        stop.set()
        reader.join()
    assert torn == []


def test_a_name_swapped_all_the_time_leads_to_whole_files_in_the_right_place(place, tmp_path):
    """Writers race with one who swaps the name between a file and a link to another file."""
    folder, other = tmp_path / "d", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    bystander = other / "bystander"
    bystander.write_bytes(b"untouched")
    (other / "target").write_bytes(b"old")
    stop = threading.Event()

    def swap():
        turn = 0
        while not stop.is_set():
            turn += 1
            spare = folder / f"spare{turn}"
            if turn % 2:
                spare.symlink_to("../other/target")
            else:
                spare.write_bytes(b"file")
            spare.rename(folder / "x")

    swapper = threading.Thread(target=swap)
    swapper.start()
    deadline = time.monotonic() + 2
    writes, faults = 0, set()
    try:
        while time.monotonic() < deadline and writes < 500:
            try:
                put(place, folder / "x", b"n" * 5000)
                writes += 1
            except Fault as fault:
                faults.add(fault.code)
    finally:
        stop.set()
        swapper.join()
    assert writes > 10
    assert faults <= {"changed"}
    assert (other / "target").read_bytes() in (b"old", b"n" * 5000)
    assert bystander.read_bytes() == b"untouched"
    assert sorted(os.listdir(other)) == ["bystander", "target"]
    assert os.listdir(folder) == ["x"]
