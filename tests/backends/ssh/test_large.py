"""What is large passes through: it is in nobody's memory, and only what is asked for crosses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.timeout(600)
def test_large_files_are_in_nobody_s_memory(sshd_program: str) -> None:
    """A window of a large file, a search in it, and as much written as may be (see large.py)."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.backends.ssh.large"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["read"]["result"], told["grep"]["result"]) == (100, 1)
    for step, figures in told.items():
        assert figures["near_mb"] < 16, (step, figures)
        assert figures["far_mb"] < 16, (step, figures)
        assert figures["received_mb"] < 1, (step, figures)
