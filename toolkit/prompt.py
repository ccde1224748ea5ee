"""The part of a system prompt that tells of the tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.tool import ToolDefinition

__all__ = ["tools_prompt"]


def tools_prompt(definitions: Iterable[ToolDefinition[Any]]) -> str:
    """Return a section with a line for each tool, then the guidelines, each of them once.

    Args:
        definitions: In the order to list them; one without a snippet is listed by the first
            sentence of its description.

    Returns:
        Text without a newline at the end; "" when there are no tools.
    """
    definitions = list(definitions)
    if not definitions:
        return ""
    lines = ["Available tools:"]
    lines += [f"- {definition.name}: {_snippet(definition)}" for definition in definitions]
    guidelines = dict.fromkeys(
        line for definition in definitions for line in definition.prompt_guidelines
    )
    if guidelines:
        lines += ["", "Guidelines:", *(f"- {line}" for line in guidelines)]
    return "\n".join(lines)


def _snippet(definition: ToolDefinition[Any]) -> str:
    text = definition.prompt_snippet or definition.description.partition(". ")[0]
    return " ".join(text.split())
