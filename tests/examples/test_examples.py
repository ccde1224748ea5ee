"""Every example runs as its page says, and the backend among them passes the conformance suite."""

from __future__ import annotations

import io
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Do what `python -m examples.NAME` does and return what it prints."""
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out


def test_an_agent_on_asyncio_repairs_its_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert "bash: OK" in run("agent_asyncio", capsys)


def test_agents_on_trio_each_do_their_work(capsys: pytest.CaptureFixture[str]) -> None:
    told = run("agent_trio", capsys)
    assert "agent 0: Renamed.\n" in told
    assert "agent 1: Renamed.\n" in told
    assert told.endswith("color = 'red'\ncolor = 'blue'\n")


@pytest.mark.parametrize(
    ("answers", "written", "ran"), [("yy", "done", "failed"), ("nn", "blocked", "blocked")]
)
def test_the_hook_asks_and_the_answer_holds(
    answers: str,
    written: str,
    ran: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(answers) + "\n"))
    told = run("ask_first", capsys)
    assert f"read: done\nwrite: {written}\nbash: {ran}\n" in told


def test_the_custom_tool_outlines_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = ROOT / "examples" / "ask_first.py"
    monkeypatch.setattr(sys, "argv", ["custom_tool", str(path)])
    told = run("custom_tool", capsys)
    assert "class AskFirst\n" in told
    assert "  def __call__\n" in told


def test_the_custom_backend_passes_the_conformance_suite(tmp_path: Path) -> None:
    """Of the suite, what a channel has to carry; all of it runs with the same two options."""
    argv = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    argv += ["-p", "tests.examples.socket_target", f"--basetemp={tmp_path / 'suite'}"]
    argv += ["-k", "asyncio and (test_target or output or stop or cancel or size or all_bytes)"]
    done = subprocess.run(
        [*argv, "tests/conformance/test_target.py", "tests/conformance/test_bash.py"],
        cwd=ROOT,
        env={**os.environ, "REMOTEHANDS_TEST_TARGETS": "socket"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
