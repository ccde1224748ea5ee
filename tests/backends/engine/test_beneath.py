"""A confined place leads nowhere but below its root, with the kernel's help and without."""

from __future__ import annotations

import ctypes
import errno
import os
import random
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backends.engine import beneath, listing, reading, writing
from backends.engine.beneath import ConfinedPlace, open_place
from backends.engine.faults import Fault
from backends.engine.finding import find
from backends.engine.grepping import grep
from backends.engine.place import Place
from backends.engine.walk import OsTree

#: Each way; both together make 5,000.
OPERATIONS = 2500


@pytest.fixture(params=["by the kernel", "step by step"], autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "step by step":
        monkeypatch.setattr(beneath, "_openat2", lambda *_: None)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A folder with a root and what is outside of it."""
    (tmp_path / "app" / "sub").mkdir(parents=True)
    (tmp_path / "app" / "a.txt").write_text("inside")
    (tmp_path / "app-evil").mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    return tmp_path


@pytest.fixture
def place(top: Path) -> Iterator[ConfinedPlace]:
    opened = ConfinedPlace(os.fsencode(top / "app"))
    yield opened
    opened.close()


def read(place: Place, path: str | Path) -> bytes:
    """Return the content of a file."""
    chunks: list[bytes] = []
    reading.read_file(place, os.fsencode(path), chunks.append, 1 << 20)
    return b"".join(chunks)


def refusal(call: Callable[..., Any], *args: Any) -> str:
    """Return the code of the fault that a call ends with."""
    with pytest.raises(Fault) as caught:
        call(*args)
    return str(caught.value.code)


def test_open_place_without_a_root_is_the_machine(top: Path) -> None:
    place = open_place()
    assert not isinstance(place, ConfinedPlace)
    assert read(place, top / "secret.txt") == b"secret"
    place.close()


def test_the_root_goes_by_its_real_name_too(top: Path) -> None:
    (top / "alias").symlink_to("app")
    place = ConfinedPlace(os.fsencode(top / "alias"))
    assert read(place, top / "alias" / "a.txt") == b"inside"
    assert read(place, top / "app" / "a.txt") == b"inside"
    assert refusal(read, place, top / "secret.txt") == "outside_root"
    place.close()


def test_a_root_that_is_moved_stays_the_same_folder(top: Path, place: ConfinedPlace) -> None:
    (top / "app").rename(top / "moved")
    (top / "app").mkdir()
    (top / "app" / "a.txt").write_text("another")
    assert read(place, top / "app" / "a.txt") == b"inside"


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("../a.txt", b"inside"),
        ("{root}/a.txt", b"inside"),
        ("{root}/sub/../a.txt", b"inside"),
        ("../sub/./../a.txt", b"inside"),
        ("../../app/a.txt", None),
        ("{root}/../app/a.txt", None),
        ("../../secret.txt", None),
        ("{root}-evil/x", None),
        ("/proc/self/root{root}/a.txt", None),
    ],
)
def test_links(top: Path, place: ConfinedPlace, target: str, text: bytes | None) -> None:
    (top / "app" / "sub" / "link").symlink_to(target.format(root=top / "app"))
    path = top / "app" / "sub" / "link"
    if text is None:
        assert refusal(read, place, path) == "outside_root"
        assert refusal(listing.is_directory, place, os.fsencode(path)) == "outside_root"
        new = writing.BytesContent(b"x")
        assert refusal(writing.replace_file, place, os.fsencode(path), new) == "outside_root"
    else:
        assert read(place, path) == text


def test_links_in_a_circle_end(top: Path, place: ConfinedPlace) -> None:
    (top / "app" / "one").symlink_to("two")
    (top / "app" / "two").symlink_to("one")
    assert refusal(read, place, top / "app" / "one") == "path"
    assert refusal(read, place, top / "app" / "one" / "x") == "path"


def test_errors_are_those_of_any_place(top: Path, place: ConfinedPlace) -> None:
    whole = open_place()
    for name in ("none", "none/x", "a.txt/x", "a.txt/", "sub", "sub/", "sub/none", "n" * 300):
        path = top / "app" / name if not name.endswith("/") else f"{top}/app/{name}"
        faults = []
        for one in (whole, place):
            with pytest.raises(Fault) as caught:
                read(one, path)
            faults.append((caught.value.code, caught.value.arguments))
        assert faults[0] == faults[1]
    whole.close()


def test_what_is_mounted_below_is_outside(top: Path, place: ConfinedPlace) -> None:
    inside = top / "app" / "mounted"
    inside.mkdir()
    if subprocess.run(["mount", "--bind", top / "app-evil", inside], check=False).returncode:
        pytest.skip("this user cannot mount")
    try:
        (top / "app-evil" / "x").write_text("secret")
        assert refusal(read, place, inside / "x") == "outside_root"
        assert refusal(listing.list_directory, place, os.fsencode(inside), 10) == "outside_root"
        tree = OsTree(place, os.fsencode(top / "app"))
        with pytest.raises(OSError, match="outside"):
            tree.scan(b"mounted")
        tree.close()
    finally:
        subprocess.run(["umount", inside], check=True)


def test_no_descriptor_is_left(top: Path, place: ConfinedPlace) -> None:
    (top / "app" / "out").symlink_to("../secret.txt")
    before = len(os.listdir("/proc/self/fd"))
    for name in ("a.txt", "none", "a.txt/x", "out", "sub/../a.txt", "../x", "sub/none/x"):
        for call in (read, lambda place, path: place.follow(os.fsencode(path))):
            try:
                found = call(place, top / "app" / name)
            except (Fault, OSError):
                continue
            if isinstance(found, tuple):
                os.close(found[0])
    assert len(os.listdir("/proc/self/fd")) == before


def exchange(one: Path, other: Path) -> None:
    """Swap two names in one moment."""
    renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    here, exchanging = -100, 2
    if renameat2(here, os.fsencode(one), here, os.fsencode(other), exchanging):
        raise OSError(ctypes.get_errno(), "renameat2")


@pytest.fixture
def swapped(top: Path) -> Iterator[Path]:
    """A root in which a folder and a file are swapped with links that lead out of it."""
    app, evil = top / "app", top / "app-evil"
    for folder, text in ((app / "d", "inside"), (evil, "secret")):
        (folder / "deep").mkdir(parents=True)
        (folder / "f").write_text(text)
        (folder / "deep" / "f").write_text(text)
    (app / "file").write_text("inside")
    (app / "links").mkdir()
    (app / "links" / "relative").symlink_to("../../app-evil")
    (app / "links" / "absolute").symlink_to(evil)
    (app / "links" / "file").symlink_to("../../secret.txt")
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            for name, link in (("d", "relative"), ("d", "absolute"), ("file", "file")):
                exchange(app / name, app / "links" / link)
                exchange(app / name, app / "links" / link)

    thread = threading.Thread(target=swap)
    thread.start()
    yield app
    ended.set()
    thread.join()


def test_swapped_folders_and_links_lead_nowhere(
    top: Path, swapped: Path, place: ConfinedPlace
) -> None:
    """Nothing outside is read, changed or made, whatever is swapped under so many operations."""
    chance = random.Random(7)
    outside = sorted(path for path in top.rglob("*") if swapped not in [path, *path.parents])
    read_inside = 0
    refusals: set[object] = set()

    def reads(name: str) -> None:
        nonlocal read_inside
        assert read(place, swapped / name) == b"inside"
        read_inside += 1

    def writes(name: str) -> None:
        content = writing.BytesContent(b"inside")
        writing.replace_file(place, os.fsencode(swapped / name), content, make_parents=True)

    def searches(name: str) -> None:
        tree = OsTree(place, os.fsencode(swapped))
        parts: list[Any] = []
        query = {"limit": 100, "timeout_s": 30.0, "pattern": "secret"}
        options = {"glob": None, "ignore_case": False, "literal": True, "context": 0}
        try:
            grep(tree, {**query, **options, "max_line_chars": 99}, parts.append)
            assert not any("matches" in part or part.get("final") for part in parts)
            find(tree, {**query, "pattern": "**/*"}, parts.append)
        finally:
            tree.close()

    def lists(name: str) -> None:
        listed = listing.list_directory(place, os.fsencode(swapped / "d"), 10)
        assert {entry[0] for entry in listed["entries"]} <= {b"f", b"deep", b"new"}

    for _ in range(OPERATIONS):
        act = chance.choice([reads, reads, writes, writes, lists, searches])
        try:
            act(chance.choice(["d/f", "d/deep/f", "file", "d/new/f"]))
        except Fault as fault:
            refusals.add(fault.code)
        except OSError as error:
            refusals.add(error.errno)
    assert refusals <= {
        *("outside_root", "not_found", "path", "changed", "not_directory"),
        *(errno.EXDEV, errno.ENOENT, errno.ELOOP, errno.ENOTDIR),
    }
    assert read_inside > 100
    assert (top / "secret.txt").read_text() == "secret"
    assert (top / "app-evil" / "f").read_text() == "secret"
    assert (top / "app-evil" / "deep" / "f").read_text() == "secret"
    assert outside == sorted(p for p in top.rglob("*") if swapped not in [p, *p.parents])
