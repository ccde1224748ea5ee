"""What a model's path means."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations import (
    FileChanged,
    NotRegularFile,
    OperationUnsupported,
    PathDenied,
    PathIsDirectory,
    PathNotDirectory,
    PathNotFound,
    TooLarge,
)
from toolkit.failures import ToolFailure
from toolkit.paths import (
    at_existing,
    check_cwd,
    join_given,
    path_key,
    quote_for_shell,
    resolve_path,
    retell,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("given_path", "resolved"),
    [
        ("a.py", "/w/a.py"),
        ("src/a.py", "/w/src/a.py"),
        ("./a.py", "/w/a.py"),
        ("././/a.py", "/w/a.py"),
        (".", "/w"),
        ("./", "/w"),
        ("..", "/w/.."),
        ("../x", "/w/../x"),
        ("/etc/hosts", "/etc/hosts"),
        ("~", "~"),
        ("~/x", "~/x"),
        ("~bob/x", "/w/~bob/x"),
        ("./~", "/w/~"),
        ("@src/a.py", "/w/src/a.py"),
        ("@/etc/hosts", "/etc/hosts"),
        ("@~/x", "~/x"),
        ("@", "/w/@"),
        ("file:///a/b%20c", "/a/b c"),
        ("FILE:///a", "/a"),
        ("file://localhost/a/%C3%A9", "/a/é"),
        ("-n", "/w/-n"),
        (" lead", "/w/ lead"),
        ("dir/", "/w/dir/"),
        ("$(touch PWNED)", "/w/$(touch PWNED)"),
    ],
)
def test_resolving(given_path, resolved):
    assert resolve_path(given_path, "/w") == resolved


@pytest.mark.parametrize(
    ("given_path", "says"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("@ ", "empty"),
        ("a\x00b", "NUL"),
        ("file:///a%00b", "NUL"),
        ("file://other/a", "this machine"),
        ("file://", "this machine"),
        ("file:///%ff", "UTF-8"),
    ],
)
def test_what_is_no_path_is_refused(given_path, says):
    with pytest.raises(ToolFailure, match=says) as caught:
        resolve_path(given_path, "/w")
    assert caught.value.kind == "invalid_arguments"


@pytest.mark.parametrize("cwd", ["/", "/w", "~", "~/w"])
def test_a_working_folder_is_on_the_target(cwd):
    assert check_cwd(cwd) == cwd


@pytest.mark.parametrize("cwd", ["", ".", "w", "~bob"])
def test_a_relative_working_folder_is_refused(cwd):
    with pytest.raises(ValueError, match="absolute"):
        check_cwd(cwd)


def test_two_ways_to_write_a_path_have_one_key():
    assert path_key("/w/a/../b") == path_key("/w/./b") == "/w/b"


class Names:
    """A folder in memory that tells what it holds, and counts the trips."""

    def __init__(self, folder: str, *names: str) -> None:
        self.folder = folder
        self.names = names
        self.trips: list[str] = []

    async def __call__(self, path: str) -> str:
        self.trips.append(path)
        if path in {f"{self.folder}/{name}" for name in self.names}:
            return "content"
        raise PathNotFound(path, self.folder, self.names)


async def test_the_exact_name_costs_one_trip():
    names = Names("/w", "a b", "a\u00a0b")
    found = await at_existing("a b", "/w", names)
    assert (found.path, found.note, names.trips) == ("/w/a b", "", ["/w/a b"])


@pytest.mark.parametrize(
    ("there", "asked"),
    [
        ("Shot 3.00.00\u202fPM.png", "Shot 3.00.00 PM.png"),
        ("it\u2019s.txt", "it's.txt"),
        ("it's.txt", "it\u2019s.txt"),
        (unicodedata.normalize("NFD", "café.txt"), unicodedata.normalize("NFC", "café.txt")),
        (unicodedata.normalize("NFC", "café.txt"), unicodedata.normalize("NFD", "café.txt")),
    ],
)
async def test_a_name_that_only_looks_the_same_is_taken_and_said_so(there, asked):
    """B107."""
    found = await at_existing(asked, "/w", Names("/w", there, "other"))
    assert found.path == f"/w/{there}"
    assert there in found.note


async def test_two_names_that_look_the_same_are_not_guessed_between():
    """B107."""
    names = Names("/w", "a\u00a0b", "a\u202fb")
    with pytest.raises(ToolFailure, match="no such file"):
        await at_existing("a b", "/w", names)


async def test_a_folder_on_the_way_may_be_the_one_that_differs():
    async def attempt(path: str) -> str:
        if path == "/w/a\u00a0b/c.txt":
            return "content"
        raise PathNotFound(path, "/w", ("a\u00a0b/",))

    assert (await at_existing("a b/c.txt", "/w", attempt)).path == "/w/a\u00a0b/c.txt"


async def test_an_existing_name_with_an_at_sign_wins():
    assert (await at_existing("@types", "/w", Names("/w", "@types", "types"))).path == "/w/@types"
    assert (await at_existing("@types", "/w", Names("/w", "types"))).path == "/w/types"


async def test_a_missing_path_is_told_as_given_with_what_is_there():
    with pytest.raises(ToolFailure) as caught:
        await at_existing("src/mian.py", "/w", Names("/w/src", "main.py", "util.py"))
    assert str(caught.value) == "src/mian.py: no such file; src has main.py, util.py"
    assert caught.value.kind == "not_found"


@pytest.mark.parametrize(
    ("given_path", "nearest", "says"),
    [
        ("x", "/w", "x: no such file; the working folder has a"),
        ("x/y/z", "/w", "x/y/z: no such file; the working folder has a"),
        ("/o/x", "/o", "/o/x: no such file; /o has a"),
        ("~/x", "~", "~/x: no such file; ~ has a"),
        ("../x", "/", "../x: no such file; / has a"),
        ("x", None, "x: no such file"),
    ],
)
def test_the_nearest_folder_is_named_as_the_model_would(given_path, nearest, says):
    assert str(retell(PathNotFound("/whatever", nearest, ("a",)), given_path, "/w")) == says


@pytest.mark.parametrize(
    ("error", "says", "kind"),
    [
        (
            PathNotFound("/w/x", "/w", ()),
            "x: no such file; the working folder has nothing like it",
            "not_found",
        ),
        (
            PathIsDirectory("/w/x", ("a", "b/"), 5),
            "x: is a folder, not a file; it has a, b/ and 3 more",
            "failed",
        ),
        (PathIsDirectory("/w/x", (), 0), "x: is a folder, not a file; it is empty", "failed"),
        (PathIsDirectory("/w/x"), "x: is a folder, not a file", "failed"),
        (PathDenied("/w/x", "Permission denied"), "x: Permission denied", "denied"),
        (PathNotDirectory("/w/x"), "x: is a file, not a folder", "failed"),
        (NotRegularFile("/w/x", "is a FIFO"), "x: is a FIFO", "failed"),
        (FileChanged("/w/x"), "x: changed since it was read", "changed"),
        (TooLarge("/w/x", 2048, 1024), "x: 2.0 KB is over the limit of 1.0 KB", "too_large"),
    ],
)
def test_faults_are_told_with_the_path_as_given(error, says, kind):
    told = retell(error, "x", "/w")
    assert str(told) == says
    assert told.kind == kind


async def test_what_a_target_cannot_do_is_left_to_the_tool():
    async def attempt(_path: str) -> str:
        raise OperationUnsupported("read_lines", "no")

    with pytest.raises(OperationUnsupported):
        await at_existing("x", "/w", attempt)


def test_paths_inside_a_folder_are_named_as_the_model_would():
    assert join_given(None, "a/b") == "a/b"
    assert join_given(".", "a") == "a"
    assert join_given("src", "a") == "src/a"
    assert join_given("./src/", "a") == "src/a"
    assert join_given("/etc", "a") == "/etc/a"


def test_paths_are_quoted_for_a_shell():
    assert quote_for_shell("a b") == "'a b'"
    assert quote_for_shell("-n") == "./-n"
    assert quote_for_shell("~/a b") == "~/'a b'"
    assert quote_for_shell("a'; rm -rf /") == "'a'\"'\"'; rm -rf /'"


@given(st.text())
def test_any_text_is_a_path_or_is_refused(text):
    try:
        path = resolve_path(text, "/w")
    except ToolFailure:
        return
    assert path.startswith(("/", "~/")) or path == "~"
    assert "\x00" not in path
