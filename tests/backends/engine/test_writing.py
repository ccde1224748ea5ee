"""Replacing files: what is kept, what is refused, and how it is written."""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import stat
import threading

import pytest

from backends.engine.faults import Fault
from backends.engine.place import Place
from backends.engine.writing import BytesContent, make_directory, replace_file

ATOMIC = {"created": False, "atomic": True, "reason": None}
CREATED = {"created": True, "atomic": True, "reason": None}


@pytest.fixture
def place():
    place = Place()
    yield place
    place.close()


def put(place, path, data, **options):
    content = data if hasattr(data, "chunks") else BytesContent(data)
    return replace_file(place, os.fsencode(path), content, **options)


def fault_of(place, path, data=b"new", **options):
    with pytest.raises(Fault) as caught:
        put(place, path, data, **options)
    return caught.value


def version_of(path):
    status = os.stat(path)
    with open(path, "rb") as file:
        return [status.st_dev, status.st_ino, hashlib.sha256(file.read()).digest()]


def left_over(folder):
    return [name for _, _, names in os.walk(folder) for name in names if "remotehands" in name]


class Acting:
    """Content that does something just before its last byte arrives."""

    def __init__(self, data, act):
        self.size = len(data)
        self._data = data
        self._act = act

    def chunks(self):
        yield self._data[:-1]
        self._act()
        yield self._data[-1:]


def test_a_new_file_gets_the_mode_that_the_umask_leaves(place, tmp_path):
    plain = tmp_path / "plain"
    plain.touch()
    assert put(place, tmp_path / "f", b"x\n") == CREATED
    assert (tmp_path / "f").read_bytes() == b"x\n"
    assert (tmp_path / "f").stat().st_mode == plain.stat().st_mode


def test_an_empty_file_can_be_written(place, tmp_path):
    (tmp_path / "f").write_bytes(b"old")
    assert put(place, tmp_path / "f", b"") == ATOMIC
    assert (tmp_path / "f").read_bytes() == b""


@pytest.mark.parametrize("mode", [0o755, 0o640, 0o600, 0o400 | 0o200, 0o4755, 0o2755])
def test_the_mode_is_kept(place, tmp_path, mode):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(mode)
    assert put(place, path, b"new") == ATOMIC
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_owner_and_group_are_kept(place, tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(0o640)
    os.chown(path, 1234, 2345)
    assert put(place, path, b"new") == ATOMIC
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 2345, 0o640)


def test_extended_attributes_are_kept(place, tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("the file system has no extended attributes")
    assert put(place, path, b"new") == ATOMIC
    assert os.getxattr(path, "user.note") == b"kept"


def test_an_access_control_list_is_kept_and_a_folder_default_does_not_leak_in(place, tmp_path):
    # Version 2; user::rw-, user:1234:r--, group::r--, mask::r--, other::---
    entries = [(1, 6, 0xFFFFFFFF), (2, 4, 1234), (4, 4, 0xFFFFFFFF), (16, 4, 0xFFFFFFFF)]
    entries.append((32, 0, 0xFFFFFFFF))
    acl = (2).to_bytes(4, "little") + b"".join(
        tag.to_bytes(2, "little") + rights.to_bytes(2, "little") + who.to_bytes(4, "little")
        for tag, rights, who in entries
    )
    listed, plain = tmp_path / "listed", tmp_path / "plain"
    listed.touch()
    plain.touch()
    try:
        os.setxattr(listed, "system.posix_acl_access", acl)
        os.setxattr(tmp_path, "system.posix_acl_default", acl)
    except OSError:
        pytest.skip("the file system has no access control lists")
    modes = [listed.stat().st_mode, plain.stat().st_mode]
    assert put(place, listed, b"new") == ATOMIC
    assert put(place, plain, b"new") == ATOMIC
    assert os.getxattr(listed, "system.posix_acl_access") == acl
    assert "system.posix_acl_access" not in os.listxattr(plain)
    assert [listed.stat().st_mode, plain.stat().st_mode] == modes


@pytest.mark.parametrize("text", ["real/t", "other", "{}/real/t"])
def test_a_symlink_stays_and_its_target_is_replaced(place, tmp_path, text):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "t").write_bytes(b"old")
    (tmp_path / "other").symlink_to("real/../real/t")
    (tmp_path / "link").symlink_to(text.format(tmp_path))
    assert put(place, tmp_path / "link", b"new") == ATOMIC
    assert (tmp_path / "link").is_symlink()
    assert not (tmp_path / "real" / "t").is_symlink()
    assert (tmp_path / "real" / "t").read_bytes() == b"new"


def test_a_dangling_symlink_gets_its_target_created(place, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "link").symlink_to("d/t")
    assert put(place, tmp_path / "link", b"new") == CREATED
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "d" / "t").read_bytes() == b"new"


def test_a_loop_of_symlinks_is_refused(place, tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    fault = fault_of(place, tmp_path / "a")
    assert (fault.code, fault.arguments[1]) == ("path", "too many levels of symbolic links")


@pytest.mark.skipif(os.getuid() != 0, reason="needs a link of another user")
def test_another_users_link_in_a_shared_folder_is_not_followed(place, tmp_path):
    (tmp_path / "secret").write_bytes(b"old")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "out").symlink_to(tmp_path / "secret")
    os.lchown(shared / "out", 1234, 1234)
    assert fault_of(place, shared / "out").code == "denied"
    assert (tmp_path / "secret").read_bytes() == b"old"


def test_hard_links_are_written_in_place_and_stay_one_file(place, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"a longer old content")
    two.hardlink_to(one)
    in_place = {"created": False, "atomic": False, "reason": "hard_links"}
    assert put(place, one, b"new") == in_place
    assert two.read_bytes() == b"new"
    assert put(place, two, b"longer than before") == in_place
    assert one.read_bytes() == b"longer than before"
    assert one.stat().st_ino == two.stat().st_ino


def test_content_beyond_memory_is_written_in_place_too(place, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"old")
    two.hardlink_to(one)
    block = os.urandom(1 << 20)

    class Large:
        size = 20 << 20

        def chunks(self):
            yield from [block] * 20

    put(place, one, Large())
    assert two.read_bytes() == block * 20
    assert left_over(tmp_path) == []


def test_missing_folders_are_made_only_when_asked(place, tmp_path):
    path = tmp_path.joinpath(*"abcdefghij", "f")
    fault = fault_of(place, path)
    assert (fault.code, fault.arguments[1]) == ("not_found", os.fsencode(tmp_path))
    assert list(tmp_path.iterdir()) == []
    assert put(place, path, b"x", make_parents=True) == CREATED
    assert path.read_bytes() == b"x"


@pytest.mark.parametrize("name", [".", "d", "d/", "f/", "missing/", "d/.", "to_d"])
@pytest.mark.parametrize("make_parents", [False, True])
def test_a_folder_is_refused(place, tmp_path, name, make_parents):
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "to_d").symlink_to("d")
    before = sorted(os.listdir(tmp_path))
    fault = fault_of(place, f"{tmp_path}/{name}", make_parents=make_parents)
    assert fault.code == "is_directory"
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "f").read_bytes() == b"old"


@pytest.mark.parametrize("make_parents", [False, True])
@pytest.mark.parametrize("name", ["f/x", "f/x/y"])
def test_a_file_used_as_a_folder_is_refused(place, tmp_path, make_parents, name):
    (tmp_path / "f").write_bytes(b"old")
    fault = fault_of(place, tmp_path / name, make_parents=make_parents)
    assert (fault.code, fault.arguments[1]) == (
        "not_directory",
        f"{tmp_path}/f is a file, not a folder",
    )
    assert (tmp_path / "f").read_bytes() == b"old"


def test_a_fifo_and_a_device_are_refused_at_once(place, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "null").symlink_to("/dev/null")
    assert fault_of(place, tmp_path / "fifo").arguments[1] == "is a FIFO"
    assert fault_of(place, tmp_path / "null").arguments[1] == "is a character device"
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)


def test_a_socket_is_refused(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
    assert fault_of(place, tmp_path / "s").arguments[1] == "is a socket"


@pytest.mark.parametrize(
    ("path", "code"),
    [(b"", "path"), (b"/a\0b", "path"), (b"rel", "path"), (b"/" + b"x" * 256, "path")],
)
def test_paths_that_no_file_can_have_are_refused(place, path, code):
    assert fault_of(place, path, make_parents=True).code == code


def test_content_that_breaks_off_changes_nothing(place, tmp_path):
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "g").hardlink_to(tmp_path / "f")

    def abort():
        raise Fault("cancelled")

    for name in ("f", "new"):
        assert fault_of(place, tmp_path / name, Acting(b"x" * 100, abort)).code == "cancelled"
    (tmp_path / "g").unlink()
    assert fault_of(place, tmp_path / "f", Acting(b"x" * 100, abort)).code == "cancelled"
    assert os.listdir(tmp_path) == ["f"]
    assert (tmp_path / "f").read_bytes() == b"old"


def test_content_shorter_than_announced_changes_nothing(place, tmp_path):
    content = BytesContent(b"four")
    content.size = 5
    assert fault_of(place, tmp_path / "f", content).code == "bad_request"
    assert os.listdir(tmp_path) == []


def test_the_expected_version_is_written_over(place, tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    assert put(place, path, b"new", expected=version_of(path)) == ATOMIC
    os.link(path, tmp_path / "g")
    assert put(place, path, b"newer", expected=version_of(path))["atomic"] is False
    assert path.read_bytes() == b"newer"


@pytest.mark.parametrize("change", ["content", "file", "gone", "folder_gone"])
def test_another_version_is_not_written_over(place, tmp_path, change):
    folder = tmp_path / "d"
    folder.mkdir()
    path = folder / "f"
    path.write_bytes(b"old")
    expected = version_of(path)
    if change == "content":
        path.write_bytes(b"odd")
    elif change == "file":
        (folder / "g").write_bytes(b"old")
        (folder / "g").rename(path)
    else:
        path.unlink()
        if change == "folder_gone":
            folder.rmdir()
    before = path.read_bytes() if path.exists() else None
    fault = fault_of(place, path, expected=expected, make_parents=True)
    assert (fault.code, fault.arguments) == ("changed", [os.fsencode(path)])
    assert (path.read_bytes() if path.exists() else None) == before
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("linked", [False, True])
def test_a_change_while_the_content_arrives_is_seen(place, tmp_path, linked):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    if linked:
        os.link(path, tmp_path / "g")
    content = Acting(b"new", lambda: path.write_bytes(b"foreign"))
    assert fault_of(place, path, content, expected=version_of(path)).code == "changed"
    assert path.read_bytes() == b"foreign"


@pytest.mark.parametrize("linked", [False, True])
def test_the_same_content_in_another_file_is_another_version(place, tmp_path, linked):
    path, twin = tmp_path / "f", tmp_path / "twin"
    for each in (path, twin):
        each.write_bytes(b"old")
    if linked:
        os.link(path, tmp_path / "g")
    content = Acting(b"new", lambda: twin.rename(path))
    assert fault_of(place, path, content, expected=version_of(path)).code == "changed"
    assert path.read_bytes() == b"old"


def test_content_is_not_even_asked_for_when_the_file_is_another_already(place, tmp_path):
    class Untouched:
        size = 5

        def chunks(self):
            raise AssertionError

    (tmp_path / "f").write_bytes(b"old")
    assert fault_of(place, tmp_path / "f", Untouched(), expected=[1, 2, b"3"]).code == "changed"
    assert fault_of(place, tmp_path, Untouched()).code == "is_directory"


@pytest.mark.parametrize("alias", ["same", "symlink", "hard_link"])
def test_of_many_writers_who_expect_one_version_exactly_one_wins(place, tmp_path, alias):
    path, other = tmp_path / "f", tmp_path / "other"
    path.write_bytes(b"old")
    if alias == "symlink":
        other.symlink_to("f")
    elif alias == "hard_link":
        os.link(path, other)
    else:
        other = path
    expected = version_of(path)
    together = threading.Barrier(8)
    outcomes = []

    def write(number):
        content = Acting(b"%d" % number * 50_000, together.wait)
        try:
            put(place, [path, other][number % 2], content, expected=expected)
            outcomes.append(number)
        except Fault as fault:
            outcomes.append(fault.code)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [outcome for outcome in outcomes if outcome != "changed"]
    assert len(outcomes) == 8
    assert len(winners) == 1
    assert path.read_bytes() == b"%d" % winners[0] * 50_000
    assert left_over(tmp_path) == []


def test_durable_syncs_the_file_before_the_rename_and_the_folder_after(
    place, tmp_path, monkeypatch
):
    done = []
    fsync, rename = os.fsync, os.rename

    def noting_fsync(fd):
        done.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")
        fsync(fd)

    def noting_rename(*args, **options):
        done.append("rename")
        rename(*args, **options)

    monkeypatch.setattr(os, "fsync", noting_fsync)
    monkeypatch.setattr(os, "rename", noting_rename)
    put(place, tmp_path / "f", b"x", durable=True)
    assert done == ["file", "rename", "folder"]
    del done[:]
    os.link(tmp_path / "f", tmp_path / "g")
    put(place, tmp_path / "f", b"y", durable=True)
    assert done == ["file"]


@pytest.mark.parametrize("error", [errno.EBUSY, errno.EXDEV])
def test_where_no_rename_is_possible_the_file_is_written_in_place(
    place, tmp_path, monkeypatch, error
):
    def refuse(*_args, **_options):
        raise OSError(error, os.strerror(error))

    path = tmp_path / "f"
    path.write_bytes(b"old and longer")
    inode = path.stat().st_ino
    monkeypatch.setattr(os, "rename", refuse)
    assert put(place, path, b"new") == {
        "created": False,
        "atomic": False,
        "reason": "mount_point",
    }
    assert (path.read_bytes(), path.stat().st_ino) == (b"new", inode)
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("linked", [False, True])
def test_a_file_swapped_for_a_symlink_meanwhile_is_not_written_through(place, tmp_path, linked):
    victim, path = tmp_path / "victim", tmp_path / "f"
    victim.write_bytes(b"victim")
    path.write_bytes(b"old")

    def swap():
        path.unlink()
        path.symlink_to(victim)

    if linked:
        os.link(path, tmp_path / "g")
        assert fault_of(place, path, Acting(b"new", swap)).code == "changed"
        assert (tmp_path / "g").read_bytes() == b"old"
    else:
        assert put(place, path, Acting(b"new", swap)) == ATOMIC
        assert path.read_bytes() == b"new"
    assert victim.read_bytes() == b"victim"
    assert left_over(tmp_path) == []


def test_a_folder_swapped_for_a_symlink_meanwhile_is_not_written_through(place, tmp_path):
    folder, elsewhere = tmp_path / "d", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (elsewhere / "f").write_bytes(b"victim")

    def swap():
        folder.rename(tmp_path / "moved")
        folder.symlink_to(elsewhere)

    assert put(place, folder / "f", Acting(b"new", swap)) == CREATED
    assert (elsewhere / "f").read_bytes() == b"victim"
    assert (tmp_path / "moved" / "f").read_bytes() == b"new"


def test_a_folder_removed_meanwhile_is_an_error(place, tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()

    def remove():
        for name in os.listdir(folder):
            (folder / name).unlink()
        folder.rmdir()

    assert fault_of(place, folder / "f", Acting(b"new", remove)).code == "not_found"


def test_a_file_deleted_meanwhile_comes_back_with_its_mode(place, tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(0o755)
    assert put(place, path, Acting(b"new", path.unlink)) == CREATED
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_an_executable_that_runs_can_be_replaced(place, tmp_path):
    # Opening it for writing would be ETXTBSY; simulated, since only the open can fail.
    path = tmp_path / "f"
    path.write_bytes(b"old")
    real = os.open

    def busy(name, flags, *args, **options):
        if flags & os.O_WRONLY and name == b"f":
            raise OSError(errno.ETXTBSY, os.strerror(errno.ETXTBSY))
        return real(name, flags, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", busy)
        assert put(place, path, b"new") == ATOMIC


def test_folders_are_made_with_those_above(place, tmp_path):
    make_directory(place, os.fsencode(tmp_path / "a" / "b" / "c"))
    make_directory(place, os.fsencode(tmp_path / "a" / "b" / "c") + b"/")
    (tmp_path / "link").symlink_to("a")
    make_directory(place, os.fsencode(tmp_path / "link" / "d"))
    assert (tmp_path / "a" / "b" / "c").is_dir()
    assert (tmp_path / "a" / "d").is_dir()


@pytest.mark.parametrize(("name", "detail"), [("f", ""), ("f/x", "{}/f is a file, not a folder")])
def test_a_folder_is_not_made_where_a_file_is(place, tmp_path, name, detail):
    (tmp_path / "f").touch()
    with pytest.raises(Fault) as caught:
        make_directory(place, os.fsencode(tmp_path / name))
    assert caught.value.code == "not_directory"
    assert caught.value.arguments[1] == detail.format(tmp_path)


def test_no_descriptor_and_no_lock_is_left(place, tmp_path):
    from backends.engine import writing

    (tmp_path / "f").write_bytes(b"old")
    os.link(tmp_path / "f", tmp_path / "g")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        put(place, tmp_path / "f", b"x", durable=True)
        put(place, tmp_path / "n", b"x", durable=True)
        fault_of(place, tmp_path, b"x")
        fault_of(place, tmp_path / "n" / "x")
        fault_of(place, tmp_path / "n", b"x", expected=[1, 2, b"3"])
    assert len(os.listdir("/proc/self/fd")) == before
    assert writing._locks == {}
