"""What `toolkit.policy` offers."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolkit.policy

LISTED = Path(__file__).with_name("public_names.txt").read_text().split()


def test_the_public_names_are_the_listed_ones():
    """An addition is a choice, made in two places."""
    assert sorted(toolkit.policy.__all__) == LISTED


def test_every_public_name_is_there():
    """Lazily, but really."""
    assert [name for name in LISTED if getattr(toolkit.policy, name, None) is None] == []
    assert set(LISTED) <= set(dir(toolkit.policy))


def test_other_names_are_attribute_errors():
    """As in any module."""
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        toolkit.policy.nonsense  # noqa: B018
