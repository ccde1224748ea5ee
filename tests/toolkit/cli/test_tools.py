"""`toolkit tools`, and what a shell completes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.toolkit.cli.commands import toolkit
from toolkit.cli.completion import complete_targets, complete_tools
from toolkit.cli.main import app

NAMES = ["read", "write", "edit", "bash", "grep", "find", "ls"]


def test_people_get_every_tool_with_its_arguments(tmp_path: Path) -> None:
    done = toolkit("tools", cwd=tmp_path)
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if line in NAMES] == NAMES
    assert "[timeout]" in done.stdout


@pytest.mark.parametrize(
    ("wanted", "key"),
    [("anthropic", "input_schema"), ("openai-responses", "parameters"), ("mcp", "inputSchema")],
)
def test_programs_get_json(tmp_path: Path, wanted: str, key: str) -> None:
    done = toolkit("tools", "--format", wanted, "--strict", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert [tool["name"] for tool in told] == NAMES
    assert all(set(tool[key]["required"]) == set(tool[key]["properties"]) for tool in told)


def test_the_prompt_lists_the_tools(tmp_path: Path) -> None:
    done = toolkit("tools", "prompt", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("Available tools:\n- read: ")


def test_a_shell_completes_tools_keys_and_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "remotehands.toml").write_text('[targets.web1]\nurl = "ssh://web1"\n')
    assert [name for name, _ in complete_tools("")] == NAMES
    words = {"COMP_WORDS": "toolkit call grep l", "COMP_CWORD": "3"}
    asks = {"_TOOLKIT_COMPLETE": "complete_bash", **words}
    result = CliRunner().invoke(app, prog_name="toolkit", env=asks)
    assert result.stdout.split() == ["literal=", "limit="]
    assert complete_targets("web") == [("web1", "ssh://web1")]
    assert "ssh:" in [name for name, _ in complete_targets("")]
