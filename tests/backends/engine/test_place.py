"""How paths become descriptors."""

from __future__ import annotations

import os
import pwd

import pytest

from backends.engine.place import Place


@pytest.fixture
def place():
    place = Place()
    yield place
    place.close()


def test_tilde_is_the_home_of_the_engines_user(monkeypatch):
    monkeypatch.setenv("HOME", "/some/where/")
    place = Place()
    assert place.expand(b"~") == b"/some/where"
    assert place.expand(b"~/x/~") == b"/some/where/x/~"
    assert place.expand(b"/~/x") == b"/~/x"
    place.close()


@pytest.mark.parametrize("home", [None, "", "relative"])
def test_without_a_usable_home_variable_the_user_list_tells(monkeypatch, home):
    monkeypatch.delenv("HOME")
    if home is not None:
        monkeypatch.setenv("HOME", home)
    place = Place()
    assert place.home() == os.fsencode(pwd.getpwuid(os.getuid()).pw_dir)
    place.close()


def test_a_home_at_the_root_makes_no_double_slash():
    place = Place(home=b"/")
    assert place.expand(b"~/x") == b"/x"
    assert place.expand(b"~") == b"/"
    place.close()


def test_the_root_itself_can_be_named(place):
    for path in (b"/", b"//", b"/."):
        assert os.path.samestat(place.stat(path), os.stat("/"))


def test_paths_begin_at_the_root_given(tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    place = Place(root=os.fsencode(tmp_path), home=b"/")
    assert place.stat(b"/f").st_size == 1
    assert place.stat(b"~/f").st_size == 1
    place.close()


@pytest.mark.parametrize(
    ("path", "name"), [(b"f", b"f"), (b"d/", b""), (b"d/.", b"."), (b"d/..", b"..")]
)
def test_parent_gives_the_folder_and_the_last_part(place, tmp_path, path, name):
    (tmp_path / "d").mkdir()
    folder, last = place.parent(os.fsencode(tmp_path) + b"/" + path)
    above = tmp_path if path == b"f" else tmp_path / "d"
    assert last == name
    assert os.path.samestat(os.fstat(folder), above.stat())
    os.close(folder)


def test_follow_ends_where_the_last_link_points(place, tmp_path):
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "a").symlink_to("d/b")
    (tmp_path / "d" / "b").symlink_to("e/../../c")
    (tmp_path / "c").symlink_to(tmp_path / "d" / "nothing")
    folder, name = place.follow(os.fsencode(tmp_path / "a"))
    assert name == b"nothing"
    assert os.path.samestat(os.fstat(folder), (tmp_path / "d").stat())
    os.close(folder)


def test_a_closed_place_can_be_closed_again():
    place = Place()
    place.close()
    place.close()
