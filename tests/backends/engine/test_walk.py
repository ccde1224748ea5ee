"""The walk: what it shows, in which order, and what it never does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.engine.faults import Fault
from backends.engine.place import Place
from backends.engine.walk import OsTree, Unreadable, keyed, walk


@pytest.fixture
def root(tmp_path: Path) -> Path:
    # Folders above the test's own must not matter.
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


def write(root: Path, *names: str, content: bytes = b"x\n") -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def shown(root: Path, unreadable: Unreadable | None = None) -> list[bytes]:
    tree = OsTree(Place(), os.fsencode(root))
    try:
        return [path for path, _ in walk(tree, unreadable or Unreadable())]
    finally:
        tree.close()


class DictTree:
    """Folders as dicts, files as bytes."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.folders: dict[bytes, dict[bytes, str]] = {b"": {}}
        self.files = {name.encode(): content for name, content in files.items()}
        for path in self.files:
            while path:
                above, _, name = path.rpartition(b"/")
                kind = "file" if path in self.files else "directory"
                self.folders.setdefault(above, {})[name] = kind
                path = above

    def scan(self, path: bytes) -> tuple[list[bytes], dict[bytes, str]]:
        return keyed(self.folders[path].items())

    def read(self, path: bytes) -> Iterator[bytes]:
        yield self.files[path]

    def above(self) -> list[tuple[bytes, bytes]]:
        return []


@given(
    st.sets(
        st.lists(
            st.sampled_from(["a", "a.", "a-", "a0", "é", "a b", "\n", "Z"]), min_size=1, max_size=4
        ).map("/".join)
    )
)
def test_order_is_that_of_whole_paths(paths: set[str]) -> None:
    files = {
        path: b"" for path in paths if not any(other.startswith(path + "/") for other in paths)
    }
    found = [path for path, _ in walk(DictTree(files), Unreadable())]
    assert found == sorted(found)
    assert {path for path in found if not path.endswith(b"/")} == {path.encode() for path in files}


def test_rules_hold_with_and_without_a_repository(root: Path) -> None:
    write(root, ".gitignore", content=b"/build/\n*.log\n!keep.log\n")
    write(root, "build/a.txt", "sub/build/a.txt", "q.log", "keep.log", "sub/x.txt", "x.txt")
    write(root, "sub/.gitignore", content=b"x.txt\n")
    expected = [
        b".gitignore", b"keep.log", b"sub/", b"sub/.gitignore", b"sub/build/", b"sub/build/a.txt",
        b"x.txt",
    ]  # fmt: skip
    assert shown(root) == expected
    (root / ".git").mkdir()
    assert shown(root) == expected


def test_git_folder_and_git_file_are_left_out(root: Path) -> None:
    write(root, ".git/config", "sub/.git", ".github/ci.yml", ".gitmodules")
    assert shown(root) == [b".github/", b".github/ci.yml", b".gitmodules", b"sub/"]


def test_rules_of_folders_above_hold_up_to_the_top_of_the_work_tree(tmp_path: Path) -> None:
    write(tmp_path, "outer/.gitignore", content=b"*.out\n")
    write(tmp_path, "outer/repo/.gitignore", content=b"/sub/deep/*.tmp\n*.bak\n")
    write(tmp_path, "outer/repo/sub/.gitignore", content=b"!a.bak\n")
    write(tmp_path, *(f"outer/repo/sub/deep/a.{end}" for end in ("out", "tmp", "bak", "txt")))
    deep = tmp_path / "outer/repo/sub/deep"
    assert shown(deep) == [b"a.bak", b"a.out", b"a.tmp", b"a.txt"], "in no work tree"
    (tmp_path / "outer/repo/.git").mkdir()
    assert shown(deep) == [b"a.bak", b"a.out", b"a.txt"]


def test_rules_above_are_found_through_a_symlinked_root(tmp_path: Path) -> None:
    write(tmp_path, "repo/.gitignore", content=b"*.log\n")
    write(tmp_path, "repo/sub/a.log", "repo/sub/a.txt")
    (tmp_path / "repo/.git").mkdir()
    (tmp_path / "link").symlink_to("repo/sub")
    assert shown(tmp_path / "link") == [b"a.txt"]


def test_ignored_folder_named_outright_is_walked(root: Path) -> None:
    write(root, ".gitignore", content=b"node_modules/\n")
    write(root, "node_modules/effect/package.json")
    (root / ".git").mkdir()
    assert shown(root) == [b".gitignore"]
    assert b"effect/package.json" in shown(root / "node_modules")


def test_folder_that_is_ignored_cannot_have_a_file_included_again(root: Path) -> None:
    write(root, ".gitignore", content=b"build/\n!build/keep.txt\n")
    write(root, "build/keep.txt")
    assert shown(root) == [b".gitignore"]


def test_symlinks_are_shown_and_not_followed(root: Path) -> None:
    write(root, ".gitignore", content=b"node_modules/\n")
    write(root, "other/a.txt")
    (root / "node_modules").symlink_to("other")
    (root / "loop").symlink_to(".")
    (root / "broken").symlink_to("nowhere")
    assert shown(root) == [
        b".gitignore", b"broken", b"loop", b"node_modules", b"other/", b"other/a.txt",
    ]  # fmt: skip


def test_symlinked_gitignore_is_no_gitignore(root: Path) -> None:
    write(root, "rules", content=b"*.txt\n")
    write(root, "a.txt")
    (root / ".gitignore").symlink_to("rules")
    assert b"a.txt" in shown(root)


def test_names_are_bytes_whatever_they_hold(root: Path) -> None:
    names = [b"new\nline", b"quote'\"", b"bad\xff\xfe", b" lead", b"-rf", b"tab\t", "é".encode()]
    for name in names:
        with open(os.path.join(os.fsencode(root), name), "wb"):
            pass
    assert shown(root) == sorted(names)


def test_thousand_levels_are_walked(root: Path) -> None:
    """Also where the path is longer than the system takes at once."""
    folder = os.open(root, os.O_RDONLY)
    for _ in range(1000):
        os.mkdir("sub-folder", dir_fd=folder)
        below = os.open("sub-folder", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("leaf.txt", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    tree = OsTree(Place(), os.fsencode(root))
    found = [path for path, _ in walk(tree, Unreadable())]
    assert len(found) == 1001
    assert found[-1] == b"sub-folder/" * 1000 + b"leaf.txt"
    assert list(tree.read(found[-1])) == []
    tree.close()
    _remove_deep(root, 1000)


def _remove_deep(root: Path, levels: int) -> None:
    """Take the levels off from the top: no path is ever too long."""
    for _ in range(levels):
        below = root / "sub-folder" / "sub-folder"
        if below.exists():
            os.rename(below, root / "next")
            os.rmdir(root / "sub-folder")
            os.rename(root / "next", root / "sub-folder")


def test_unreadable_folder_is_noted_and_the_rest_is_shown() -> None:
    class Locked(DictTree):
        def scan(self, path: bytes) -> tuple[list[bytes], dict[bytes, str]]:
            if path == b"locked":
                raise PermissionError(13, "Permission denied")
            if path == b"vanished":
                raise FileNotFoundError(2, "No such file or directory")
            return super().scan(path)

    unreadable = Unreadable()
    tree = Locked({"locked/a": b"", "ok/n.txt": b"", "vanished/b": b""})
    found = [path for path, _ in walk(tree, unreadable)]
    assert found == [b"locked/", b"ok/", b"ok/n.txt", b"vanished/"]
    assert (unreadable.paths, unreadable.total) == ([b"locked"], 1)


def test_only_the_first_unreadable_paths_are_kept() -> None:
    unreadable = Unreadable()
    for number in reversed(range(50)):
        unreadable.add(b"%02d" % number, PermissionError(13, ""))
    assert unreadable.total == 50
    assert unreadable.paths == [b"%02d" % number for number in range(20)]


def test_root_that_cannot_be_opened_is_a_fault(root: Path) -> None:
    write(root, "file")
    with pytest.raises(Fault) as caught:
        OsTree(Place(), os.fsencode(root / "missing"))
    assert caught.value.code == "not_found"
    with pytest.raises(Fault) as caught:
        OsTree(Place(), os.fsencode(root / "file"))
    assert caught.value.code == "not_directory"


def test_walk_leaves_no_descriptor_open(root: Path) -> None:
    write(root, *(f"d{number}/f" for number in range(20)))
    place = Place()
    before = len(os.listdir("/proc/self/fd"))
    tree = OsTree(place, os.fsencode(root))
    assert len(list(walk(tree, Unreadable()))) == 40
    assert list(tree.read(b"d1/f")) == [b"x\n"]
    tree.close()
    assert len(os.listdir("/proc/self/fd")) == before
    place.close()
