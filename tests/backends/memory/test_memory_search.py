"""Searching in memory: the same lines as on disk, in the tree as it was, never without an end."""

from __future__ import annotations

import os
import re
import threading
import time
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.engine import search, walk
from backends.engine.place import Place
from backends.memory import Directory, File, MemoryBackend, Special, Symlink
from backends.memory.backtracking import worst_case_steps
from operations import (
    GrepMatch,
    GrepQuery,
    InvalidPattern,
    NotRegularFile,
    PathDenied,
    PathNotDirectory,
    PathNotFound,
    Progress,
    SearchTimeout,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.anyio

TREE: dict[str, Any] = {
    ".git/config": "needle\n",
    ".gitignore": "*.log\n/build/\n!keep.log\n",
    ".hidden/x": "needle\n",
    "a.log": "needle\n",
    "bin": b"needle\x00\n",
    "build/out": "needle\n",
    "caf\udce9.txt": b"needle \xff\n",
    "keep.log": "needle\n",
    "link": Symlink("src"),
    "pipe": Special("fifo"),
    "src/.gitignore": "gen*\n",
    "src/a.py": "one\r\nNEEDLE needle\r\nthree\n",
    "src/deep/b.py": "x\n" * 50 + "needle\n" + "y\n" * 3,
    "src/generated.py": "needle\n",
    "src/long": "é" * 2000 + "needle" + "ß" * 2000 + "\n",
}


def on_disk(root: Path) -> None:
    """Lay the tree out in a real folder."""
    for name, seed in TREE.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if isinstance(seed, Symlink):
            os.symlink(seed.target, path)
        elif isinstance(seed, Special):
            os.mkfifo(path)
        else:
            with open(path, "wb") as stream:
                stream.write(seed.encode() if isinstance(seed, str) else seed)


def grep_disk(root: Path, query: GrepQuery) -> list[tuple[Any, ...]]:
    """Lay the tree out in a real folder and search it with the engine's own means."""
    on_disk(root)
    parts: list[dict[str, Any]] = []
    tree = walk.OsTree(Place(), os.fsencode(root))
    try:
        asked = {
            "pattern": query.pattern,
            "glob": query.glob,
            "ignore_case": query.ignore_case,
            "literal": query.literal,
            "context": query.context,
            "limit": query.limit,
            "max_line_chars": query.max_line_chars,
        }
        search.grep(tree, asked, parts.append)
    finally:
        tree.close()
    return [
        (os.fsdecode(path), line, text, [tuple(c) for c in before], [tuple(c) for c in after], cut)
        for part in parts
        for path, line, text, cut, before, after in part.get("final", ())
    ]


def plain(matches: Sequence[GrepMatch]) -> list[tuple[Any, ...]]:
    """Return matches as tuples."""
    return [
        (
            m.path,
            m.line,
            m.text,
            [(c.line, c.text) for c in m.before],
            [(c.line, c.text) for c in m.after],
            m.cut,
        )
        for m in matches
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"pattern": "needle"},
        {"pattern": "needle", "ignore_case": True, "context": 2},
        {"pattern": "needle$"},
        {"pattern": "(e+d?)+le"},
        {"pattern": "needle", "glob": "*.py"},
        {"pattern": "needle", "glob": "src/**", "limit": 2},
        {"pattern": "n.*e", "literal": True},
        {"pattern": r"^\w+$", "limit": 5},
    ],
)
async def test_the_same_lines_as_on_disk(tmp_path: Path, options: dict[str, Any]) -> None:
    """In the same order, with the same context, under the same ignore rules."""
    backend = MemoryBackend(TREE)
    query = GrepQuery(path="/work", **options)
    found = await backend.grep(query)
    assert plain(found.matches) == await anyio.to_thread.run_sync(grep_disk, tmp_path, query)


async def test_what_is_searched_and_what_is_not() -> None:
    """Ignored and .git files are left out, hidden ones are not, binary ones are counted."""
    backend = MemoryBackend(TREE)
    found = await backend.grep(GrepQuery(pattern="needle", path="/work"))
    assert [m.path for m in found.matches] == [
        ".hidden/x",
        "caf\udce9.txt",
        "keep.log",
        "src/a.py",
        "src/deep/b.py",
        "src/long",
    ]
    assert (found.binary_skipped, found.unreadable_total, found.engine) == (1, 0, "python")


async def test_rules_above_the_root_hold_inside_a_work_tree_only() -> None:
    """Up to the folder that holds .git."""
    tree = {"r/.gitignore": "*.log\n", "r/s/a.log": "needle", "r/s/b": "needle"}
    query = GrepQuery(pattern="needle", path="/work/r/s")
    assert len((await MemoryBackend(tree).grep(query)).matches) == 2
    found = await MemoryBackend({**tree, "r/.git/": None}).grep(query)
    assert [m.path for m in found.matches] == ["b"]


async def test_a_file_that_is_named_is_searched_under_the_name_it_was_given() -> None:
    """Ignored or not, and through a link."""
    backend = MemoryBackend({**TREE, "l": Symlink("a.log")})
    for name in ("a.log", "l"):
        found = await backend.grep(GrepQuery(pattern="needle", path=f"/work/{name}"))
        assert [(m.path, m.line) for m in found.matches] == [(name, 1)]


async def test_find_gives_names_in_order_and_folders_with_a_slash() -> None:
    """Under the same rules; a link is a name."""
    backend = MemoryBackend(TREE)
    seen: list[Progress] = []
    found = await backend.glob("*", "/work", limit=100, on_progress=seen.append)
    assert found.paths == (
        ".gitignore",
        ".hidden/",
        ".hidden/x",
        "bin",
        "caf\udce9.txt",
        "keep.log",
        "link",
        "pipe",
        "src/",
        "src/.gitignore",
        "src/a.py",
        "src/deep/",
        "src/deep/b.py",
        "src/long",
    )
    few = await backend.glob("src/**/*.py", "/work", limit=1)
    assert (few.paths, few.more) == (("src/a.py",), True)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/work/none", PathNotFound),
        ("/work/pipe", NotRegularFile),
        ("/work/shut", PathDenied),
        ("/work/secret", PathDenied),
    ],
)
async def test_what_cannot_be_searched_is_an_error(path: str, error: type[Exception]) -> None:
    """Not an empty result."""
    backend = MemoryBackend(
        {"pipe": Special("fifo"), "shut/": Directory(mode=0), "secret": File("x", mode=0)}
    )
    with pytest.raises(error):
        await backend.grep(GrepQuery(pattern="x", path=path))
    if error is not NotRegularFile and path != "/work/secret":
        with pytest.raises(error):
            await backend.glob("*", path, limit=1)
    with pytest.raises(PathNotDirectory):
        await backend.glob("*", "/work/pipe", limit=1)


async def test_what_cannot_be_read_below_is_a_note() -> None:
    """The rest is searched, in a process of its own too."""
    backend = MemoryBackend(
        {
            "ok": "needle\n",
            "locked/in": "needle\n",
            "locked/": Directory(mode=0),
            "secret": File("needle\n", mode=0o200),
        }
    )
    for pattern in ("needle", "(ne+)+dle"):
        found = await backend.grep(GrepQuery(pattern=pattern, path="/work"))
        assert [m.path for m in found.matches] == ["ok"]
        assert (found.unreadable, found.unreadable_total) == (("locked", "secret"), 2)
    listed = await backend.glob("*", "/work", limit=10)
    assert (listed.paths, listed.unreadable) == (("locked/", "ok", "secret"), ("locked",))


@pytest.mark.parametrize("pattern", ["(", "a**", r"(a)\1", "(?=x)", "\ud800"])
async def test_what_is_outside_the_dialect_is_refused(pattern: str) -> None:
    """Never "no matches"."""
    with pytest.raises(InvalidPattern):
        await MemoryBackend({"f": "x"}).grep(GrepQuery(pattern=pattern, path="/work"))
    with pytest.raises(InvalidPattern):
        await MemoryBackend({"f": "x"}).glob("[", "/work", limit=1)


async def test_a_pattern_that_would_never_end_is_ended_by_its_limit_beside_a_living_loop() -> None:
    """The loop goes on meanwhile, and no process is left."""
    backend = MemoryBackend({"evil": "a" * 60 + "!\n"})
    ticks: list[float] = []

    async def tick() -> None:
        while True:
            await anyio.sleep(0.01)
            ticks.append(time.monotonic())

    before = time.monotonic()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        with pytest.raises(SearchTimeout):
            await backend.grep(GrepQuery(pattern="(a+)+b", path="/work", timeout_s=1.0))
        tasks.cancel_scope.cancel()
    assert 1.0 <= time.monotonic() - before < 20
    assert len(ticks) > 5
    assert await anyio.to_thread.run_sync(_busy_children) == []


async def test_cancelling_a_search_that_would_never_end_ends_its_process_too() -> None:
    """Soon, not at the time limit."""
    backend = MemoryBackend({"evil": "a" * 60 + "!\n"})
    with anyio.move_on_after(0.3) as scope:
        await backend.grep(GrepQuery(pattern="(a+)+b", path="/work", timeout_s=600.0))
    assert scope.cancelled_caught
    with anyio.fail_after(20):
        while await anyio.to_thread.run_sync(_busy_children):
            await anyio.sleep(0.05)


def _busy_children() -> list[str]:
    """Return the pids of children of ours that run a search."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as stream:
                command = stream.read()
            with open(f"/proc/{pid}/stat", "rb") as stream:
                parent = int(stream.read().rsplit(b")", 1)[1].split()[1])
        except OSError:
            continue
        if b"search_child.py" in command and parent == os.getpid():
            found.append(pid)
    return found


async def test_a_search_sees_the_tree_as_it_was_when_it_began() -> None:
    """Whatever is written and removed while it runs."""
    backend = MemoryBackend({f"d{n:03}/f": "needle\n" * 20 for n in range(300)})
    counts: list[int] = []
    async with anyio.create_task_group() as tasks:

        async def grep() -> None:
            query = GrepQuery(pattern="needle", path="/work", limit=100_000)
            counts.append(len((await backend.grep(query)).matches))

        tasks.start_soon(grep)
        while not backend.calls:
            await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        for number in range(0, 300, 2):
            backend.remove(f"d{number:03}")
    assert counts in ([300 * 20], [150 * 20])


async def test_matches_are_told_as_they_are_found() -> None:
    """On the loop's thread, all of them in the end."""
    backend = MemoryBackend({f"f{n}": "needle\n" for n in range(50)})
    told: list[GrepMatch] = []
    thread = threading.get_ident()

    def on_matches(matches: Sequence[GrepMatch]) -> None:
        assert threading.get_ident() == thread
        told.extend(matches)

    found = await backend.grep(GrepQuery(pattern="needle", path="/work"), on_matches=on_matches)
    assert sorted(m.path for m in told) == sorted(m.path for m in found.matches)


@pytest.mark.parametrize(
    ("pattern", "most"),
    [
        ("plain", 1),
        ("[]a]x", 1),
        (r"\(\*\[", 1),
        ("(?:ab){3}", 1),
        ("a?b", 2),
        ("a|b|c", 3),
        ("a+b", 101),
        (r"def \w+\(", 101),
        ("x{2,4}", 3),
        ("a*b*", 101**2),
    ],
)
def test_patterns_that_end_soon_are_known_as_such(pattern: str, most: float) -> None:
    """For one character of a line of a hundred."""
    assert 1 <= worst_case_steps(pattern, 1, 100) <= most


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+b", "(?:a|a)*b", "(a*)*", "(?:a?){30}", "((x)*y)*", "(?i:a+)+", "(a{1,9}){2,}"],
)
def test_patterns_that_may_never_end_are_known_as_such(pattern: str) -> None:
    """A repeat of what can itself match in several ways."""
    assert worst_case_steps(pattern, 1, 100) == float("inf")


@given(st.text(alphabet="ab()[]|*+?{}1,2\\^$.:", max_size=20))
def test_every_pattern_that_compiles_has_an_estimate(pattern: str) -> None:
    """It ends, and is at least the length of the text."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, FutureWarning):
        return
    assert worst_case_steps(pattern, 7, 100) >= 7
