"""find: find files and folders by glob."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from operations import FindOperations, GlobResult, PathNotFound, Progress
from toolkit.interrupt import unless_aborted
from toolkit.optional import optional_operations
from toolkit.paths import Found, at_existing, check_cwd, join_given
from toolkit.rendering import call_view, result_view
from toolkit.texts.search_notes import rooted_notes, unreadable_note
from toolkit.texts.text import escape_names
from toolkit.texts.truncate import MAX_BYTES, MAX_COUNT, Truncation, truncate_head
from toolkit.tool import AgentTool, AgentToolResult, OnUpdate, ToolDefinition, wrap_tool_definition

if TYPE_CHECKING:
    from toolkit.abort import AbortSignal

__all__ = ["FindArguments", "create_find_tool", "create_find_tool_definition"]


class FindArguments(BaseModel):
    """Arguments of find."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pattern: str = Field(
        min_length=1,
        description='Glob with *, ?, **, [...] and {a,b}. Without "/" it fits names at any depth '
        '("*.py"); with "/" it is anchored at `path` ("src/**/*.py").',
    )
    path: str | None = Field(
        default=None, description="Folder to search. Default: the working folder."
    )
    limit: int = Field(default=1000, ge=1, description="Most paths to show.")


def create_find_tool_definition(
    cwd: str, *, operations: FindOperations, max_bytes: int = MAX_BYTES
) -> ToolDefinition[FindArguments]:
    """Define the find tool.

    Args:
        cwd: Folder on the target that relative paths are taken from.
        operations: Where the files are.
        max_bytes: Most bytes of UTF-8 of one result's paths, 1 or more.

    Raises:
        TypeError: `operations` lacks a method, or is a mock without a spec.
        ValueError: `cwd` is not absolute.
    """
    check_cwd(cwd)
    optional_operations(operations, "exists", "glob")

    async def execute(
        _tool_call_id: str,
        params: FindArguments,
        signal: AbortSignal,
        on_update: OnUpdate,
        _context: Any,
    ) -> AgentToolResult:
        def on_progress(progress: Progress) -> None:
            on_update(AgentToolResult.text(f"{progress.done} seen, {progress.found} found"))

        async def attempt(path: str) -> GlobResult:
            result = await operations.glob(
                params.pattern, path, limit=min(params.limit, MAX_COUNT), on_progress=on_progress
            )
            # No mistaken folder may look like one without files, whatever a place makes of it.
            if not result.paths and not await operations.exists(path):
                raise PathNotFound(path)
            return result

        given = "." if params.path is None else params.path
        found = await unless_aborted(signal, at_existing(given, cwd, attempt, noun="folder"))
        return _told(params, found, max_bytes)

    return ToolDefinition(
        name="find",
        label="Find",
        description=(
            "Find files and folders by glob, sorted; folders end with /. Hidden files are found; "
            "what .gitignore names and .git are not. Symlinks are listed, not followed."
        ),
        parameters=FindArguments,
        execute=execute,
        prompt_snippet="find files and folders by glob",
        prompt_guidelines=("Use find, not find or ls -R in bash, to find files by name.",),
        render_call=partial(call_view, "find"),
        render_result=partial(result_view, "find"),
    )


def create_find_tool(
    cwd: str, *, operations: FindOperations, max_bytes: int = MAX_BYTES
) -> AgentTool[FindArguments]:
    """Create the find tool; see `create_find_tool_definition`."""
    return wrap_tool_definition(
        create_find_tool_definition(cwd, operations=operations, max_bytes=max_bytes)
    )


def _told(params: FindArguments, found: Found[GlobResult], max_bytes: int) -> AgentToolResult:
    result = found.value
    paths = [join_given(params.path, path) for path in result.paths]
    cut = truncate_head(
        "\n".join(escape_names(paths)), max_lines=len(paths) + 1, max_bytes=max_bytes
    )
    notes = _notes(params, found, cut)
    details: dict[str, Any] = {
        "path": found.path,
        "count": len(paths),
        "more": result.more,
        "ignored": result.ignored,
        "unreadable": list(result.unreadable),
        "unreadable_total": result.unreadable_total,
    }
    if cut.truncated_by:
        details["truncation"] = cut.details()
    return AgentToolResult.text(
        "\n\n".join(
            (cut.text.removesuffix("\n") or "Nothing found.", *(f"[{note}]" for note in notes))
        ),
        details=details,
        structured_content={"paths": paths, "more": result.more},
    )


def _notes(params: FindArguments, found: Found[GlobResult], cut: Truncation) -> list[str]:
    result, count = found.value, len(found.value.paths)
    notes = [found.note] if found.note else []
    if cut.truncated_by:
        notes.append(
            f"Showing {cut.shown_lines} of {count}{' or more' if result.more else ''} paths; "
            "narrow the pattern or the path."
        )
    elif result.more:
        notes.append(
            f"Showing the first {count} path{'' if count == 1 else 's'}; there are "
            f"more. Narrow the pattern or the path, or raise limit (now {params.limit})."
        )
    if not count:
        notes += rooted_notes(params.pattern)
    if result.ignored:
        these = "1 path that fits is" if result.ignored == 1 else f"{result.ignored} that fit are"
        notes.append(
            f"{these} left out by .gitignore; name the ignored folder as path to see them."
        )
    if result.unreadable_total:
        notes.append(unreadable_note(params.path, result.unreadable, result.unreadable_total))
    return notes
