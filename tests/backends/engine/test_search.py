"""grep and find as whole searches: what they answer, and what ends them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backends.engine import frames, rg, scan, search
from backends.engine.faults import Fault
from backends.engine.place import Place
from backends.engine.walk import OsTree

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


def write(root: Path, files: dict[str, bytes | str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def work(kind: str, **args: Any) -> tuple[list[dict[str, Any]], int, Any]:
    """Run the worker; return (parts, kind of the last frame, its value)."""
    path = args.pop("path")
    args = {"path": os.fsencode(path), "timeout_s": 30.0, **args}
    read, written = os.pipe()
    out = bytearray()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.close(read)
            code = search.worker_main(kind, args, written)
        finally:
            os._exit(code)
    os.close(written)
    with os.fdopen(read, "rb") as pipe:
        out += pipe.read()
    os.waitpid(pid, 0)
    values = [
        (frame_kind, request_id, frames.decode_value(payload))
        for frame_kind, request_id, payload in frames.FrameReader().feed(bytes(out))
    ]
    assert all(request_id == 0 for _, request_id, _ in values)
    assert all(frame_kind == frames.PART for frame_kind, _, _ in values[:-1])
    return [value for _, _, value in values[:-1]], values[-1][0], values[-1][2]


def grep(path: str | Path, pattern: str, **args: Any) -> tuple[list[Any], dict[str, Any]]:
    parts, kind, value = work("grep", path=path, pattern=pattern, **args)
    assert kind == frames.RESULT, value
    return [match for part in parts for match in part.get("final", ())], value


def find(path: str | Path, pattern: str, limit: int = 1000) -> tuple[list[bytes], dict[str, Any]]:
    parts, kind, value = work("find", path=path, pattern=pattern, limit=limit)
    assert kind == frames.RESULT, value
    return [
        found for part in parts if "paths" in part for found in part["paths"].split(b"\0")
    ], value


def fault_of(kind: str, path: str | Path, pattern: str = "x", **args: Any) -> list[Any]:
    _, last, value = work(kind, path=path, pattern=pattern, **args)
    assert last == frames.FAULT
    return list(value)


both_engines = pytest.mark.parametrize("with_rg", [True, False])


@both_engines
@pytest.mark.parametrize("pattern", ["--help", "-x", "->", "--pre=./pre.sh"])
def test_pattern_that_begins_with_a_dash_is_a_pattern(
    root: Path, pattern: str, with_rg: bool
) -> None:
    write(root, {"f.txt": "usage: app --help\n-x ->\n", "pre.sh": "#!/bin/sh\ntouch PWNED\n"})
    (root / "pre.sh").chmod(0o755)
    found, _ = grep(root, pattern, rg=with_rg)
    assert [match[0] for match in found] == ([b"f.txt"] if "pre" not in pattern else [])
    assert not (root / "PWNED").exists()


@both_engines
def test_only_line_feeds_end_lines(root: Path, with_rg: bool) -> None:
    write(root, {"f.txt": b"a\x0cb\nc\xe2\x80\xa8d\nNEEDLE\n"})
    assert grep(root, "NEEDLE", rg=with_rg)[0] == [[b"f.txt", 3, "NEEDLE", False, [], []]]


@both_engines
@pytest.mark.parametrize("lead", [7, 100000])
def test_long_line_is_cut_around_the_match(root: Path, lead: int, with_rg: bool) -> None:
    write(root, {"min.js": "y" * lead + "needle " + "x" * 120000})
    ((_, line, text, cut, _, _),), _ = grep(root, "needle", rg=with_rg)
    assert (line, cut, len(text)) == (1, True, 500)
    assert "needle" in text


@both_engines
def test_hidden_files_are_searched_and_git_is_not(root: Path, with_rg: bool) -> None:
    write(root, {".github/ci.yml": "needle", ".git/config": "needle", ".env": "needle"})
    assert [match[0] for match in grep(root, "needle", rg=with_rg)[0]] == [
        b".env",
        b".github/ci.yml",
    ]


@both_engines
def test_binary_file_is_counted_and_not_shown(root: Path, with_rg: bool) -> None:
    write(root, {"a.bin": b"PK\x03\x04\x00needle\x00", "b.txt": "needle", "c.bin": b"\x00nothing"})
    found, summary = grep(root, "needle", rg=with_rg)
    assert [match[0] for match in found] == [b"b.txt"]
    assert (summary["binary_skipped"], summary["files_searched"]) == (1, 2)


@both_engines
def test_nul_far_behind_many_matches_makes_a_file_binary(root: Path, with_rg: bool) -> None:
    write(root, {"a.txt": b"needle\n" * 2000000 + b"\x00", "b.txt": b"needle\n"})
    found, summary = grep(root, "needle", limit=3, rg=with_rg)
    assert [match[0] for match in found] == [b"b.txt"]
    assert (summary["binary_skipped"], summary["more"]) == (1, False)


@both_engines
@pytest.mark.parametrize(("limit", "more"), [(4, True), (5, False), (6, False)])
def test_more_is_told_only_when_there_is_more(
    root: Path, limit: int, more: bool, with_rg: bool
) -> None:
    write(root, {"a.txt": "x\nx\n", "b.txt": "x\nx\ny\nx\n"})
    found, summary = grep(root, "x", limit=limit, rg=with_rg)
    assert (len(found), summary["more"]) == (min(limit, 5), more)


@both_engines
def test_one_file_named_outright_is_searched(root: Path, with_rg: bool) -> None:
    write(root, {".gitignore": "a.log\n", "a.log": "needle\n"})
    (root / "link").symlink_to("a.log")
    assert grep(root / "a.log", "needle", rg=with_rg)[0] == [[b"a.log", 1, "needle", False, [], []]]
    assert grep(root / "link", "needle", rg=with_rg)[0][0][0] == b"link"
    assert grep(root / "a.log", "absent", rg=with_rg)[1]["files_searched"] == 1
    assert grep(root / "a.log", "needle", glob="*.txt", rg=with_rg)[1]["files_searched"] == 0


def test_what_cannot_be_searched_is_a_fault_that_names_it(root: Path) -> None:
    os.mkfifo(root / "pipe")
    write(root, {"file.txt": "x"})
    assert fault_of("grep", root / "nope")[0] == "not_found"
    assert fault_of("find", root / "nope")[0] == "not_found"
    assert fault_of("find", root / "file.txt")[0] == "not_directory"
    assert fault_of("grep", root / "pipe")[0] == "not_regular"
    assert fault_of("grep", root, "a(")[0] == "invalid_pattern"
    assert fault_of("grep", root, glob="[a")[0] == "invalid_pattern"
    assert fault_of("find", root, "{a")[0] == "invalid_pattern"
    code, (path, nearest, names) = fault_of("grep", root / "fil.txt")
    assert (code, path, nearest) == ("not_found", os.fsencode(root / "fil.txt"), os.fsencode(root))
    assert b"file.txt" in names


@both_engines
def test_fifo_on_the_way_is_passed_by(root: Path, with_rg: bool) -> None:
    os.mkfifo(root / "pipe")
    write(root, {"z.txt": "needle"})
    assert len(grep(root, "needle", rg=with_rg)[0]) == 1


@both_engines
@pytest.mark.skipif(os.getuid() == 0 and not hasattr(os, "setresuid"), reason="needs another user")
def test_unreadable_folder_and_file_are_notes(root: Path, with_rg: bool) -> None:
    write(root, {"ok/n.txt": "answer\n", "locked/n.txt": "answer\n", "shut.txt": "answer\n"})
    (root / "shut.txt").chmod(0)
    (root / "locked").chmod(0)
    for folder in (root, *root.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o755)
    try:
        found, summary = _as_nobody(lambda: grep(root, "answer", rg=with_rg))
        paths, told = _as_nobody(lambda: find(root, "*.txt"))
    finally:
        (root / "locked").chmod(0o755)
    assert [match[0] for match in found] == [b"ok/n.txt"]
    assert (summary["unreadable"], summary["unreadable_total"]) == ([b"locked", b"shut.txt"], 2)
    assert (summary["files_searched"], summary["more"]) == (1, False)
    assert paths == [b"ok/n.txt", b"shut.txt"]
    assert told["unreadable"] == [b"locked"]


def _as_nobody(call: Callable[[], Any]) -> Any:
    """Run `call` with the rights of a user who owns nothing."""
    if os.getuid() != 0:
        return call()
    os.setresuid(-1, 65534, 0)
    try:
        return call()
    finally:
        os.setresuid(-1, 0, 0)


@both_engines
def test_context_lines_hold_no_matches(root: Path, with_rg: bool) -> None:
    write(root, {"f.txt": "1\n2\nhit a\n4\nhit b\n6\r\nseven"})
    found, _ = grep(root, "hit", context=2, rg=with_rg)
    assert found == [
        [b"f.txt", 3, "hit a", False, [[1, "1"], [2, "2"]], [[4, "4"]]],
        [b"f.txt", 5, "hit b", False, [[4, "4"]], [[6, "6"], [7, "seven"]]],
    ]
    found, _ = grep(root, "hit", context=2, limit=1, rg=with_rg)
    assert found[0][5] == [[4, "4"]], "a match beyond the limit is no context either"


@both_engines
def test_progress_comes_as_batches_of_matches(root: Path, with_rg: bool) -> None:
    write(root, {f"f{number}.txt": "needle\n" for number in range(30)})
    parts, _, _ = work("grep", path=root, pattern="needle", rg=with_rg)
    told = [tuple(match) for part in parts for match in part.get("matches", ())]
    assert sorted(told) == sorted((b"f%d.txt" % number, 1, "needle", False) for number in range(30))


@both_engines
def test_large_result_is_sent_in_several_frames(root: Path, with_rg: bool) -> None:
    write(root, {"f.txt": ("needle " + "é" * 490 + "\n") * 4000})
    found, _ = grep(root, "needle", limit=4000, context=0, rg=with_rg)
    assert [match[1] for match in found] == list(range(1, 4001))


def test_wide_context_fits_its_frame(root: Path) -> None:
    write(
        root, {"f.txt": ("\U0001f600" * 2000 + "\n") * 300 + "needle\n" + ("é" * 3000 + "\n") * 300}
    )
    ((_, line, _, _, before, after),), _ = grep(root, "needle", context=300, max_line_chars=5000)
    assert line == 301
    assert [number for number, _ in before] == list(range(301 - len(before), 301))
    assert [number for number, _ in after] == list(range(302, 302 + len(after)))
    assert before
    assert after


@pytest.mark.parametrize("with_rg", [True, False])
def test_catastrophic_pattern_ends_with_its_process(root: Path, with_rg: bool) -> None:
    """The worker can be killed while one match runs wild; nobody waits for it."""
    write(root, {"f.txt": "a" * 200 + "b\n"})
    pid = os.fork()
    if pid == 0:
        try:
            args = {"pattern": "(a+)+$", "path": os.fsencode(root), "timeout_s": 1.0, "rg": with_rg}
            search.worker_main("grep", args, os.open(os.devnull, os.O_WRONLY))
        finally:
            os._exit(0)
    time.sleep(0.2)
    os.kill(pid, 9)
    assert os.waitpid(pid, 0)[0] == pid


def test_time_limit_is_checked_between_files(root: Path) -> None:
    write(root, {f"f{number}.txt": "x\n" for number in range(100)})
    for kind in ("grep", "find"):
        code, arguments = fault_of(kind, root, timeout_s=0.0, limit=10)
        assert (code, arguments) == ("search_timeout", [0.0])


def test_cancelled_search_ends_with_a_fault(root: Path) -> None:
    write(root, {f"f{number}.txt": "x\n" for number in range(100)})
    tree = OsTree(Place(), os.fsencode(root))
    for run in (search.grep, search.find):
        with pytest.raises(Fault) as caught:
            run(tree, {"pattern": "x"}, lambda part: None, lambda: True)
        assert caught.value.code == "cancelled"


@pytest.mark.parametrize(
    "script",
    ["#!/bin/sh\nexit 2\n", "#!/bin/sh\necho nonsense\n", "no program", "#!/nonexistent\n"],
)
def test_ripgrep_that_does_not_work_is_done_without(root: Path, script: str) -> None:
    write(root, {"f.txt": "needle\n", "rg": script})
    (root / "rg").chmod(0o755)
    tree = OsTree(Place(), os.fsencode(root))
    final: list[Any] = []
    summary = search.grep(
        tree,
        {"pattern": "needle$"},
        lambda part: final.extend(part.get("final", ())),
        program=os.fsencode(root / "rg"),
    )
    assert summary["engine"] == "python"
    assert [match[:2] for match in final] == [[b"f.txt", 1]]


def test_relative_folder_on_the_path_gives_no_ripgrep(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, {"rg": "#!/bin/sh\ntouch PWNED\n"})
    (root / "rg").chmod(0o755)
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", ".:")
    assert rg.find_program() in (None, b"/usr/bin/rg", b"/bin/rg", b"/usr/local/bin/rg")


class Stream:
    """A tree of one file that is made up while it is read."""

    def __init__(self, chunks: Callable[[], Iterator[bytes]]) -> None:
        self.read = lambda path: chunks()


def grep_stream(chunks: Callable[[], Iterator[bytes]], pattern: str, **query: Any) -> list[Any]:
    final: list[Any] = []
    search.grep(
        Stream(chunks),
        {"pattern": pattern, **query},
        lambda part: final.extend(part.get("final", ())),
        file=b"f",
    )
    return final


@pytest.mark.parametrize("size", [1, 3, 1000, 1 << 20])
def test_line_numbers_do_not_depend_on_how_the_file_comes(size: int) -> None:
    content = b"".join(b"line %d\r\n" % number for number in range(1, 700000)) + b"last"

    def chunks() -> Iterator[bytes]:
        step = max(size, len(content) // 20000)
        for at in range(0, len(content), step):
            yield content[at : at + step]

    found = grep_stream(chunks, r"^(line \d*99999|last)$", context=1)
    assert [match[1] for match in found] == [
        99999,
        199999,
        299999,
        399999,
        499999,
        599999,
        699999,
        700000,
    ]
    assert found[1][4:] == [[[199998, "line 199998"]], [[200000, "line 200000"]]]


@pytest.mark.parametrize("at", [0, 10, scan.BLOCK - 3, scan.BLOCK, scan.BLOCK * 2 + 5])
def test_needle_is_found_anywhere_in_a_very_long_line(at: int) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"first\n"
        line = b"x" * at + b"needle" + b"y" * (scan.BLOCK * 3)
        for start in range(0, len(line), 1 << 20):
            yield line[start : start + (1 << 20)]
        yield b"\nlast needle\n"

    ((_, line, text, cut, _, _), last) = grep_stream(chunks, "needle|nix")
    assert (line, cut) == (2, True)
    assert "needle" in text
    assert last[1:3] == [3, "last needle"]


def test_anchors_hold_only_at_the_ends_of_a_very_long_line() -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(10):
            yield b"ab" * (1 << 19)
        yield b"end\r\nab\n"

    assert [match[1] for match in grep_stream(chunks, "^ab")] == [1, 2]
    assert [match[1] for match in grep_stream(chunks, "ab$")] == [2]
    assert [match[1] for match in grep_stream(chunks, "^b|a$")] == []
    assert [match[1] for match in grep_stream(chunks, "end$")] == [1]


@pytest.mark.slow
def test_memory_stays_bounded_whatever_the_size_of_the_file() -> None:
    script = """if True:
        import re, sys
        from backends.engine import search
        class Stream:
            def read(self, path):
                for _ in range(300):
                    yield b"x" * (1 << 20) if sys.argv[1] == "line" else b"yyyyyyy\\n" * (1 << 17)
        def peak_kb():
            return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read()).group(1))
        before = peak_kb()
        query = {"pattern": "[xy]z|q+", "timeout_s": 100.0}
        search.grep(Stream(), query, lambda part: None, file=b"f")
        print(peak_kb() - before)
    """
    for kind in ("line", "lines"):
        printed = subprocess.run(
            [sys.executable, "-c", script, kind], cwd=REPOSITORY, check=True, stdout=subprocess.PIPE
        ).stdout
        assert 0 < int(printed) < 80 << 10, kind


# find -----------------------------------------------------------------------------------------


def test_find_takes_slashes_and_depth_by_the_rules(root: Path) -> None:
    write(root, {"2026/07/26.md": "", "top.md": ""})
    assert [
        len(find(root, pattern)[0])
        for pattern in ("2026/07/*.md", "2026/07/26.md", "**/07/*.md", "*.md")
    ] == [1, 1, 1, 2]
    assert find(root / "2026", "07/*.md")[0] == [b"07/26.md"]


def test_find_shows_hidden_names_folders_and_links(root: Path) -> None:
    write(root, {".github/workflows/ci.yml": "", ".eslintrc.json": "", "a.json": ""})
    (root / "link.json").symlink_to("a.json")
    os.mkfifo(root / "pipe.json")
    assert find(root, ".github/workflows/*.yml")[0] == [b".github/workflows/ci.yml"]
    assert find(root, "*.json")[0] == [b".eslintrc.json", b"a.json", b"link.json", b"pipe.json"]
    assert find(root, "work*")[0] == [b".github/workflows/"]
    assert find(root, "*/")[0] == [b".github/", b".github/workflows/"]


@pytest.mark.parametrize(("limit", "more"), [(2, True), (3, False), (4, False)])
def test_find_tells_more_only_when_there_is_more(root: Path, limit: int, more: bool) -> None:
    write(root, {"a": "", "b": "", "c": ""})
    found, summary = find(root, "*", limit)
    assert (len(found), summary["more"]) == (min(limit, 3), more)


def test_find_says_that_ignored_files_were_left_out(root: Path) -> None:
    write(
        root,
        {
            ".gitignore": "node_modules\n*.log\n",
            "node_modules/effect/package.json": "",
            "a.log": "",
        },
    )
    assert find(root, "node_modules/effect/package.json")[1]["ignored"] == 1
    assert find(root, "package.json")[1]["ignored"] == 1
    assert find(root, "*.log")[1]["ignored"] == 1
    assert find(root, "node_modules")[1]["ignored"] == 1
    assert find(root, "absent.json")[1]["ignored"] == 0
    assert find(root, ".gitignore")[1]["ignored"] == 0
    assert find(root / "node_modules", "*.json")[0] == [b"effect/package.json"]


def test_find_gives_names_as_bytes(root: Path) -> None:
    for name in (b"new\nline.txt", b"bad\xff.txt", b"-rf.txt"):
        with open(os.path.join(os.fsencode(root), name), "wb"):
            pass
    assert find(root, "*.txt")[0] == [b"-rf.txt", b"bad\xff.txt", b"new\nline.txt"]


def test_home_is_where_the_tilde_leads(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, {"a.txt": "needle\n"})
    monkeypatch.setenv("HOME", str(root))
    assert grep("~", "needle")[0][0][0] == b"a.txt"
    assert find("~/", "*.txt")[1]["more"] in (True, False)


OLD_PYTHONS = sorted(Path("~/.pyenv/versions").expanduser().glob("3.*/bin/python"))


@pytest.mark.parametrize("python", OLD_PYTHONS, ids=[path.parts[-3] for path in OLD_PYTHONS])
def test_every_python_finds_the_same(root: Path, python: Path) -> None:
    write(
        root,
        {".gitignore": "*.log\n", "a.log": "foo1", "b.txt": "Foo1\r\nécole ÉCOLE x\n\nfoo² bar\n",
         "c/d.bin": b"\0foo1", "e/f": "x"},
    )  # fmt: skip
    script = f"""if True:
        import sys, types
        sys.modules["backends"] = backends = types.ModuleType("backends")
        backends.__path__ = [{str(REPOSITORY / "backends")!r}]
        from backends.engine import search
        for pattern in ("foo\\\\d", "\\\\bécole\\\\b", "^$", "\\\\Wx$", "(^)*\\\\w+²"):
            for rg in (True, False):
                args = dict(pattern=pattern, context=1, ignore_case=True, rg=rg, timeout_s=30.0)
                search.worker_main("grep", dict(args, path={os.fsencode(root)!r}), 1)
        args = dict(pattern="{{*.txt,[e]}}", limit=9, path={os.fsencode(root)!r})
        search.worker_main("find", args, 1)
    """

    def run(program: str) -> list[Any]:
        command = [program, "-I", "-S", "-c", script]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60).stdout
        return [
            frames.decode_value(payload)
            for kind, _, payload in frames.FrameReader().feed(printed)
            if kind != frames.PART or b"final" in payload or b"paths" in payload
        ]

    assert run(str(python)) == run(sys.executable)
