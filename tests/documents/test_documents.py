"""Every code block of the documents runs and shows what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: Two commands that the suite itself is part of, or that install things.
RUN_ELSEWHERE = ("./scripts/",)


def blocks(language: str) -> list[object]:
    return [
        pytest.param(match[2], id=f"{name}:{text[: match.start()].count(chr(10)) + 1}")
        for name in DOCUMENTS
        for text in [(ROOT / name).read_text()]
        for match in BLOCK.finditer(text)
        if match[1] == language
    ]


def test_every_block_names_a_language_that_is_tested() -> None:
    for name in DOCUMENTS:
        for match in BLOCK.finditer((ROOT / name).read_text()):
            assert match[1] in {"python", "console", "text"}, f"{name}: {match[0][:80]}"


@pytest.mark.parametrize("source", blocks("python"))
def test_python_blocks_run_and_print_their_comments(source: str, tmp_path: Path) -> None:
    """A line `# prints: TEXT` promises that TEXT stands in the output."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    for promised in re.findall(r"# prints: (.*)", source):
        assert promised in done.stdout


@pytest.mark.parametrize("source", blocks("console"))
def test_console_blocks_run_and_print_what_follows(source: str, tmp_path: Path) -> None:
    """`$ command` lines run in one shell; each other line must stand in the output."""
    lines = source.splitlines()
    commands = [line[2:] for line in lines if line.startswith("$ ")]
    commands = [line for line in commands if not line.startswith(RUN_ELSEWHERE)]
    if not commands:
        for line in lines:
            script = ROOT / line.removeprefix("$ ").split()[0]
            assert os.access(script, os.X_OK), f"{script} cannot be run"
        return
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", "\n".join(commands)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    for line in lines:
        if line and not line.startswith(("$ ", "#")):
            assert line in done.stdout, done.stdout + done.stderr
