"""What every backend tells about its target."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from operations import (
    ImageDetectingReadOperations,
    ReplaceOperations,
    TailBashOperations,
    TargetOperations,
    VersionedReadOperations,
    WindowReadOperations,
)
from tests.conformance.places import said

if TYPE_CHECKING:
    from tests.conformance.places import Place

pytestmark = pytest.mark.anyio


async def test_facts_are_known_after_the_first_operation(place: Place) -> None:
    await place.backend.list_directory(place.cwd, limit=1)
    facts = place.backend.facts
    assert facts is not None
    assert facts.home == place.home
    assert facts.machine_id
    assert facts.platform
    assert 0 <= facts.umask <= 0o777
    assert all(isinstance(name, str) for name in facts.capabilities)


async def test_the_machine_stays_the_same(place: Place) -> None:
    await place.backend.list_directory(place.cwd, limit=1)
    first = place.backend.facts
    await place.put("f", b"x")
    await place.backend.read_file(place.path("f"))
    assert place.backend.facts.machine_id == first.machine_id


@pytest.mark.parametrize(
    "protocol",
    [
        ImageDetectingReadOperations,
        ReplaceOperations,
        TailBashOperations,
        TargetOperations,
        VersionedReadOperations,
        WindowReadOperations,
    ],
)
async def test_every_optional_protocol_is_there(place: Place, protocol: type) -> None:
    assert isinstance(place.backend, protocol)


async def test_the_tools_are_the_seven_in_fixed_order(place: Place) -> None:
    names = [tool.name for tool in place.tools()]
    assert sorted(names) == ["bash", "edit", "find", "grep", "ls", "read", "write"]
    assert names == [tool.name for tool in place.tools()]


@pytest.mark.needs("commands")
async def test_the_shell_of_the_facts_is_the_one_that_runs(place: Place) -> None:
    message = await place.run("bash", command="echo hi")
    assert said(message).strip() == "hi"
    shell = place.backend.facts.shell
    assert shell is not None
    assert re.search(rf"\b{re.escape(shell)}\b", str(message.details))
