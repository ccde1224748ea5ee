"""A model that costs nothing: it says the next line of a script, whatever it is shown."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit import ToolCall, ToolResultMessage

__all__ = ["Reply", "ScriptedModel", "asks"]

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Reply:
    """What a model answers.

    Attributes:
        text: What it says.
        calls: The tools it wants run; an agent is done when there are none.
    """

    text: str
    calls: Sequence[ToolCall] = ()


class ScriptedModel:
    """Stands where a client of a model's API would stand.

    Args:
        script: The replies, in order.

    Attributes:
        tools: What it was told of the tools, the last time it was asked.
        seen: Every result that it was shown.
    """

    def __init__(self, script: Sequence[Reply]) -> None:
        self._script = iter(script)
        self.tools: list[dict[str, Any]] = []
        self.seen: list[ToolResultMessage] = []

    async def reply(
        self, results: Sequence[ToolResultMessage], tools: list[dict[str, Any]]
    ) -> Reply:
        """Return the next reply of the script."""
        self.seen += results
        self.tools = tools
        return next(self._script)


def asks(tool: str, **arguments: Any) -> ToolCall:
    """Return a call as a model would make it."""
    return ToolCall(id=f"call-{next(_numbers)}", name=tool, arguments=arguments)
