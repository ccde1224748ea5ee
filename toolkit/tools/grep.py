"""grep: search the text of files for lines."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from operations import GrepMatch, GrepOperations, GrepQuery, GrepResult
from toolkit.interrupt import unless_aborted
from toolkit.optional import optional_operations
from toolkit.paths import Found, at_existing, check_cwd, join_given
from toolkit.rendering import call_view, result_view
from toolkit.texts.match_lines import match_lines, match_values
from toolkit.texts.search_notes import rooted_notes, unreadable_note
from toolkit.texts.text import escape_name
from toolkit.texts.truncate import MAX_BYTES, MAX_COUNT, truncate_head
from toolkit.tool import AgentTool, AgentToolResult, OnUpdate, ToolDefinition, wrap_tool_definition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.abort import AbortSignal

__all__ = ["GrepArguments", "create_grep_tool", "create_grep_tool_definition"]

_MAX_LINE_CHARS = 500


class GrepArguments(BaseModel):
    """Arguments of grep."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pattern: str = Field(
        min_length=1,
        description="Regular expression for one line (classes, groups, repeats, anchors, "
        "alternatives; no look-around and no backreferences), or plain text with literal.",
    )
    path: str | None = Field(
        default=None, description="File or folder to search. Default: the working folder."
    )
    glob: str | None = Field(
        default=None,
        min_length=1,
        description='Only files whose path below `path` fits, as "*.py" or "src/**/*.ts".',
    )
    ignore_case: bool = Field(default=False, description="Take upper and lower case as the same.")
    literal: bool = Field(default=False, description="Take the pattern as plain text.")
    context: int = Field(
        default=0, ge=0, le=100, description="Lines to show before and after each match."
    )
    limit: int = Field(default=100, ge=1, description="Most matching lines to show.")


def create_grep_tool_definition(
    cwd: str, *, operations: GrepOperations, timeout_s: float = 30.0, max_bytes: int = MAX_BYTES
) -> ToolDefinition[GrepArguments]:
    """Define the grep tool.

    Args:
        cwd: Folder on the target that relative paths are taken from.
        operations: Where the files are.
        timeout_s: Seconds until a search ends with an error.
        max_bytes: Most bytes of UTF-8 of one result's lines, 1 or more.

    Raises:
        TypeError: `operations` lacks a method, or is a mock without a spec.
        ValueError: `cwd` is not absolute.
    """
    check_cwd(cwd)
    optional_operations(operations, "is_directory", "grep")
    searcher = _Searcher(cwd=cwd, operations=operations, timeout_s=timeout_s, max_bytes=max_bytes)
    return ToolDefinition(
        name="grep",
        label="Grep",
        description=(
            "Search files for lines that match a pattern; shows path:line: text, sorted. Hidden "
            "files are searched; files that .gitignore names, .git and binary files are not, "
            "unless path names the file itself."
        ),
        parameters=GrepArguments,
        execute=searcher.execute,
        prompt_snippet="search the text of files",
        prompt_guidelines=(
            "Use grep, not grep or rg in bash, to search files.",
            "Narrow a search with path and glob before you raise its limit.",
        ),
        render_call=partial(call_view, "grep"),
        render_result=partial(result_view, "grep"),
    )


def create_grep_tool(
    cwd: str, *, operations: GrepOperations, timeout_s: float = 30.0, max_bytes: int = MAX_BYTES
) -> AgentTool[GrepArguments]:
    """Create the grep tool; see `create_grep_tool_definition`."""
    return wrap_tool_definition(
        create_grep_tool_definition(
            cwd, operations=operations, timeout_s=timeout_s, max_bytes=max_bytes
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Searcher:
    cwd: str
    operations: GrepOperations
    timeout_s: float
    max_bytes: int

    async def execute(
        self,
        _tool_call_id: str,
        params: GrepArguments,
        signal: AbortSignal,
        on_update: OnUpdate,
        _context: Any,
    ) -> AgentToolResult:
        found, is_file = await unless_aborted(signal, self._search(params, on_update))
        return _told(params, found, is_file=is_file, max_bytes=self.max_bytes)

    async def _search(
        self, params: GrepArguments, on_update: OnUpdate
    ) -> tuple[Found[GrepResult], bool]:
        seen: list[GrepMatch] = []
        found, text, full = 0, "", False

        def on_matches(batch: Sequence[GrepMatch]) -> None:
            nonlocal found, text, full
            found = min(found + len(batch), params.limit)
            if not full:  # else every batch would have all those before it made into text again
                seen.extend(batch[: params.limit - len(seen)])
                lines = match_lines(seen, escape_name, context=False)
                text, truncation = _cut("\n".join(lines), self.max_bytes)
                full = bool(truncation)
            on_update(AgentToolResult.text(text, details={"matches": found}))

        async def attempt(path: str) -> GrepResult:
            return await self.operations.grep(self._query(params, path), on_matches=on_matches)

        given = "." if params.path is None else params.path
        result = await at_existing(given, self.cwd, attempt, noun="file or folder")
        return result, await self._is_file(result)

    def _query(self, params: GrepArguments, path: str) -> GrepQuery:
        return GrepQuery(
            pattern=params.pattern,
            path=path,
            glob=params.glob,
            ignore_case=params.ignore_case,
            literal=params.literal,
            context=params.context,
            limit=min(params.limit, MAX_COUNT),
            max_line_chars=_MAX_LINE_CHARS,
            timeout_s=self.timeout_s,
        )

    async def _is_file(self, found: Found[GrepResult]) -> bool:
        """Tell a file that was named outright from a folder that holds one of the same name."""
        own = posixpath.basename(found.path.rstrip("/"))
        if not found.value.matches or any(match.path != own for match in found.value.matches):
            return False
        return not await self.operations.is_directory(found.path)


def _told(
    params: GrepArguments, found: Found[GrepResult], *, is_file: bool, max_bytes: int
) -> AgentToolResult:
    result = found.value

    def named(relative: str) -> str:
        return (params.path or relative) if is_file else join_given(params.path, relative)

    lines = match_lines(
        result.matches, lambda name: escape_name(named(name)), context=params.context > 0
    )
    text, truncation = _cut("\n".join(lines), max_bytes)
    notes = _notes(params, found, truncated=bool(truncation))
    details: dict[str, Any] = {
        "path": found.path,
        "matches": len(result.matches),
        "more": result.more,
        "files_searched": result.files_searched,
        "binary_skipped": result.binary_skipped,
        "unreadable": list(result.unreadable),
        "unreadable_total": result.unreadable_total,
        "engine": result.engine,
        **truncation,
    }
    return AgentToolResult.text(
        "\n\n".join((text or "No matches.", *(f"[{note}]" for note in notes))),
        details=details,
        structured_content={"matches": match_values(result.matches, named), "more": result.more},
    )


def _notes(params: GrepArguments, found: Found[GrepResult], *, truncated: bool) -> list[str]:
    result = found.value
    notes = [found.note] if found.note else []
    if result.more:
        count = len(result.matches)
        notes.append(
            f"Showing the first {count} matching line{'' if count == 1 else 's'}; there are more. "
            f"Narrow the search with path or glob, or raise limit (now {params.limit})."
        )
    if not result.matches:
        notes += rooted_notes(params.glob)
    if truncated:
        notes.append(
            "The text of the result was cut at its size limit; narrow the search or use less "
            "context."
        )
    if result.binary_skipped:
        count = result.binary_skipped
        notes.append(
            f"{count} binary file{' was' if count == 1 else 's were'} left out"
            f"{' (at least)' if result.more else ''}."
        )
    if result.unreadable_total:
        notes.append(unreadable_note(params.path, result.unreadable, result.unreadable_total))
    return notes


def _cut(text: str, max_bytes: int) -> tuple[str, dict[str, Any]]:
    cut = truncate_head(text, max_lines=len(text) + 1, max_bytes=max_bytes)
    return cut.text.removesuffix("\n"), {"truncation": cut.details()} if cut.truncated_by else {}
