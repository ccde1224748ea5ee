"""What a shell offers to complete: tools, their keys, targets. Loads nothing until it is asked."""

from __future__ import annotations

import typer

__all__ = ["complete_keys", "complete_targets", "complete_tools"]

_TOOLS = {
    "read": "show lines of a text file, or an image",
    "write": "create or replace a file",
    "edit": "replace exact texts in a file",
    "bash": "run a shell command",
    "grep": "find lines by pattern",
    "find": "find files by name",
    "ls": "list a folder",
}


def complete_tools(incomplete: str) -> list[tuple[str, str]]:
    """Return the tools that begin so, with what they do."""
    return [item for item in _TOOLS.items() if item[0].startswith(incomplete)]


def complete_keys(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the keys of the tool that stands before, with what they mean."""
    from pydantic import BaseModel

    from toolkit.tools import bash, edit, find, grep, ls, read, write

    models: dict[str, type[BaseModel]] = {
        "read": read.ReadArguments,
        "write": write.WriteArguments,
        "edit": edit.EditArguments,
        "bash": bash.BashArguments,
        "grep": grep.GrepArguments,
        "find": find.FindArguments,
        "ls": ls.LsArguments,
    }
    tool = ctx.params.get("tool")
    if tool not in models or "=" in incomplete:
        return []
    return [
        (f"{name}=", field.description or "")
        for name, field in models[tool].model_fields.items()
        if name.startswith(incomplete)
    ]


def complete_targets(incomplete: str) -> list[tuple[str, str]]:
    """Return the named targets and the schemes that begin so."""
    from toolkit.cli.config import named_targets
    from toolkit.cli.shown import named, shown
    from toolkit.cli.targets import TARGETS

    try:
        offered = [(name, shown(named(url))) for name, url in named_targets().items()]
    except ValueError:
        offered = []
    offered += [(f"{scheme}:", help_text) for scheme, help_text in TARGETS.items()]
    return [item for item in offered if item[0].startswith(incomplete)]
