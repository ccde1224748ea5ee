"""Listing folders."""

from __future__ import annotations

import os
import socket

import pytest

from backends.engine.faults import Fault
from backends.engine.listing import exists, is_directory, list_directory
from backends.engine.place import Place


@pytest.fixture
def place():
    place = Place()
    yield place
    place.close()


def test_every_kind_is_told_in_order_without_regard_to_case(place, tmp_path, monkeypatch):
    (tmp_path / "b").mkdir()
    (tmp_path / "A").touch()
    (tmp_path / "a").touch()
    (tmp_path / ".hidden").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "good").symlink_to("b")
    (tmp_path / "bad").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.chdir(tmp_path)
    server = socket.socket(socket.AF_UNIX)
    server.bind("sock")
    server.close()
    listed = list_directory(place, os.fsencode(tmp_path), 100)
    assert listed == {
        "total": 9,
        "entries": [
            [b".hidden", "file", None, False],
            [b"A", "file", None, False],
            [b"a", "file", None, False],
            [b"b", "directory", None, False],
            [b"bad", "symlink", b"nowhere", True],
            [b"good", "symlink", b"b", False],
            [b"loop", "symlink", b"loop", True],
            [b"pipe", "fifo", None, False],
            [b"sock", "socket", None, False],
        ],
    }


def test_devices_are_told(place):
    kinds = {name: kind for name, kind, _, _ in list_directory(place, b"/dev", 10000)["entries"]}
    assert kinds[b"null"] == "device"


def test_the_limit_keeps_the_first_ones_and_the_total(place, tmp_path):
    for number in range(30):
        (tmp_path / f"n{number:02}").touch()
    listed = list_directory(place, os.fsencode(tmp_path), 2)
    assert listed["total"] == 30
    assert [entry[0] for entry in listed["entries"]] == [b"n00", b"n01"]


def test_names_that_are_not_utf8_come_as_they_are(place, tmp_path):
    with open(os.fsencode(tmp_path) + b"/\xff\n", "w"):
        pass
    assert list_directory(place, os.fsencode(tmp_path), 9)["entries"][0][0] == b"\xff\n"


def test_a_link_to_a_folder_can_be_listed(place, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x").touch()
    (tmp_path / "link").symlink_to("d")
    assert list_directory(place, os.fsencode(tmp_path / "link"), 9)["total"] == 1


@pytest.mark.parametrize("make", ["touch", "fifo"])
def test_what_is_not_a_folder_is_refused_at_once(place, tmp_path, make):
    path = tmp_path / "f"
    os.mkfifo(path) if make == "fifo" else path.touch()
    with pytest.raises(Fault) as caught:
        list_directory(place, os.fsencode(path), 9)
    assert (caught.value.code, caught.value.arguments[1]) == ("not_directory", "")


def test_exists_follows_links(place, tmp_path):
    (tmp_path / "f").touch()
    (tmp_path / "good").symlink_to("f")
    (tmp_path / "bad").symlink_to("gone")
    found = {
        name: exists(place, os.fsencode(tmp_path / name))
        for name in ("f", "good", "bad", "x", "f/x")
    }
    assert found == {"f": True, "good": True, "bad": False, "x": False, "f/x": False}


def test_is_directory_follows_links(place, tmp_path):
    (tmp_path / "f").touch()
    (tmp_path / "link").symlink_to(".")
    found = {name: is_directory(place, os.fsencode(tmp_path / name)) for name in (".", "f", "link")}
    assert found == {".": True, "f": False, "link": True}


def test_is_directory_of_nothing_is_a_fault(place, tmp_path):
    with pytest.raises(Fault) as caught:
        is_directory(place, os.fsencode(tmp_path / "x"))
    assert caught.value.code == "not_found"
