"""Which optional operations an object has."""

from __future__ import annotations

from unittest.mock import AsyncMock, MagicMock, Mock

import pytest

from operations import ReadOperations, TargetFacts
from toolkit.optional import optional_operations

FACTS = TargetFacts(home="/h", machine_id="m", platform="memory", shell=None)


class Plain:
    async def access(self, path): ...

    async def read_file(self, path): ...


class Rich(Plain):
    facts = FACTS

    async def read_lines(self, path, **_): ...

    async def replace_file(self, path, content): ...


def test_a_plain_object_has_none():
    found = optional_operations(Plain(), "access", "read_file")
    assert (found.window, found.replace, found.versioned, found.tail, found.images) == (None,) * 5
    assert found.facts() is None


def test_a_rich_one_has_what_it_has():
    rich = Rich()
    found = optional_operations(rich, "access")
    assert found.window is rich
    assert found.replace is rich
    assert found.versioned is None
    assert found.facts() is FACTS


def test_facts_are_looked_at_late():
    class Later(Plain):
        facts: TargetFacts | None = None

    later = Later()
    found = optional_operations(later, "access")
    assert found.facts() is None
    later.facts = FACTS
    assert found.facts() is FACTS


@pytest.mark.parametrize("mock", [Mock, MagicMock, AsyncMock])
def test_a_bare_mock_is_refused(mock):
    with pytest.raises(TypeError, match="mock without a spec"):
        optional_operations(mock(), "access")


@pytest.mark.parametrize("mock", [Mock, MagicMock, AsyncMock])
def test_a_mock_with_a_spec_has_what_its_spec_has(mock):
    found = optional_operations(mock(spec=ReadOperations), "access", "read_file")
    assert found.window is None
    assert optional_operations(mock(spec=Rich), "access").window is not None


@pytest.mark.parametrize("thing", [object(), None, "text", Plain])
def test_what_lacks_a_needed_method_is_refused_by_its_name(thing):
    with pytest.raises(TypeError, match=r"exec\(\)"):
        optional_operations(thing, "access", "exec")
