"""The suite keeps no test that asks which backend it has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
#: The only files that may know kinds of targets.
_KNOWING = {
    "targets.py",
    "containers.py",
    "hosts.py",
    "shell_targets.py",
    "seeders.py",
    "scripted.py",
    "conftest.py",
    "test_limits_are_told.py",
    Path(__file__).name,
}
_NAMES = re.compile(
    r"\b(?:backends|LocalBackend|EngineBackend|MemoryBackend|RemoteBackend|target_name|TARGETS"
    r"|type\(place|platform [!=]=)"
    r"|[\"'](?:local|engine|memory|docker|ssh)[\"':]",
)
TEST_FILES = sorted(p.name for p in HERE.glob("*.py") if p.name not in _KNOWING)


@pytest.mark.parametrize("name", TEST_FILES)
def test_no_test_names_a_backend(name: str) -> None:
    """A difference belongs into the table of targets, never into a test."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    named = [f"{number}: {line}" for number, line in enumerate(lines, 1) if _NAMES.search(line)]
    assert named == []


def test_the_check_can_see_a_backend_being_named() -> None:
    """The expression finds what it is there to find."""
    for line in ("from backends.local import x", "if place.backend is MemoryBackend", "== 'ssh'"):
        assert _NAMES.search(line)
