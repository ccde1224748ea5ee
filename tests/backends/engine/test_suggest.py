"""What errors about paths say to help."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.engine import reading
from backends.engine.faults import Fault
from backends.engine.place import Place
from backends.engine.suggest import closest


@pytest.fixture
def place():
    place = Place()
    yield place
    place.close()


def fault_of(place, path):
    with pytest.raises(Fault) as caught:
        reading.access(place, os.fsencode(path))
    return [caught.value.code, *caught.value.arguments]


@pytest.mark.parametrize(
    ("missing", "first"),
    [
        (b"mian.py", b"main.py"),
        (b"Main.py", b"main.py"),
        (b"main", b"main.py"),
        (b"utils.py", b"util.py"),
        (b"README", b"README.md"),
        (b"test", b"tests/"),
    ],
)
def test_the_most_alike_name_comes_first(missing, first):
    names = [b"README.md", b"a.py", b"main.py", b"tests/", b"util.py", b"zebra.txt"]
    assert closest(missing, names)[0] == first


def test_names_that_differ_only_in_look_come_before_all_others():
    names = ["its.txt", "it\u2019s.txt", "itas.txt"]
    assert closest("it's.txt", names)[0] == "it\u2019s.txt"
    assert closest("caf\u00e9", ["cafe", "cafe\u0301", "caff"])[0] == "cafe\u0301"
    assert closest("a b", ["a-b", "ab", "a\u00a0b"])[0] == "a\u00a0b"


def test_two_swapped_letters_count_as_one_slip():
    assert closest("abcd", ["abaa", "abdc"]) == ["abdc", "abaa"]


@given(st.text(max_size=20), st.lists(st.text(max_size=12), unique=True), st.randoms())
def test_ranking_does_not_depend_on_the_order_of_the_folder(name, names, random):
    ranked = closest(name, names)
    shuffled = names[:]
    random.shuffle(shuffled)
    assert closest(name, shuffled) == ranked
    assert len(ranked) == min(len(names), 8)
    assert set(ranked) <= set(names)


@given(st.binary(max_size=20), st.lists(st.binary(max_size=12), unique=True))
def test_names_of_any_bytes_can_be_ranked(name, names):
    assert len(closest(name, names, 3)) == min(len(names), 3)


def test_a_missing_file_names_its_folder_and_what_is_like_it(place, tmp_path):
    for name in ("main.py", "util.py"):
        (tmp_path / name).touch()
    (tmp_path / "maindir").mkdir()
    path = os.fsencode(tmp_path / "mian.py")
    code, told, nearest, names = fault_of(place, path)
    assert (code, told, nearest) == ("not_found", path, os.fsencode(tmp_path))
    assert names[0] == b"main.py"
    assert sorted(names) == [b"main.py", b"maindir/", b"util.py"]


def test_the_nearest_existing_folder_is_told(place, tmp_path):
    (tmp_path / "src").mkdir()
    assert fault_of(place, tmp_path / "scr" / "deep" / "x.py")[2:] == [
        os.fsencode(tmp_path),
        [b"src/"],
    ]


def test_the_folder_is_shown_as_the_path_was_given(tmp_path):
    (tmp_path / "notes").mkdir()
    place = Place(home=os.fsencode(tmp_path))
    assert fault_of(place, b"~/notes/x") == ["not_found", b"~/notes/x", b"~/notes", []]
    assert fault_of(place, b"~/note")[2:] == [b"~", [b"notes/"]]
    place.close()


def test_a_broken_link_is_shown_with_its_target(place, tmp_path):
    (tmp_path / "link").symlink_to("gone")
    (tmp_path / "other").touch()
    assert fault_of(place, tmp_path / "link")[3] == [b"link@ -> gone", b"other"]
    assert fault_of(place, tmp_path / "link" / "x")[3] == [b"link@ -> gone", b"other"]


def test_a_folder_is_shown_with_its_first_names_and_their_number(place, tmp_path):
    for number in range(25):
        (tmp_path / f"f{number:02}").touch()
    (tmp_path / "A").mkdir()
    code, _, names, total = fault_of(place, tmp_path)
    assert (code, total) == ("is_directory", 26)
    assert names == [b"A/"] + [b"f%02d" % number for number in range(9)]


def test_the_part_that_is_a_file_is_named(place, tmp_path):
    (tmp_path / "f").touch()
    path = os.fsencode(tmp_path / "f" / "x" / "y")
    assert fault_of(place, path) == ["not_directory", path, f"{tmp_path}/f is a file, not a folder"]


def test_a_folder_of_20000_names_is_ranked_quickly():
    names = [b"module_%05d.py" % number for number in range(20000)]
    started = time.monotonic()
    assert b"1234" in closest(b"module_1234.py", names)[0]
    assert time.monotonic() - started < 3


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (b"", "empty"),
        (b"/a\0b", "NUL"),
        (b"relative", "absolute"),
        (b"~other/x", "absolute"),
        (b"/" + b"x" * 300, "too long"),
        (b"/x" * 4000, "over the limit"),
    ],
)
def test_paths_that_no_file_can_have_are_refused_in_words(place, path, says):
    fault = fault_of(place, path)
    assert fault[0] == "path"
    assert says in fault[2]


def test_a_loop_of_links_is_said_to_be_one(place, tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert fault_of(place, tmp_path / "a")[2] == "too many levels of symbolic links"
