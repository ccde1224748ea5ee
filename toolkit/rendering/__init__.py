"""Calls and results as people see them, in renderables of rich.

Importing this loads nothing of rich: the functions do, when something is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel
    from rich.console import Console, RenderableType

    from toolkit.calls import ToolResultMessage
    from toolkit.tool import AgentToolResult

__all__ = ["call_view", "result_view", "terminal"]


def call_view(name: str, params: BaseModel | Mapping[str, Any]) -> RenderableType:
    """Return a call as one line: what is done to what.

    Args:
        name: The tool's name; one that is unknown here is shown with its arguments as JSON.
        params: Its arguments, validated or as they came.
    """
    from toolkit.rendering.calls import call_line

    return call_line(name, params)


def result_view(
    name: str,
    params: BaseModel | Mapping[str, Any],
    result: AgentToolResult | ToolResultMessage,
    *,
    max_lines: int | None = None,
) -> RenderableType:
    """Return a result, whole or as far as it has come.

    Args:
        name: The tool's name; the content of one that is unknown here is shown as it is.
        params: The call's arguments, validated or as they came.
        result: What came of it.
        max_lines: Show at most so many lines of a file, a listing or an output; None for all.
    """
    from toolkit.rendering.results import result_body

    return result_body(name, params, result, max_lines=max_lines)


def terminal(*, stderr: bool = False, width: int | None = None) -> Console:
    """Return a console that shows views well: as wide as its terminal, plain where there is none.

    Args:
        stderr: Write to standard error.
        width: Columns, whatever the terminal says.
    """
    from rich.console import Console

    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)
