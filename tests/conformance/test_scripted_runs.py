"""Whole runs of an agent that follows a script, through the pipeline, on every backend."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.places import refused, said, text
from toolkit.events import (
    MessageEnd,
    MessageStart,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    event_to_dict,
)
from toolkit.hooks import Block

if TYPE_CHECKING:
    from tests.conformance.places import Place

pytestmark = pytest.mark.anyio

BROKEN = """def mean(numbers):
    total = 0
    for number in numbers:
        total += number
    return total / (len(numbers) - 1)
"""


async def project(place: Place) -> None:
    await place.put("README.md", "# stats\n\nSmall statistics.\n")
    await place.put("src/stats.py", BROKEN)
    await place.put("tests/test_stats.py", "from stats import mean\nassert mean([1, 3]) == 2\n")
    await place.put(".gitignore", "__pycache__/\n")
    await place.put("src/__pycache__/stats.pyc", b"\x00mean")


@pytest.mark.needs("commands")
async def test_an_agent_finds_and_fixes_a_bug(place: Place) -> None:
    await project(place)
    listing, found, grepped, read = await place.batch(
        ("ls", {}),
        ("find", {"pattern": "*.py"}),
        ("grep", {"pattern": r"def \w+", "glob": "src/**"}),
        ("read", {"path": "README.md"}),
    )
    assert said(listing).split("\n")[:2] == [".gitignore", "README.md"]
    assert said(found).strip().split("\n") == ["src/stats.py", "tests/test_stats.py"]
    assert "src/stats.py:1: def mean(numbers):" in said(grepped)
    assert "Small statistics." in said(read)

    mistaken = refused(await place.run("read", path="src/stat.py"), "not_found")
    assert "stats.py" in mistaken
    assert "len(numbers) - 1" in said(await place.run("read", path="src/stats.py"))

    edit = await place.run(
        "edit",
        path="src/stats.py",
        edits=[{"old_text": "(len(numbers) - 1)", "new_text": "len(numbers)"}],
    )
    assert "-    return total / (len(numbers) - 1)" in edit.details["diff"]
    assert (await place.get("src/stats.py")).decode() == BROKEN.replace(
        "(len(numbers) - 1)", "len(numbers)"
    )
    said(await place.run("write", path="docs/CHANGES.md", content="- mean: divides by all\n"))
    assert await place.names("docs") == ["CHANGES.md"]
    assert said(await place.run("bash", command="echo hi")).strip() == "hi"


async def test_a_blocked_call_has_no_effect_and_the_others_go_on(place: Place) -> None:
    await project(place)

    def guard(context: Any) -> Block | None:
        if context.tool.name == "bash" and "rm -rf" in context.params.command:
            return Block("deleting is not allowed here")
        return None

    blocked, read = await place.batch(
        ("bash", {"command": "rm -rf src"}),
        ("read", {"path": "src/stats.py"}),
        before_tool_call=(guard,),
    )
    assert "deleting is not allowed here" in refused(blocked, "blocked")
    assert "def mean" in said(read)


async def test_events_tell_the_whole_story_in_order(place: Place) -> None:
    await project(place)
    events: list[Any] = []
    await place.batch(
        ("read", {"path": "README.md"}),
        ("read", {"path": "nope"}),
        ("nonesuch", {}),
        listeners=(events.append,),
    )
    starts = [e for e in events if isinstance(e, ToolExecutionStart)]
    ends = [e for e in events if isinstance(e, ToolExecutionEnd)]
    assert len(starts) == len(ends) == 3
    for start in starts:
        end = next(e for e in ends if e.tool_call_id == start.tool_call_id)
        assert events.index(start) < events.index(end)
    messages = [e for e in events if isinstance(e, MessageStart | MessageEnd)]
    assert [type(e) for e in messages] == [MessageStart, MessageEnd] * 3
    assert events.index(messages[0]) > max(events.index(end) for end in ends)
    order = [e.message.tool_call_id for e in messages[::2]]
    assert order == [start.tool_call_id for start in starts]
    for event in events:
        json.dumps(event_to_dict(event), allow_nan=False).encode("utf-8")


@pytest.mark.needs("commands")
async def test_a_command_streams_before_it_ends(place: Place) -> None:
    events: list[Any] = []
    [message] = await place.batch(
        ("bash", {"command": "echo before; sleep 60", "timeout": 1}), listeners=(events.append,)
    )
    refused(message, "timeout")
    kinds = [type(event) for event in events]
    assert ToolExecutionUpdate in kinds
    assert kinds.index(ToolExecutionUpdate) < kinds.index(ToolExecutionEnd)


async def test_messages_carry_the_wires_names(place: Place) -> None:
    await place.put("f", b"x\n")
    for message in await place.batch(("read", {"path": "f"}), ("read", {"path": "nope"})):
        wire = json.loads(message.model_dump_json(by_alias=True))
        assert wire["role"] == "toolResult"
        assert {"toolCallId", "toolName", "content", "isError", "timestamp", "durationMs"} <= set(
            wire
        )
        assert wire["content"][0]["type"] == "text"
        assert wire["timestamp"] > 1_600_000_000_000
        assert wire["durationMs"] >= 0
        assert (wire.get("errorKind") is not None) is wire["isError"]


async def test_a_batch_keeps_the_order_of_its_calls(place: Place) -> None:
    await place.put_all({f"f{number}": f"file {number}\n" for number in range(50)})
    messages = await place.batch(*[("read", {"path": f"f{number}"}) for number in range(50)])
    assert [text(message).strip() for message in messages] == [
        f"file {number}" for number in range(50)
    ]


@pytest.mark.needs("commands")
async def test_one_failure_can_end_the_others(place: Place) -> None:
    slow, failing = await place.batch(
        ("bash", {"command": "sleep 60"}), ("read", {"path": "nope"}), on_error="cancel"
    )
    refused(failing, "not_found")
    refused(slow, "sibling_failed")


async def test_what_one_call_writes_the_next_reads(place: Place) -> None:
    written, read, edited, again = await place.batch(
        ("write", {"path": "a/f", "content": "one\n"}),
        ("read", {"path": "a/f"}),
        ("edit", {"path": "a/f", "edits": [{"old_text": "one", "new_text": "two"}]}),
        ("read", {"path": "a/f"}),
        tool_execution="sequential",
    )
    said(written)
    assert said(read).strip() == "one"
    said(edited)
    assert said(again).strip() == "two"


@pytest.mark.needs("commands")
async def test_a_command_and_the_file_tools_see_one_tree(place: Place) -> None:
    said(await place.run("bash", command="echo made > made.txt"))
    assert said(await place.run("read", path="made.txt")).strip() == "made"
    assert "made.txt:1: made" in said(await place.run("grep", pattern="made"))
    assert "made.txt" in said(await place.run("ls"))
