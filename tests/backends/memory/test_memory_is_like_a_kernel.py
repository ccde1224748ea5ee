"""Random sequences of operations have the same answers in memory as the engine's on a real disk."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backends.memory.files import Files
from backends.memory.nodes import User
from backends.memory.tree import Tree
from tests.backends.memory.kernel_worker import play

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = st.sampled_from([b"a", b"b", b"ab", b"link", b"\xff", b"n" * 256])
STEPS = st.one_of(NAMES, st.sampled_from([b".", b".."]))


@st.composite
def paths(draw: st.DrawFn, *, plain_end: bool = False) -> bytes:
    """Draw absolute paths, with "." and ".." and, unless a plain end is asked for, "/" last."""
    steps = draw(st.lists(STEPS, max_size=3))
    end = draw(NAMES) if plain_end else draw(STEPS) + draw(st.sampled_from([b"", b"", b"", b"/"]))
    return b"/" + b"/".join([*steps, end])


MODES = st.sampled_from([0o000, 0o200, 0o300, 0o444, 0o500, 0o600, 0o700, 0o755])
TARGETS = st.lists(STEPS, min_size=1, max_size=3).map(b"/".join)
ACTIONS = st.one_of(
    st.tuples(
        st.just("replace"), paths(), st.binary(max_size=3), st.booleans(), st.sampled_from([0, 1])
    ),
    st.tuples(
        st.sampled_from(["make", "read", "access", "list", "exists", "is_directory"]), paths()
    ),
    st.tuples(st.just("symlink"), paths(plain_end=True), TARGETS),
    st.tuples(st.just("link"), paths(plain_end=True), paths(plain_end=True)),
    st.tuples(st.just("rename"), paths(plain_end=True), paths(plain_end=True)),
    st.tuples(st.just("unlink"), paths(plain_end=True)),
    st.tuples(st.just("chmod"), paths(), MODES),
)


class InMemory:
    """The same on a tree."""

    def __init__(self, user: User) -> None:
        self.tree = Tree(lambda: 0, user)
        self.user = user
        self.files = Files(self.tree, user, b"/")

    def replace(self, path: bytes, content: bytes, make: bool, expected: Any) -> Any:
        return self.files.replace(path, content, make_parents=make, expected=expected)

    def version(self, path: bytes) -> Any:
        told = self.files.version(path)
        return told["device"], told["inode"], told["digest"]

    def make(self, path: bytes) -> None:
        self.files.make_directory(path)

    def read(self, path: bytes) -> bytes:
        return self.files.read(path, 1 << 20)

    def access(self, path: bytes) -> None:
        self.files.open(path)

    def list(self, path: bytes) -> Any:
        return self.files.list_directory(path, 5)

    def exists(self, path: bytes) -> bool:
        return self.files.exists(path)

    def is_directory(self, path: bytes) -> bool:
        return self.files.is_directory(path)

    def symlink(self, path: bytes, target: bytes) -> None:
        place = self.tree.locate(path, self.user, follow=False)
        self.tree.add(place, "symlink", 0o777, self.user, target)

    def link(self, old: bytes, new: bytes) -> None:
        self.tree.link(old, new, self.user)

    def rename(self, old: bytes, new: bytes) -> None:
        self.tree.rename(old, new, self.user)

    def unlink(self, path: bytes) -> None:
        place = self.tree.locate(path, self.user, follow=False)
        if place.node is not None and place.node.is_folder:
            if place.folder is not None:  # whose rights a kernel asks for first
                self.tree._check_may_take(place, self.user)
            raise IsADirectoryError(21, "Is a directory")
        self.tree.remove(path, self.user)

    def chmod(self, path: bytes, mode: int) -> None:
        self.tree.change(self.tree.get(path, self.user), mode=mode)


def picture_in_memory(tree: Tree) -> dict[bytes, Any]:
    """Return the same of a tree."""
    found: dict[bytes, Any] = {}
    todo = [(b"", tree.root)]
    while todo:
        path, folder = todo.pop()
        for name, node in folder.children.items():
            below = path + b"/" + name
            content = None if node.is_folder else node.content
            found[below] = node.mode, None if node.is_folder else node.links, content
            if node.is_folder:
                todo.append((below, node))
    return found


class Disk:
    """A worker that plays the same actions on a real filesystem."""

    def __init__(self, folder: Path) -> None:
        worker = Path(__file__).with_name("kernel_worker.py")
        self._process = subprocess.Popen(
            [sys.executable, str(worker), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def play(self, uid: int, actions: list[tuple[Any, ...]]) -> Any:
        """Return the outcomes and the tree in the end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump((uid, actions), self._process.stdin)
        self._process.stdin.flush()
        return pickle.load(self._process.stdout)

    def close(self) -> None:
        """End the worker."""
        with self._process:
            pass


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    """Give a worker in an empty folder."""
    folder = tmp_path_factory.mktemp("root")
    worker = Disk(folder)
    yield worker
    worker.close()
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot, which keeps '..' in, is the superuser's")
@pytest.mark.parametrize("uid", [0, 1000])
@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(actions=st.lists(ACTIONS, min_size=1, max_size=25))
def test_the_same_answers_and_the_same_tree(
    uid: int, disk: Disk, actions: list[tuple[Any, ...]]
) -> None:
    """Results, faults with all that they tell, and what is there in the end."""
    memory = InMemory(User(uid=uid, gid=uid, umask=0o022))
    expected, tree = disk.play(uid, actions)
    for action, wanted, got in zip(actions, expected, play(memory, actions), strict=True):
        if action[0] in ("link", "rename"):  # which of two bad paths is named is the kernel's own
            assert got[0] == wanted[0], action
        else:
            assert got == wanted, action
    assert picture_in_memory(memory.tree) == tree
