"""What the end-to-end tests share."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark that both this suite and the conformance suite use."""
    config.addinivalue_line(
        "markers", "unprivileged: is about permissions, which a superuser passes unasked"
    )


@pytest.fixture(autouse=True)
def _own_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put this interpreter first: a version manager's `python3` needs its own environment."""
    ours = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join([ours, os.environ["PATH"]]))
