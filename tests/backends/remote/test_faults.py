"""Faults of the engine become errors of operations, and nonsense becomes a plain one."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.engine.faults import CODES
from backends.remote.faults import error_from_fault
from operations.errors import (
    BackendUnavailable,
    FileChanged,
    InvalidPattern,
    NotRegularFile,
    OperationError,
    OperationUnsupported,
    OutsideRoot,
    PathDenied,
    PathError,
    PathExists,
    PathIsDirectory,
    PathNotDirectory,
    PathNotFound,
    SearchTimeout,
    StorageFull,
    TooLarge,
)

CASES = {
    "not_found": ([b"/a/x", b"/a", [b"y", b"z/"]], PathNotFound("/a/x", "/a", ("y", "z/"))),
    "denied": ([b"/a", "Permission denied"], PathDenied("/a", "Permission denied")),
    "is_directory": ([b"/a", [b"b"], 4], PathIsDirectory("/a", ("b",), 4)),
    "not_directory": ([b"/a/b", "/a is a file"], PathNotDirectory("/a/b", "/a is a file")),
    "exists": ([b"/a", ""], PathExists("/a")),
    "not_regular": ([b"/a", "is a FIFO"], NotRegularFile("/a", "is a FIFO")),
    "outside_root": ([b"/a", ""], OutsideRoot("/a")),
    "storage_full": ([b"/a", "No space left"], StorageFull("/a", "No space left")),
    "path": ([b"/a\xff", "Input/output error"], PathError("/a\udcff", "Input/output error")),
    "changed": ([b"/a"], FileChanged("/a")),
    "too_large": ([b"/a", 9, 8], TooLarge("/a", 9, 8)),
    "invalid_pattern": (["(", "never closed", 0], InvalidPattern("(", "never closed", 0)),
    "search_timeout": ([30], SearchTimeout(30.0)),
    "unsupported": (["grep", "no rg"], OperationUnsupported("grep", "no rg")),
    "unavailable": (["too many"], BackendUnavailable("the target", "too many")),
    "cancelled": ([], OperationError("the operation was cancelled")),
    "bad_request": (["why"], OperationError("the target refused the request: why")),
    "internal": (["Trace\n"], OperationError("internal error on the target: Trace")),
}


def test_every_code_of_the_engine_has_an_error():
    assert set(CASES) == set(CODES)
    for code, names in CODES.items():
        assert len(CASES[code][0]) == len(names)


@pytest.mark.parametrize("code", sorted(CASES))
def test_a_fault_becomes_its_error(code):
    arguments, expected = CASES[code]
    error = error_from_fault(code, arguments)
    assert type(error) is type(expected)
    assert str(error) == str(expected)
    assert str(pickle.loads(pickle.dumps(error))) == str(expected)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=6,
)


@given(code=st.sampled_from(sorted(CASES)) | plain, arguments=st.lists(plain, max_size=4) | plain)
def test_a_hostile_fault_is_still_one_plain_error_with_a_text(code, arguments):
    error = error_from_fault(code, arguments)
    assert isinstance(error, OperationError)
    assert isinstance(str(error), str)


@pytest.mark.parametrize("code", sorted(CASES))
def test_a_wrong_number_of_arguments_is_said_to_be_malformed(code):
    arguments, _ = CASES[code]
    error = error_from_fault(code, [*arguments, "more"])
    assert type(error) is OperationError
    assert "malformed" in str(error)


def test_texts_and_lists_are_bounded():
    assert len(str(error_from_fault("internal", ["x" * 1_000_000]))) < 5000
    assert type(error_from_fault("not_found", [b"/a", b"/", [b"x"] * 5000])) is OperationError
    for code in ("x" * 1_000_000, 10**5000, ["x"] * 100_000):
        assert len(str(error_from_fault(code, []))) < 200


def test_the_end_of_a_far_traceback_is_kept():
    assert str(error_from_fault("internal", ["x" * 9000 + "ValueError: it"])).endswith(
        "ValueError: it"
    )
