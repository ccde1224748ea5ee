"""Every argument of every tool, given wrongly: told so that a model can correct itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.places import refused, text

if TYPE_CHECKING:
    from tests.conformance.places import Place

pytestmark = pytest.mark.anyio

#: Good arguments of each tool, changed one at a time.
GOOD: dict[str, dict[str, Any]] = {
    "read": {"path": "f.txt", "offset": 1, "limit": 5},
    "write": {"path": "g.txt", "content": "x"},
    "edit": {"path": "f.txt", "edits": [{"old_text": "one", "new_text": "two"}]},
    "bash": {"command": "echo made > made.txt", "timeout": 10},
    "grep": {
        "pattern": "one",
        "path": ".",
        "glob": "*",
        "ignore_case": False,
        "literal": False,
        "context": 0,
        "limit": 10,
    },
    "find": {"pattern": "*", "path": ".", "limit": 10},
    "ls": {"path": ".", "limit": 10},
}
TEXTS = {"path", "content", "command", "pattern", "glob"}
NUMBERS = {"offset", "limit", "context", "timeout"}
FLAGS = {"ignore_case", "literal"}
NEEDED = {
    "read": {"path"},
    "write": {"path", "content"},
    "edit": {"path", "edits"},
    "bash": {"command"},
    "grep": {"pattern"},
    "find": {"pattern"},
    "ls": set(),
}


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


#: Values that are wrong for every argument of the kind, whatever the tool.
WRONG: dict[str, dict[str, Any]] = {
    "text": {"number": 12345, "flag": True, "list": ["f.txt"], "object": {"path": "f.txt"},
             "float": 1.5, "nested": nested(200)},
    "number": {"word": "many", "flag": True, "list": [[1]], "object": {"n": 1}, "negative": -1,
               "nan": float("nan"), "infinite": float("inf"), "minus infinite": float("-inf"),
               "huge text": "9" * 5000, "empty": "", "nested": nested(200)},
    "flag": {"word": "perhaps", "number": 7, "list": [[]], "object": {"a": 1}, "float": 0.5,
             "nested": nested(200)},
    "edits": {"word": "perhaps", "number": 7, "empty": [], "texts": ["one"], "flag": True,
              "nested": nested(200), "half": [{"old_text": "one"}],
              "number inside": [{"old_text": 1, "new_text": "x"}],
              "null inside": [{"old_text": "one", "new_text": None}]},
}  # fmt: skip


def kind_of(argument: str) -> str:
    if argument in TEXTS:
        return "text"
    if argument in NUMBERS:
        return "number"
    return "flag" if argument in FLAGS else "edits"


ARGUMENTS = [(tool, argument) for tool, good in GOOD.items() for argument in good]
#: Keys that no tool has, and things that are no object of arguments.
UNKNOWN = ["filename", "cmd", "\ud800", "", "p\x00", "x" * 10_000]
NO_OBJECTS = [
    7, 1.5, True, [], [{}], "text", "[]", "7", "\x00", "\ud800", "NaN", b"{}", object()
]  # fmt: skip
PATHS = {
    "empty": "",
    "nul": "\x00",
    "nul at the end": "f.txt\x00",
    "surrogate": "\ud800",
    "long name": "n" * 300,
    "long path": "d/" * 5000 + "f",
    "10 MB": "x" * (10 << 20),
    "slash": "f.txt/",
    "below a file": "f.txt/x",
    "other host": "file://elsewhere/f.txt",
    "other home": "~nobody-of-that-name/f",
}


@pytest.fixture
async def seeded(place: Place) -> Place:
    await place.put("f.txt", b"one\n")
    return place


async def unchanged(place: Place) -> bool:
    return await place.names() == ["f.txt"] and await place.get("f.txt") == b"one\n"


# Each test below tries many values in one place: what differs between them is the value alone.


@pytest.mark.parametrize(("tool", "argument"), ARGUMENTS)
async def test_a_wrong_value_is_refused_by_name(seeded: Place, tool: str, argument: str) -> None:
    for name, value in WRONG[kind_of(argument)].items():
        message = await seeded.call(tool, {**GOOD[tool], argument: value})
        told = refused(message, "invalid_arguments")
        assert argument in told, name
        assert len(told) < 10_000, name
        assert await unchanged(seeded), name


@pytest.mark.parametrize(
    ("tool", "argument"), [(tool, name) for tool, names in NEEDED.items() for name in sorted(names)]
)
@pytest.mark.parametrize("how", ["null", "missing"])
async def test_a_needed_argument_is_asked_for_by_name(
    seeded: Place, tool: str, argument: str, how: str
) -> None:
    arguments = dict(GOOD[tool])
    if how == "null":
        arguments[argument] = None
    else:
        del arguments[argument]
    told = refused(await seeded.call(tool, arguments), "invalid_arguments")
    assert argument in told
    assert await unchanged(seeded)


@pytest.mark.parametrize("tool", list(GOOD))
async def test_an_unknown_key_is_refused_and_the_known_ones_named(seeded: Place, tool: str) -> None:
    for key in UNKNOWN:
        told = refused(await seeded.call(tool, {**GOOD[tool], key: 1}), "invalid_arguments")
        assert all(argument in told for argument in GOOD[tool]), key
        assert len(told) < 10_000, key
        assert await unchanged(seeded), key


@pytest.mark.parametrize("tool", [tool for tool in GOOD if "path" in GOOD[tool]])
async def test_an_impossible_path_is_an_error(seeded: Place, tool: str) -> None:
    for name, path in PATHS.items():
        if tool == "write" and path.startswith("~nobody"):
            continue  # a name like any other: only `~` and `~/` mean a home
        told = refused(await seeded.call(tool, {**GOOD[tool], "path": path}))
        assert len(told) < 10_000, name
        assert await unchanged(seeded), name


@pytest.mark.parametrize(
    ("tool", "argument"),
    [("write", "content"), ("bash", "command"), ("grep", "pattern"), ("find", "pattern"),
     ("grep", "glob")],
)  # fmt: skip
async def test_a_lone_surrogate_changes_nothing_and_never_gets_out(
    seeded: Place, tool: str, argument: str
) -> None:
    message = await seeded.call(tool, {**GOOD[tool], argument: "one \ud800 two"})
    assert "\ud800" not in message.model_dump_json()
    if tool in ("write", "bash"):
        refused(message)
    assert await unchanged(seeded)


@pytest.mark.parametrize(
    ("tool", "argument"), [("bash", "command"), ("grep", "pattern"), ("find", "pattern")]
)
async def test_nul_in_a_text_is_an_error(seeded: Place, tool: str, argument: str) -> None:
    value = "touch made.txt\x00; true"
    refused(await seeded.call(tool, {**GOOD[tool], argument: value}))
    assert await unchanged(seeded)


@pytest.mark.parametrize(
    ("tool", "argument"),
    [("grep", "pattern"), ("grep", "glob"), ("find", "pattern"), ("bash", "command")],
)
async def test_ten_megabytes_are_answered_shortly(seeded: Place, tool: str, argument: str) -> None:
    message = await seeded.call(tool, {**GOOD[tool], argument: "x" * (11 << 20)})
    assert len(text(message)) < 10_000
    assert message.duration_ms < 20_000
    assert await unchanged(seeded)


async def test_ten_megabytes_are_written_as_they_are(seeded: Place) -> None:
    message = await seeded.run("write", path="g.txt", content="x" * (10 << 20))
    assert not message.is_error
    assert await seeded.get("g.txt") == b"x" * (10 << 20)


@pytest.mark.parametrize(
    ("tool", "argument"),
    [("read", "offset"), ("read", "limit"), ("grep", "limit"), ("grep", "context"),
     ("find", "limit"), ("ls", "limit"), ("bash", "timeout")],
)  # fmt: skip
async def test_a_huge_number_is_answered(seeded: Place, tool: str, argument: str) -> None:
    for value in (10**30, 2**63, 2**31):
        message = await seeded.call(tool, {**GOOD[tool], argument: value})
        assert text(message).strip(), value
        assert message.error_kind != "internal", text(message)


@pytest.mark.parametrize("tool", list(GOOD))
async def test_deeply_nested_text_is_refused(seeded: Place, tool: str) -> None:
    deep = '{"a":' * 20_000 + "1" + "}" * 20_000
    refused(await seeded.call(tool, deep), "invalid_arguments")
    assert await unchanged(seeded)


@pytest.mark.parametrize("tool", list(GOOD))
async def test_what_is_no_object_is_refused(seeded: Place, tool: str) -> None:
    for arguments in NO_OBJECTS:
        if tool == "ls" and arguments in ([], "[]"):
            continue  # some models send an empty list for no arguments
        refused(await seeded.call(tool, arguments), "invalid_arguments")
        assert await unchanged(seeded), arguments
