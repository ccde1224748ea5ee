"""A patch makes of what was put in what is there now: git is the judge."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from backends.workspace import Limits
from backends.workspace.archive import ArchiveReader
from backends.workspace.baseline import Baseline
from backends.workspace.changes import ChangeSink
from backends.workspace.gitpatch import Blob, change, refused
from backends.workspace.hunks import hunks
from backends.workspace.packing import Packer
from operations import PathError, TooLarge

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge")

#: By path: bytes of a file and whether it may be run, or the text of a symlink.
Tree = dict[bytes, tuple[bytes, bool] | bytes]


def make(top: Path, content: Tree) -> None:
    """Make a folder."""
    top.mkdir()
    for path, what in content.items():
        full = os.path.join(os.fsencode(top), path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        if isinstance(what, bytes):
            os.symlink(what, full)
        else:
            with open(full, "wb") as file:
                file.write(what[0])
            os.chmod(full, 0o755 if what[1] else 0o644)


def look(top: Path) -> Tree:
    """Return a folder as git sees it."""
    found: Tree = {}
    root = os.fsencode(top)
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            full = os.path.join(folder, name)
            info = os.lstat(full)
            path = os.path.relpath(full, root)
            if stat.S_ISLNK(info.st_mode):
                found[path] = os.readlink(full)
            elif stat.S_ISREG(info.st_mode):
                with open(full, "rb") as file:
                    found[path] = (file.read(), bool(info.st_mode & 0o100))
    return found


def patch_between(before: Path, after: Path, most: int = 1 << 30) -> bytes:
    """Return the patch, as it comes about when the second folder's tar goes by."""
    with Baseline("/far", honour_ignore_files=False) as baseline:
        list(Packer(str(before), baseline).pieces())
        with Baseline("/far", honour_ignore_files=False) as other:
            sink = ChangeSink(baseline, most)
            reader = ArchiveReader(sink, "/far", Limits())
            for piece in Packer(str(after), other).pieces():
                if not piece:
                    break
                reader.feed(piece)
            try:
                return sink.patch()
            finally:
                sink.close()


def applied(patch: bytes, top: Path, *options: str) -> None:
    """Have git apply a patch to a folder."""
    done = subprocess.run(
        ["git", "apply", *options, "--whitespace=nowarn", "-"],
        input=patch,
        cwd=top,
        capture_output=True,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(top.parent), "LC_ALL": "C"},
    )
    assert done.returncode == 0, (done.stderr, patch)


def check(tmp_path: Path, old: Tree, new: Tree) -> bytes:
    """Take the patch between two folders and see that git makes one of the other, both ways."""
    before, after = tmp_path / "before", tmp_path / "after"
    make(before, old)
    make(after, new)
    patch = patch_between(before, after)
    if look(before) == look(after):
        assert patch == b""
        return patch
    applied(patch, before)
    assert look(before) == look(after)
    applied(patch, before, "-R")
    shutil.rmtree(after)
    make(after, old)
    assert look(before) == look(after)
    return patch


TEXT = b"".join(b"line %d\n" % number for number in range(100))

CASES: dict[str, tuple[Tree, Tree]] = {
    "nothing": ({b"a": (b"x", False)}, {b"a": (b"x", False)}),
    "a line": ({b"a": (TEXT, False)}, {b"a": (TEXT.replace(b"line 50", b"LINE"), False)}),
    "lines far apart": (
        {b"a": (TEXT, False)},
        {b"a": (TEXT.replace(b"line 5\n", b"").replace(b"line 90\n", b"a\nb\n"), False)},
    ),
    "no newline at the end": ({b"a": (b"x\ny", False)}, {b"a": (b"x\nz", False)}),
    "a newline comes": ({b"a": (b"x", False)}, {b"a": (b"x\n", False)}),
    "a newline goes": ({b"a": (b"x\n", False)}, {b"a": (b"x", False)}),
    "from empty": ({b"a": (b"", False)}, {b"a": (b"x\n", False)}),
    "to empty": ({b"a": (b"x\n", False)}, {b"a": (b"", False)}),
    "new and empty": ({}, {b"a b": (b"", True), b"c": (b"", False)}),
    "gone and empty": ({b"a b": (b"", True), b"c": (b"", False)}, {}),
    "only carriage returns": ({b"a": (b"x\ry\r\n", False)}, {b"a": (b"x\r\ny\r", False)}),
    "may be run": ({b"a b": (b"x", False)}, {b"a b": (b"x", True)}),
    "may be run and more": ({b"a": (b"x", False)}, {b"a": (b"y", True)}),
    "binary": ({b"a": (b"x\0y", False)}, {b"a": (os.urandom(70_000), False)}),
    "becomes binary": ({b"a": (b"text\n", False)}, {b"a": (b"\0", True)}),
    "a late NUL": ({b"a": (b"x" * 9000 + b"\n", False)}, {b"a": (b"x" * 9000 + b"\0\n", False)}),
    "a symlink": ({b"l": b"x"}, {b"l": b"somewhere/else", b"m": b"../.."}),
    "a file becomes a symlink": ({b"a": (b"x\n", False)}, {b"a": b"x"}),
    "a symlink becomes a file": ({b"a": b"x"}, {b"a": (b"x\n", True)}),
    "a file becomes a folder": ({b"a": (b"x\n", False)}, {b"a/b/c": (b"x\n", False)}),
    "a folder becomes a file": ({b"a/b/c": (b"x\n", False)}, {b"a": (b"x\n", False)}),
    "a folder becomes a symlink": ({b"a/b": (b"x\n", False)}, {b"a": b"c"}),
    "a name": ({b"a": (TEXT, False)}, {b"b/a": (TEXT, False)}),
    "odd names": (
        {b' "q"\t\n\\ \xff': (b"x\n", False), b" b/x b/x": (b"", False)},
        {b' "q"\t\n\\ \xff': (b"y\n", False), b"\xc3\xa9 ": (b"z\n", False), b"-rf": (b"", True)},
    ),
    "what looks like a patch": (
        {b"a": (b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n", False)},
        {b"a": (b"-- a/x\n++ b/x\ndiff --git a/x b/x\n\\ No newline\n", False)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_git_makes_of_the_old_the_new_and_back(name: str, tmp_path: Path) -> None:
    check(tmp_path, *CASES[name])


NAMES = st.builds(
    b"/".join,
    st.lists(
        st.one_of(
            st.sampled_from([b"a", b"b", b"c d", b"\xc3\xa9"]),
            st.lists(
                st.sampled_from(list(b'ab ."\\\n\t\x01\x7f\xff-')), min_size=1, max_size=4
            ).map(bytes),
        ).filter(lambda part: part not in (b".", b"..")),
        min_size=1,
        max_size=3,
    ),
)
CONTENTS = st.one_of(
    st.lists(st.sampled_from([b"x\n", b"y\n", b"z\r\n", b"\n", b"+\n", b"-- \n"])).map(b"".join),
    st.lists(st.sampled_from([b"x\n", b"y", b"\0", b"\xff"])).map(b"".join),
    st.binary(max_size=200),
)
FILES = st.one_of(
    st.tuples(CONTENTS, st.booleans()), st.sampled_from([b"a", b"../x", b"/etc", b"\xff\n"])
)


def without_clashes(content: Tree) -> Tree:
    """Leave out what would have to be in a file."""
    return {
        path: what
        for path, what in content.items()
        if not any(path.startswith(other + b"/") for other in content)
    }


TREES = st.dictionaries(NAMES, FILES, max_size=6).map(without_clashes)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(old=TREES, new=TREES, kept=st.booleans())
@example(old={b"a": b"x"}, new={b"a/b": b"x"}, kept=False)
@example(old={}, new={b" /a": (b"", False), b" b": (b"\0", True)}, kept=False)
def test_any_two_folders(
    tmp_path_factory: pytest.TempPathFactory, old: Tree, new: Tree, kept: bool
) -> None:
    if kept:
        new = without_clashes({**old, **new})
    check(tmp_path_factory.mktemp("trees"), old, new)


LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n", b"\n"]), max_size=40)


def redone(old: bytes, patch: bytes) -> bytes:
    """Apply hunks by hand."""
    lines, result, at = old.splitlines(keepends=True), [], 0
    for line in patch.splitlines(keepends=True):
        if line.startswith(b"@@"):
            start = int(line.split()[1].split(b",")[0][1:])
            count = int([*line.split()[1].split(b","), b"1"][1])
            start -= count > 0
            result += lines[at:start]
            at = start
        elif line[:1] in (b" ", b"-"):
            assert lines[at] == line[1:]
            at += 1
        if line[:1] in (b" ", b"+"):
            result.append(line[1:])
    return b"".join(result + lines[at:])


@given(old=LINES, new=LINES)
def test_hunks_turn_one_text_into_the_other(old: list[bytes], new: list[bytes]) -> None:
    before, after = b"".join(old), b"".join(new)
    assert redone(before, b"".join(hunks(before, after))) == after


def test_a_change_in_a_long_text_is_a_short_patch() -> None:
    lines = [b"%d\n" % (number % 1000) for number in range(100_000)]
    before = b"".join(lines)
    lines[500:501] = [b"new\n", b"lines\n"]
    lines[70_000] = b"another\n"
    patch = b"".join(hunks(before, b"".join(lines)))
    assert patch.count(b"@@ -") == 2
    assert patch.count(b"\n") == 19


def test_a_patch_of_more_than_is_accepted_is_none(tmp_path: Path) -> None:
    make(tmp_path / "before", {b"same": (bytes(1000), False), b"a": (b"x" * 60, False)})
    make(tmp_path / "after", {b"same": (bytes(1000), False), b"a": (b"y" * 60, False)})
    assert patch_between(tmp_path / "before", tmp_path / "after", most=120)
    with pytest.raises(TooLarge, match="what has changed in /far: 120 bytes is over the limit"):
        patch_between(tmp_path / "before", tmp_path / "after", most=119)


@pytest.mark.parametrize(
    "name", [b".GIT", b"a/.Git/x", b"git~1", b".git ", b".git.", b".git::$INDEX_ALLOCATION"]
)
def test_a_name_that_git_refuses_is_an_error_that_says_so(name: bytes, tmp_path: Path) -> None:
    assert refused(name, symlink=False)
    done = subprocess.run(
        ["git", "apply", "--check", "-"],
        input=change(name, None, Blob("100644", b"x\n")),
        cwd=tmp_path,
        capture_output=True,
    )
    assert b"invalid path" in done.stderr
    before, after = tmp_path / "before", tmp_path / "after"
    make(before, {})
    make(after, {name: (b"x\n", False)})
    with pytest.raises(PathError, match="git takes no such name"):
        patch_between(before, after)


def test_other_names_with_git_in_them_are_taken() -> None:
    for name in (b".gitignore", b".github/x", b"git", b"x.git", b"git~12", b".gitmodules"):
        assert not refused(name, symlink=False)
    assert refused(b".gitmodules", symlink=True)


def test_what_is_as_git_itself_writes_it(tmp_path: Path) -> None:
    """Byte for byte where git has no choice."""
    old: Tree = {b"gone": (b"x\n", False), b"sp ace": (TEXT, False), b"q\t": (b"", True)}
    new: Tree = {b"new": b"target", b"sp ace": (TEXT + b"more", True), b"q\t": (b"\xff\n", True)}
    for name, content in (("before", old), ("after", new)):
        make(tmp_path / name, content)
    theirs = tmp_path / "theirs"
    shutil.copytree(tmp_path / "before", theirs, symlinks=True)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], cwd=theirs, check=True, capture_output=True)
    for path in theirs.iterdir():
        if path.name != ".git":
            path.unlink()
    shutil.copytree(tmp_path / "after", theirs, symlinks=True, dirs_exist_ok=True)
    subprocess.run([*git, "add", "-A"], cwd=theirs, check=True)
    said = subprocess.run(
        [*git, "diff", "--cached", "--full-index", "--binary", "--no-renames"],
        cwd=theirs,
        check=True,
        capture_output=True,
    ).stdout
    without_heading = b"\n".join(
        line[: line.rindex(b"@@") + 2] if line.startswith(b"@@") else line
        for line in said.split(b"\n")
    )
    assert patch_between(tmp_path / "before", tmp_path / "after") == without_heading
