"""A tar from a hostile target: nothing of it gets outside, and what cannot be is said to be so."""

from __future__ import annotations

import io
import os
import tarfile
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.workspace import Limits, NotAnArchive
from backends.workspace.archive import ArchiveReader
from backends.workspace.unpacking import FolderSink
from operations import OperationError, OutsideRoot, PathError, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Member = tuple[str, bytes | None, dict[str, Any]]


def tar(*members: Any, form: int = tarfile.GNU_FORMAT) -> bytes:
    """Return a tar of (name, content or None, attributes); folders above come by themselves."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=form) as archive:
        for name, content, attributes in members:
            info = tarfile.TarInfo(name)
            info.size = len(content or b"")
            for key, value in attributes.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(content or b""))
    return data.getvalue()


def folder(name: str, **attributes: Any) -> Member:
    return name, None, {"type": tarfile.DIRTYPE, "mode": 0o755, **attributes}


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> Member:
    return name, None, {"type": kind, "linkname": target}


def file(name: str, content: bytes = b"x", **attributes: Any) -> Member:
    return name, content, attributes


def extract(data: bytes, destination: Path, *, step: int = 1000, **limits: int) -> list[str]:
    """Extract a tar as it comes over a wire; return what was left out."""
    sink = FolderSink(str(destination))
    try:
        reader = ArchiveReader(sink, "/far", Limits(**limits))
        for at in range(0, len(data), step):
            reader.feed(data[at : at + step])
        if not reader.ended:
            raise NotAnArchive("it ended midway")
        sink.finish()
    finally:
        sink.close()
    return sink.skipped


def everything(top: Path) -> set[str]:
    return {str(path.relative_to(top)) for path in top.rglob("*")}


HOSTILE = {
    "absolute": ([file("/tmp/x")], OutsideRoot),
    "above": ([file("../x")], OutsideRoot),
    "above, later": ([folder("a"), file("a/../../x")], OutsideRoot),
    "a folder above": ([folder("../d")], OutsideRoot),
    "through a symlink": ([link("a", ".."), file("a/x")], NotAnArchive),
    "through a symlink made a folder": ([link("a", ".."), folder("a"), file("a/x")], NotAnArchive),
    "a folder made a symlink": ([folder("a"), link("a", ".."), file("a/x")], NotAnArchive),
    "over a symlink": ([link("a", "../x"), file("a")], NotAnArchive),
    "twice": ([file("a"), file("a")], NotAnArchive),
    "twice, spelled otherwise": ([folder("d"), file("d/a"), file("./d//a")], NotAnArchive),
    "in no folder": ([file("a/x")], NotAnArchive),
    "in a file": ([file("a"), file("a/x")], NotAnArchive),
    "hard link outside": ([link("a", "/etc/passwd", tarfile.LNKTYPE)], OutsideRoot),
    "hard link above": ([link("a", "../../x", tarfile.LNKTYPE)], OutsideRoot),
    "hard link to nothing": ([link("a", "b", tarfile.LNKTYPE)], NotAnArchive),
    "hard link to a folder": ([folder("d"), link("a", "d", tarfile.LNKTYPE)], NotAnArchive),
    "hard link through a symlink": (
        [link("l", "/etc"), link("a", "l/passwd", tarfile.LNKTYPE)],
        NotAnArchive,
    ),
    "the folder itself as a symlink": ([link(".", "/etc")], NotAnArchive),
    "an unknown kind": ([file("a", type=b"Z")], NotAnArchive),
    "holes": ([file("a", type=tarfile.GNUTYPE_SPARSE)], NotAnArchive),
    "a long path": ([file("a/" * 3000)], PathError),
    "an empty name": ([file("")], NotAnArchive),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_leads_outside_or_cannot_be_is_refused(name: str, tmp_path: Path) -> None:
    members, error = HOSTILE[name]
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    with pytest.raises(error):
        extract(tar(*members), inside / "out")
    assert everything(tmp_path) == {"a", "a/b"}


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ({"path": "../x"}, OutsideRoot),
        ({"path": "/x"}, OutsideRoot),
        ({"path": "a\0b"}, NotAnArchive),
        ({"linkpath": "a\0b"}, None),
        ({"size": "-1"}, NotAnArchive),
        ({"size": "9" * 30}, NotAnArchive),
        ({"GNU.sparse.major": "1"}, NotAnArchive),
        ({"mtime": "nan"}, None),
        ({"mtime": "1e300"}, None),
        ({"mtime": "soon"}, None),
    ],
)
def test_notes_by_name_are_no_way_around(
    headers: dict[str, str], error: type[Exception] | None, tmp_path: Path
) -> None:
    data = tar(file("a", pax_headers=headers), form=tarfile.PAX_FORMAT)
    if error is None:
        extract(data, tmp_path / "out")
        assert everything(tmp_path) == {"out", "out/a"}
        return
    with pytest.raises(error):
        extract(data, tmp_path / "out")
    assert everything(tmp_path) == set()


def test_a_size_that_is_a_lie_is_refused_before_a_byte_is_taken(tmp_path: Path) -> None:
    info = tarfile.TarInfo("a")
    info.size = 1 << 60
    with pytest.raises(TooLarge, match="over the limit of"):
        extract(info.tobuf(tarfile.GNU_FORMAT), tmp_path / "out")
    info.type = tarfile.DIRTYPE
    with pytest.raises(NotAnArchive):
        extract(info.tobuf(tarfile.GNU_FORMAT), tmp_path / "out")


def test_a_name_that_is_a_gigabyte_is_not_held(tmp_path: Path) -> None:
    for kind in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE):
        info = tarfile.TarInfo("././@LongLink")
        info.type, info.size = kind, 1 << 30
        with pytest.raises(NotAnArchive, match="1073741824 bytes"):
            extract(info.tobuf(tarfile.GNU_FORMAT), tmp_path / "out")


def test_devices_are_left_out_and_named(tmp_path: Path) -> None:
    kinds = (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
    members = [(f"d{number}", None, {"type": kind}) for number, kind in enumerate(kinds)]
    assert len(extract(tar(*members), tmp_path / "out")) == 3
    assert everything(tmp_path) == {"out"}


def test_dangerous_bits_are_dropped(tmp_path: Path) -> None:
    extract(tar(folder("d", mode=0o7777), file("d/a", mode=0o7777)), tmp_path / "out")
    for path in ("out", "out/d", "out/d/a"):
        assert (tmp_path / path).stat().st_mode & 0o7777 == 0o755


def test_a_symlink_keeps_its_text_wherever_it_points(tmp_path: Path) -> None:
    extract(tar(link("l", "/etc/passwd"), link("m", "l", tarfile.LNKTYPE)), tmp_path / "out")
    assert os.readlink(tmp_path / "out/l") == os.readlink(tmp_path / "out/m") == "/etc/passwd"


@pytest.mark.parametrize("step", [1, 511, 512, 1 << 20])
@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_format_is_read_however_it_is_cut(step: int, form: int, tmp_path: Path) -> None:
    long = "n" * 120 + "/" + "m" * 90
    data = tar(
        folder("./"),
        folder("n" * 120),
        file(long, b"y" * 700, mtime=1_000_000_000),
        file("empty", b""),
        link("hard", long if form != tarfile.USTAR_FORMAT else "empty", tarfile.LNKTYPE),
        form=form,
    )
    extract(data, tmp_path / "out", step=step)
    assert (tmp_path / "out" / long).read_bytes() == b"y" * 700
    assert (tmp_path / "out" / long).stat().st_mtime == 1_000_000_000
    assert (tmp_path / "out/hard").stat().st_nlink == 2


def test_an_archive_that_ends_midway_leaves_nothing(tmp_path: Path) -> None:
    data = tar(folder("d", mode=0), file("d/a", b"z" * 5000))
    for size in (0, 100, 512, 1500, 6000):
        with pytest.raises(NotAnArchive):
            extract(data[:size], tmp_path / "out")
        assert everything(tmp_path) == set()


MEMBERS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "a/b", "./a", "../a", "/a", "a/..", "A", "a/b/c", "", "a\0"]),
        st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE]),
        st.sampled_from(["..", ".", "a", "b", "/tmp", "a/b", "../.."]),
    ),
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(members=MEMBERS, noise=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255))))
def test_nothing_gets_outside_and_every_error_is_ours(
    tmp_path_factory: pytest.TempPathFactory, members: Any, noise: Any
) -> None:
    top = tmp_path_factory.mktemp("top")
    (top / "guard").write_text("guard")
    entries = [
        (name, b"content" if kind == tarfile.REGTYPE else None, {"type": kind, "linkname": target})
        for name, kind, target in members
    ]
    data = bytearray(tar(*entries))
    for at, byte in noise:
        if at < len(data):
            data[at] = byte
    try:
        extract(bytes(data), top / "out", max_bytes=1 << 20)
    except OperationError:
        assert everything(top) == {"guard"}
    assert {path.name for path in top.iterdir()} <= {"guard", "out"}
    assert (top / "guard").read_text() == "guard"


@pytest.mark.parametrize(
    "make", [os.urandom, lambda size: b"\xff" * size, lambda size: b"7" * size]
)
def test_noise_is_no_archive(make: Callable[[int], bytes], tmp_path: Path) -> None:
    with pytest.raises(NotAnArchive):
        extract(make(100_000), tmp_path / "out")


@pytest.mark.parametrize("notes", [17, 1000])
def test_notes_without_an_entry_have_an_end(notes: int, tmp_path: Path) -> None:
    info = tarfile.TarInfo("note")
    info.type, info.size = b"x", 512
    note = info.tobuf() + b"512 comment=".ljust(511, b"x") + b"\n"
    with pytest.raises(NotAnArchive, match="notes"):
        extract(note * notes, tmp_path / "out")
    assert everything(tmp_path) == set()


def test_a_note_of_many_records_takes_no_long_time(tmp_path: Path) -> None:
    info = tarfile.TarInfo("note")
    content = b"5 a=\n" * 200_000
    info.type, info.size = b"x", len(content)
    note = info.tobuf() + content + bytes(-len(content) % 512)
    started = time.process_time()
    extract(note + tar(file("f")), tmp_path / "out", step=1 << 20)
    assert time.process_time() - started < 3.0  # it took 8 s to copy the rest for each


def test_a_failure_removes_a_tree_deeper_than_any_recursion(tmp_path: Path) -> None:
    folders = [folder("d/" * depth) for depth in range(1, 1500)]
    deepest = "d/" * 1499
    with pytest.raises(OutsideRoot):
        extract(tar(*folders, file(deepest + "f"), file("../x")), tmp_path / "out", step=1 << 16)
    assert os.listdir(tmp_path) == []
