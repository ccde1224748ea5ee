"""`toolkit demo`: what a newcomer sees first."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path


def test_the_demo_repairs_the_project_and_leaves_nothing(tmp_path: Path) -> None:
    before = set(Path(tempfile.gettempdir()).glob("remotehands*"))
    done = subprocess.run(
        [sys.executable, "-m", "toolkit.cli", "demo"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" in done.stdout  # the first test run
    assert "not allowed here" in done.stdout  # the hook
    assert "pricing.py" in done.stdout
    assert "the tests pass: yes" in done.stdout
    assert "with the same messages: yes" in done.stdout
    assert set(Path(tempfile.gettempdir()).glob("remotehands-demo-*")) <= before
    assert list(tmp_path.iterdir()) == []
