"""The grep, find and ls tools, on mocks that have only what they need."""

from __future__ import annotations

import pytest

from operations import (
    DirectoryListing,
    Entry,
    GlobResult,
    GrepContext,
    GrepMatch,
    GrepResult,
    InvalidPattern,
    PathNotDirectory,
    PathNotFound,
    Progress,
    SearchTimeout,
)
from toolkit.abort import AbortController
from toolkit.tools.find import create_find_tool
from toolkit.tools.grep import create_grep_tool
from toolkit.tools.ls import create_ls_tool

pytestmark = pytest.mark.anyio


class Searchable:
    """The smallest place to grep in."""

    def __init__(self, result: GrepResult | Exception, *, folder: bool = True) -> None:
        self.result = result
        self.folder = folder
        self.trips: list = []

    async def is_directory(self, path):
        self.trips.append(path)
        return self.folder

    async def grep(self, query, *, on_matches=None):
        self.trips.append(query)
        if isinstance(self.result, Exception):
            raise self.result
        if on_matches:
            on_matches(self.result.matches)
        return self.result


def match(path, line, text="text", **more):
    return GrepMatch(path=path, line=line, text=text, **more)


def near(*lines):
    return tuple(GrepContext(line=line, text=f"line {line}") for line in lines)


def grep(*matches, **more):
    return create_grep_tool("/w", operations=Searchable(GrepResult(matches=matches, **more)))


async def test_matches_are_path_line_text(run):
    message = await run(grep(match("a/b.py", 3, "x = 1"), match("c", 12, "")), pattern="x")
    assert message.text == "a/b.py:3: x = 1\nc:12: "
    assert [each["line"] for each in message.structured_content["matches"]] == [3, 12]
    assert message.structured_content["more"] is False


async def test_the_query_is_what_was_asked(run):
    place = Searchable(GrepResult())
    arguments = {
        "pattern": "--help",
        "path": "src",
        "glob": "*.py",
        "ignore_case": True,
        "literal": True,
        "context": 2,
        "limit": 7,
    }
    await run(create_grep_tool("/w", operations=place, timeout_s=9), **arguments)
    query = place.trips[0]
    assert query.path == "/w/src"
    assert (query.timeout_s, query.max_line_chars) == (9, 500)
    for name in ("pattern", "glob", "ignore_case", "literal", "context", "limit"):
        assert getattr(query, name) == arguments[name]


async def test_paths_can_be_given_back_as_they_are_shown(run):
    for given, shown in (
        ("src", "src/a.py"),
        ("./src/", "src/a.py"),
        ("/e", "/e/a.py"),
        (".", "a.py"),
    ):
        message = await run(grep(match("a.py", 1)), pattern="x", path=given)
        assert message.text == f"{shown}:1: text"


async def test_a_file_that_was_named_is_shown_as_given(run):
    place = Searchable(GrepResult(matches=(match("a.py", 1),)), folder=False)
    message = await run(create_grep_tool("/w", operations=place), pattern="x", path="src/a.py")
    assert message.text == "src/a.py:1: text"
    place = Searchable(GrepResult(matches=(match("a.py", 1),)), folder=True)
    message = await run(create_grep_tool("/w", operations=place), pattern="x", path="src/a.py")
    assert message.text == "src/a.py/a.py:1: text"


async def test_a_search_is_one_trip(run):
    place = Searchable(GrepResult(matches=(match("b.py", 1),)))
    await run(create_grep_tool("/w", operations=place), pattern="x", path="src")
    assert len(place.trips) == 1


async def test_context_is_merged_and_runs_are_set_apart(run):
    matches = (
        match("a", 3, "M3", before=near(2), after=near(4)),
        match("a", 5, "M5", before=near(4), after=near(6)),
        match("a", 20, "M20", before=near(19)),
        match("b", 1, "M1", after=near(2)),
    )
    message = await run(grep(*matches), pattern="x", context=1)
    assert message.text.split("\n") == [
        "a-2- line 2",
        "a:3: M3",
        "a-4- line 4",
        "a:5: M5",
        "a-6- line 6",
        "--",
        "a-19- line 19",
        "a:20: M20",
        "--",
        "b:1: M1",
        "b-2- line 2",
    ]


async def test_no_match_is_no_error(run):
    """B63."""
    message = await run(grep(), pattern="x")
    assert (message.text, message.is_error) == ("No matches.", False)


@pytest.mark.parametrize(
    ("more", "note"),
    [
        ({"more": True}, "[Showing the first 1 matching line; there are more."),
        ({"binary_skipped": 1}, "[1 binary file was left out.]"),
        ({"binary_skipped": 2}, "[2 binary files were left out.]"),
        ({"unreadable": ("locked",), "unreadable_total": 1}, "[Could not be read: src/locked.]"),
        ({"unreadable": ("a", "b"), "unreadable_total": 30}, "src/b and 28 more.]"),
    ],
)
async def test_what_was_left_out_is_a_note_and_no_failure(run, more, note):
    """B28, B94, B96."""
    message = await run(grep(match("ok", 1), **more), pattern="x", path="src")
    assert message.text.startswith("src/ok:1: text\n\n[")
    assert note in message.text
    assert not message.is_error


async def test_long_lines_and_large_results_say_that_they_were_cut(run):
    """B97."""
    message = await run(grep(match("a", 1, "x" * 500, cut=True)), pattern="x")
    assert message.text.endswith("x [part of a longer line]")
    many = [match("a", line, "y" * 490) for line in range(1, 200)]
    message = await run(grep(*many), pattern="x", limit=1000)
    assert len(message.text.encode()) < 52_000
    assert "cut at its size limit" in message.text
    assert message.details["truncation"]["total_lines"] == 199


async def test_odd_names_and_texts_stay_on_one_line(run):
    message = await run(grep(match("a\nb\udcff", 1, "\x1b[31m\x00")), pattern="x")
    assert message.text == '"a\\nb\\xff":1: ␛[31m␀'


@pytest.mark.parametrize(
    ("error", "says", "kind"),
    [
        (InvalidPattern("a(", "missing )", 1), "missing )", "invalid_arguments"),
        (SearchTimeout(30.0), "did not end within 30 seconds", "timeout"),
        (
            PathNotFound("/w/nope", "/w", ("src/",)),
            "nope: no such file or folder; the working folder has src/",
            "not_found",
        ),
    ],
)
async def test_faults_are_errors(run, error, says, kind):
    """B63, B106."""
    message = await run(
        create_grep_tool("/w", operations=Searchable(error)), pattern="a(", path="nope"
    )
    assert says in message.text
    assert message.error_kind == kind


@pytest.mark.parametrize(
    "bad", [{"limit": 0}, {"context": -1}, {"pattern": ""}, {"glob": ""}, {"limit": "many"}]
)
async def test_bounds_are_checked(run, bad):
    message = await run(grep(), **({"pattern": "x"} | bad))
    assert message.error_kind == "invalid_arguments"
    assert next(iter(bad)) in message.text


async def test_matches_are_shown_as_they_come():
    updates = []
    tool = grep(match("a", 1), match("b", 2))
    await tool.execute("1", tool.parameters(pattern="x"), AbortController().signal, updates.append)
    assert updates[0].content[0].text == "a:1: text\nb:2: text"


class Findable:
    """The smallest place to find in."""

    def __init__(self, result: GlobResult | Exception, *, there: bool = True) -> None:
        self.result = result
        self.there = there
        self.trips: list = []

    async def exists(self, path):
        return self.there

    async def glob(self, pattern, root, *, limit, on_progress=None):
        self.trips.append((pattern, root, limit))
        if on_progress:
            on_progress(Progress(done=5, found=1))
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def find(*paths, **more):
    return create_find_tool("/w", operations=Findable(GlobResult(paths=paths, **more)))


async def test_paths_are_one_a_line(run):
    message = await run(find(".hidden", "a/", "b.py"), pattern="*")
    assert message.text == ".hidden\na/\nb.py"
    assert message.structured_content == {"paths": [".hidden", "a/", "b.py"], "more": False}
    message = await run(find("07/26.md"), pattern="07/*.md", path="2026")
    assert message.text == "2026/07/26.md"


async def test_nothing_found_is_no_error_and_tells_of_ignored_ones(run):
    """B109."""
    assert (await run(find(), pattern="*.zzz")).text == "Nothing found."
    message = await run(find(ignored=1), pattern="node_modules/x/package.json")
    assert "1 path that fits is left out by .gitignore" in message.text


@pytest.mark.parametrize(
    "place",
    [
        Findable(PathNotFound("/w/nope", "/w", ("a/",))),
        Findable(GlobResult(), there=False),
    ],
)
async def test_a_missing_folder_never_looks_like_an_empty_one(run, place):
    """B63."""
    message = await run(create_find_tool("/w", operations=place), pattern="*", path="nope")
    assert message.error_kind == "not_found"
    assert message.text.startswith("nope: no such folder")


async def test_the_limit_is_told_only_when_there_is_more(run):
    """B96."""
    assert "[" not in (await run(find("a", "b"), pattern="*", limit=2)).text
    message = await run(find("a", "b", more=True), pattern="*", limit=2)
    assert "[Showing the first 2 paths; there are more." in message.text
    many = [f"{number:05}" + "x" * 200 for number in range(300)]
    message = await run(find(*many), pattern="*")
    assert "[Showing 248 of 300 paths;" in message.text


async def test_odd_paths_are_escaped(run):
    message = await run(find("a\nb", 'q"', "\udcff"), pattern="*")
    assert message.text == '"a\\nb"\n"q\\""\n"\\xff"'


async def test_unreadable_folders_are_a_note(run):
    message = await run(find("a", unreadable=("locked/",), unreadable_total=1), pattern="*")
    assert message.text == "a\n\n[Could not be read: locked/.]"


class Listable:
    """The smallest place to list."""

    def __init__(self, *entries: Entry, total: int | None = None) -> None:
        self.listing = DirectoryListing(
            entries=entries, total=len(entries) if total is None else total
        )

    async def list_directory(self, path, *, limit):
        self.asked = (path, limit)
        return self.listing


async def test_entries_are_marked_by_kind(run):
    place = Listable(
        Entry(name=".env", kind="file"),
        Entry(name="broken", kind="symlink", link_target="nowhere", broken=True),
        Entry(name="dir", kind="directory"),
        Entry(name="link", kind="symlink", link_target="../x"),
        Entry(name="pipe", kind="fifo"),
        Entry(name="a\nb", kind="directory"),
    )
    message = await run(create_ls_tool("/w", operations=place))
    assert message.text.split("\n") == [
        ".env",
        "broken@ -> nowhere (broken)",
        "dir/",
        "link@ -> ../x",
        "pipe (fifo)",
        '"a\\nb/"',
    ]
    assert place.asked == ("/w", 500)
    assert message.structured_content["entries"][1] == {
        "name": "broken",
        "kind": "symlink",
        "link_target": "nowhere",
        "broken": True,
    }


async def test_an_empty_folder_says_so(run):
    tool = create_ls_tool("/w", operations=Listable())
    assert (await run(tool)).text == "The working folder is empty."
    assert (await run(tool, path="d")).text == "d is empty."


async def test_more_entries_than_the_limit_are_told(run):
    """B96."""
    place = Listable(Entry(name="a", kind="file"), total=3)
    message = await run(create_ls_tool("/w", operations=place), limit=1)
    assert message.text == "a\n\n[Showing 1 of 3 entries; raise limit to see more.]"
    assert message.details["truncation"]["total_lines"] == 3


async def test_a_file_is_told_to_be_one(run):
    """B63."""

    class File:
        async def list_directory(self, path, *, limit):
            raise PathNotDirectory(path)

    message = await run(create_ls_tool("/w", operations=File()), path="f.txt")
    assert message.text == "f.txt: is a file, not a folder"
    assert message.is_error


class Listing:
    """The smallest place to list and to find in; it remembers the limits."""

    def __init__(self) -> None:
        self.limits: list = []

    async def list_directory(self, path, *, limit):
        self.limits.append(limit)
        return DirectoryListing()

    async def exists(self, path):
        return True

    async def glob(self, pattern, root, *, limit, on_progress=None):
        self.limits.append(limit)
        return GlobResult()


@pytest.mark.parametrize("limit", [2**53 - 1, 2**53, 2**63, 10**30])
async def test_a_limit_beyond_all_numbers_of_the_wire_is_as_good_as_none(run, limit):
    """An engine refuses numbers of more than 64 bits: the search would not have run at all."""
    searched, listed = Searchable(GrepResult()), Listing()
    for tool, arguments in (
        (create_grep_tool("/w", operations=searched), {"pattern": "x"}),
        (create_find_tool("/w", operations=listed), {"pattern": "x"}),
        (create_ls_tool("/w", operations=listed), {}),
    ):
        assert not (await run(tool, **arguments, limit=limit)).is_error
    assert [searched.trips[0].limit, *listed.limits] == [min(limit, 2**53)] * 3


@pytest.mark.parametrize("pattern", ["/w/src/*.py", "~/src/*.py", "/"])
async def test_a_glob_written_as_a_whole_path_is_explained_when_it_fits_nothing(run, pattern):
    """It is taken below `path`; "nothing found" alone would be believed."""
    found = await run(create_find_tool("/w", operations=Listing()), pattern=pattern)
    searched = await run(grep(), pattern="x", glob=pattern)
    note = f"[{pattern} is looked for below path, not from the root; give the folder as path.]"
    assert found.text == f"Nothing found.\n\n{note}"
    assert searched.text == f"No matches.\n\n{note}"
    assert "below path" not in (await run(grep(match("a", 1)), pattern="x", glob="/a")).text
    assert "below path" not in (await run(grep(), pattern="/x")).text


@pytest.mark.parametrize("arguments", [{}, {"path": "."}])
async def test_a_working_folder_that_is_gone_is_named(run, arguments):
    """The model cannot know what "." is."""
    gone = PathNotFound("/w", "/", ("x/",))
    tool = create_grep_tool("/w", operations=Searchable(gone))
    message = await run(tool, pattern="x", **arguments)
    assert message.text == "the working folder /w: no such file or folder; / has x/"
