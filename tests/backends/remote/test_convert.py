"""Values of the engine become values of operations, and nonsense does not."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.remote import convert
from backends.remote.convert import MalformedReply
from operations.values import (
    DirectoryListing,
    Entry,
    ExecResult,
    FileVersion,
    GlobResult,
    GrepContext,
    GrepMatch,
    GrepResult,
    LineWindow,
    OutputSnapshot,
    Progress,
    TargetFacts,
    WriteResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW = {
    "kind": "text",
    "start": 3,
    "lines": 1,
    "total_lines": 9,
    "size": 40,
    "encoding": "utf-8",
    "mime_type": None,
    "stopped_by": "lines",
    "long_line_bytes": 0,
}
EXEC = {
    "ended": "exited",
    "exit_code": 3,
    "signal": None,
    "total_bytes": 10,
    "total_lines": 1,
    "kept_path": b"/tmp/k\xff",
    "kept_bytes": 10,
    "dropped": None,
    "killed": "none",
    "survivors": ["sleep"],
    "background": 1,
    "shell": "bash",
    "duration_s": 0.5,
}
FACTS = {
    "home": b"/root",
    "machine_id": "abc",
    "platform": "linux",
    "shell": "bash",
    "capabilities": ["rg"],
    "umask": 0o27,
    "more": "is ignored",
}
SUMMARY = {
    "more": True,
    "files_searched": 4,
    "binary_skipped": 1,
    "unreadable": [b"x"],
    "unreadable_total": 2,
    "engine": "rg",
}
SNAPSHOT = {"data": b"ab", "start": 4, "total_bytes": 6, "total_lines": 0}

#: One function with a good value for it and what comes out.
CASES: list[tuple[Callable[[object], object], object, object]] = [
    (convert.flag, True, True),
    (convert.path_text, b"/a\xff", "/a\udcff"),
    (convert.paths, [b"a", b"b"], ["a", "b"]),
    (convert.image_mime_type, "image/png", "image/png"),
    (convert.image_mime_type, None, None),
    (
        convert.file_version,
        {"device": 1, "inode": 2, "digest": b"d" * 32},
        FileVersion(device=1, inode=2, digest=b"d" * 32),
    ),
    (
        convert.write_result,
        {"created": False, "atomic": False, "reason": "owner"},
        WriteResult(created=False, atomic=False, reason="owner"),
    ),
    (
        lambda value: convert.line_window(value, b"line\n"),
        WINDOW,
        LineWindow(
            kind="text",
            data=b"line\n",
            start=3,
            lines=1,
            total_lines=9,
            size=40,
            stopped_by="lines",
        ),
    ),
    (convert.progress, {"done": 5, "total": None}, Progress(done=5)),
    (convert.progress, {"seen": 5, "found": 2}, Progress(done=5, found=2)),
    (
        convert.entry,
        [b"l", "symlink", b"x", True],
        Entry(name="l", kind="symlink", link_target="x", broken=True),
    ),
    (
        lambda value: convert.directory_listing([[b"f", "file", None, False]], value),
        {"total": 7},
        DirectoryListing(entries=(Entry(name="f", kind="file"),), total=7),
    ),
    (
        lambda value: convert.output_snapshot(value, 2),
        SNAPSHOT,
        OutputSnapshot(data=b"ab", start=4, total_bytes=6, total_lines=0),
    ),
    (
        convert.exec_result,
        EXEC,
        ExecResult(
            ended="exited",
            exit_code=3,
            total_bytes=10,
            total_lines=1,
            kept_path="/tmp/k\udcff",
            kept_bytes=10,
            survivors=("sleep",),
            background=1,
            duration_s=0.5,
        ),
    ),
    (
        convert.grep_match,
        [b"a.py", 3, "text", False],
        GrepMatch(path="a.py", line=3, text="text"),
    ),
    (
        convert.grep_match_in_context,
        [b"a.py", 3, "text", True, [[2, "before"]], []],
        GrepMatch(
            path="a.py",
            line=3,
            text="text",
            before=(GrepContext(line=2, text="before"),),
            cut=True,
        ),
    ),
    (
        lambda value: convert.grep_result([], value),
        SUMMARY,
        GrepResult(
            more=True,
            files_searched=4,
            binary_skipped=1,
            unreadable=("x",),
            unreadable_total=2,
            engine="rg",
        ),
    ),
    (
        lambda value: convert.glob_result(["a/"], value),
        {"more": False, "ignored": 0, "unreadable": [], "unreadable_total": 0},
        GlobResult(paths=("a/",)),
    ),
    (
        convert.target_facts,
        FACTS,
        TargetFacts(
            home="/root",
            machine_id="abc",
            platform="linux",
            shell="bash",
            capabilities=frozenset({"rg"}),
            umask=0o27,
        ),
    ),
]

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.sampled_from(["exited", "text", "file", "none", "owner", b"d" * 32]),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize(("make", "value", "expected"), CASES)
def test_a_good_value_becomes_what_it_says(make, value, expected):
    assert make(value) == expected


@given(case=st.sampled_from(CASES), junk=plain)
def test_junk_is_malformed_and_nothing_else(case, junk):
    make, _, expected = case
    try:
        made = make(junk)
    except MalformedReply:
        return
    assert type(made) is type(expected) or made is None or expected is None


@given(case=st.sampled_from([case for case in CASES if type(case[1]) is dict]), data=st.data())
def test_one_bad_field_is_malformed_or_taken_in_its_own_type(case, data):
    make, good, expected = case
    name = data.draw(st.sampled_from(sorted(good)))
    junk = data.draw(plain)
    try:
        made = make({**good, name: junk})
    except MalformedReply:
        return
    for field in dataclasses.fields(made):
        value = getattr(made, field.name)
        before = getattr(expected, field.name)
        if value is not None and before is not None:
            assert type(value) is type(before)


@pytest.mark.parametrize("name", sorted(EXEC))
def test_a_missing_field_of_a_result_is_malformed_unless_none_is_a_value(name):
    value = {key: held for key, held in EXEC.items() if key != name}
    if name in ("signal", "kept_path", "dropped"):
        assert convert.exec_result(value)
        return
    with pytest.raises(MalformedReply):
        convert.exec_result(value)


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (convert.entry, [b"a/b", "file", None, False]),
        (convert.entry, [b"", "file", None, False]),
        (convert.entry, [b"a", "door", None, False]),
        (convert.flag, 1),
        (convert.exec_result, {**EXEC, "exit_code": 256}),
        (convert.exec_result, {**EXEC, "exit_code": None}),
        (convert.exec_result, {**EXEC, "exit_code": True}),
        (convert.exec_result, {**EXEC, "signal": 9}),
        (convert.exec_result, {**EXEC, "duration_s": float("nan")}),
        (convert.exec_result, {**EXEC, "total_bytes": -1}),
        (convert.exec_result, {**EXEC, "total_bytes": 10**5000}),
        (convert.exec_result, {**EXEC, "duration_s": 10**5000}),
        (convert.exec_result, {**EXEC, "survivors": ["x" * 10_000]}),
        (convert.exec_result, {**EXEC, "survivors": ["x"] * 100_000}),
        (lambda value: convert.output_snapshot(value, 2), {**SNAPSHOT, "start": 5}),
        (lambda value: convert.output_snapshot(value, 1), SNAPSHOT),
        (convert.target_facts, {**FACTS, "home": b"relative"}),
        (convert.grep_match, [b"a", 0, "text", False]),
        (convert.image_mime_type, "text/html"),
    ],
)
def test_values_that_cannot_be_are_malformed(make, value):
    with pytest.raises(MalformedReply):
        make(value)


@pytest.mark.parametrize(
    ("change", "data"),
    [({"lines": 0}, b"x"), ({"lines": 2}, b""), ({"lines": 10}, b"x"), ({"start": 0}, b"x")],
)
def test_a_window_that_contradicts_itself_is_malformed(change, data):
    with pytest.raises(MalformedReply):
        convert.line_window({**WINDOW, **change}, data)


@given(st.binary(max_size=30))
def test_paths_of_any_bytes_make_the_round_trip(path):
    assert convert.path_bytes(convert.path_text(path)) == path


def test_what_is_shown_of_nonsense_is_bounded():
    with pytest.raises(MalformedReply) as caught:
        convert.flag("x" * 1_000_000)
    assert len(str(caught.value)) < 200
