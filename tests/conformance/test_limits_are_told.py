"""The table of limits in the docs tells what the table of targets declares, and no more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conformance.targets import TARGETS

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
_ANY = "any, as root"
_AS_ROOT = "permissions"
DECLARED = {
    (name, word)
    for name, target in TARGETS.items()
    for word in [*target.lacks, *target.differs]
    if word != _AS_ROOT
}


def told() -> set[tuple[str, str]]:
    """Return (target, the suite's word for a limit) pairs of the page's table."""
    section = PAGE.read_text(encoding="utf-8").partition("## Limits by target\n")[2]
    rows = re.findall(r"^\| (.*) \| .* \| (.*) \|$", section.partition("\n## ")[0], re.MULTILINE)
    return {
        (name, word)
        for names, words in rows
        for name in ([_ANY] if names == _ANY else re.findall(r"`([^`]+)`", names))
        for word in re.findall(r"`([^`]+)`", words)
    }


@pytest.mark.parametrize("limit", sorted(DECLARED), ids=" ".join)
def test_a_declared_limit_is_told(limit: tuple[str, str]) -> None:
    assert limit in told()


def test_nothing_else_is_told() -> None:
    assert told() - DECLARED == {(_ANY, _AS_ROOT)}
