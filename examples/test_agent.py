"""Tests of an agent that need no machine: `pytest examples/test_agent.py`.

They say what is there, let the agent work, and look at what it did and at what it was told.
"""

from __future__ import annotations

import asyncio

import pytest

from backends.memory import CommandOutput, MemoryBackend
from examples.agent_asyncio import SCRIPT, run_agent, run_tests
from examples.scripted_model import Reply, ScriptedModel, asks


def project() -> MemoryBackend:
    """Return a machine with a small project that has a bug."""
    place = MemoryBackend({"add.py": "def add(a, b):\n    return a - b\n"})
    place.on_command("python3 -m unittest", run_tests)
    return place


def test_the_bug_is_repaired_and_the_tests_are_run_after_that() -> None:
    place = project()
    asyncio.run(run_agent(ScriptedModel(SCRIPT), place))
    assert place.read_text("add.py") == "def add(a, b):\n    return a + b\n"
    (command,) = place.commands
    assert command.command == "python3 -m unittest"
    assert command.result is not None
    assert command.result.exit_code == 0


def test_a_wrong_path_is_answered_with_the_right_one() -> None:
    model = ScriptedModel([Reply("", [asks("read", path="ad.py")]), Reply("done")])
    asyncio.run(run_agent(model, project()))
    (result,) = model.seen
    assert result.error_kind == "not_found"
    assert "add.py" in result.text


def test_a_command_that_hangs_is_ended_and_its_output_is_shown() -> None:
    place = project()
    place.on_command("make", CommandOutput("built\n", delay_s=3600))
    model = ScriptedModel([Reply("", [asks("bash", command="make", timeout=0.05)]), Reply("done")])
    asyncio.run(run_agent(model, place))
    assert model.seen[0].error_kind == "timeout"


def test_a_connection_that_is_lost_is_told_and_nothing_is_repeated() -> None:
    place = project()
    place.faults.drop("replace_file")
    model = ScriptedModel([Reply("", [asks("write", path="a", content="b")]), Reply("done")])
    asyncio.run(run_agent(model, place))
    assert model.seen[0].error_kind == "connection_lost"
    assert "may or may not have happened" in model.seen[0].text
    assert [call.operation for call in place.calls].count("replace_file") == 1


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q"]))
