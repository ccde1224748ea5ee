"""ls: list a folder."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from toolkit.interrupt import unless_aborted
from toolkit.optional import optional_operations
from toolkit.paths import Found, at_existing, check_cwd
from toolkit.rendering import call_view, result_view
from toolkit.texts.text import escape_name
from toolkit.texts.truncate import MAX_BYTES, MAX_COUNT, truncate_head
from toolkit.tool import AgentTool, AgentToolResult, OnUpdate, ToolDefinition, wrap_tool_definition

if TYPE_CHECKING:
    from operations import DirectoryListing, Entry, LsOperations
    from toolkit.abort import AbortSignal

__all__ = ["LsArguments", "create_ls_tool", "create_ls_tool_definition"]


class LsArguments(BaseModel):
    """Arguments of ls."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str | None = Field(
        default=None, description="Folder to list. Default: the working folder."
    )
    limit: int = Field(default=500, ge=1, description="Most entries to show.")


def create_ls_tool_definition(
    cwd: str, *, operations: LsOperations, max_bytes: int = MAX_BYTES
) -> ToolDefinition[LsArguments]:
    """Define the ls tool.

    Args:
        cwd: Folder on the target that relative paths are taken from.
        operations: Where the files are.
        max_bytes: Most bytes of UTF-8 of one result's entries, 1 or more.

    Raises:
        TypeError: `operations` lacks a method, or is a mock without a spec.
        ValueError: `cwd` is not absolute.
    """
    check_cwd(cwd)
    optional_operations(operations, "list_directory")

    async def execute(
        _tool_call_id: str,
        params: LsArguments,
        signal: AbortSignal,
        _on_update: OnUpdate,
        _context: Any,
    ) -> AgentToolResult:
        async def attempt(path: str) -> DirectoryListing:
            return await operations.list_directory(path, limit=min(params.limit, MAX_COUNT))

        given = "." if params.path is None else params.path
        found = await unless_aborted(signal, at_existing(given, cwd, attempt, noun="folder"))
        return _told(params, found, max_bytes)

    return ToolDefinition(
        name="ls",
        label="List",
        description=(
            "List a folder, hidden names too: folders as name/, symlinks as name@ -> target."
        ),
        parameters=LsArguments,
        execute=execute,
        prompt_snippet="list a folder",
        prompt_guidelines=("Use ls, not ls in bash, to see what a folder holds.",),
        render_call=partial(call_view, "ls"),
        render_result=partial(result_view, "ls"),
    )


def create_ls_tool(
    cwd: str, *, operations: LsOperations, max_bytes: int = MAX_BYTES
) -> AgentTool[LsArguments]:
    """Create the ls tool; see `create_ls_tool_definition`."""
    return wrap_tool_definition(
        create_ls_tool_definition(cwd, operations=operations, max_bytes=max_bytes)
    )


def _told(params: LsArguments, found: Found[DirectoryListing], max_bytes: int) -> AgentToolResult:
    entries, total = found.value.entries, found.value.total
    cut = truncate_head(
        "\n".join(map(_line, entries)), max_lines=len(entries) + 1, max_bytes=max_bytes
    )
    shown = cut.shown_lines
    notes = [found.note] if found.note else []
    if shown < total:
        remedy = "use find with a pattern" if cut.truncated_by else "raise limit to see more"
        notes.append(f"Showing {shown} of {total} entries; {remedy}.")
    details: dict[str, Any] = {"path": found.path, "shown": shown, "total": total}
    if shown < total:
        details["truncation"] = {
            "truncated_by": cut.truncated_by or "entries",
            "shown_lines": shown,
            "total_lines": total,
        }
    text = cut.text.removesuffix("\n") or f"{params.path or 'The working folder'} is empty."
    return AgentToolResult.text(
        "\n\n".join((text, *(f"[{note}]" for note in notes))),
        details=details,
        structured_content={"entries": [_value(entry) for entry in entries], "total": total},
    )


def _line(entry: Entry) -> str:
    name = escape_name(entry.name)
    if entry.kind == "directory":
        return escape_name(f"{entry.name}/")
    if entry.kind == "symlink":
        target = "?" if entry.link_target is None else escape_name(entry.link_target)
        return f"{name}@ -> {target}{' (broken)' if entry.broken else ''}"
    return name if entry.kind == "file" else f"{name} ({entry.kind})"


def _value(entry: Entry) -> dict[str, Any]:
    value: dict[str, Any] = {"name": entry.name, "kind": entry.kind}
    if entry.kind == "symlink":
        value |= {"link_target": entry.link_target, "broken": entry.broken}
    return value
