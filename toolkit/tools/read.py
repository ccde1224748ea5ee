"""read: show lines of a text file, or an image."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from operations import LineWindow, OperationUnsupported, Progress, ReadOperations
from toolkit.calls import ImageContent, TextContent
from toolkit.images import MAX_FILE_BYTES, view_image
from toolkit.interrupt import unless_aborted
from toolkit.optional import OptionalOperations, optional_operations
from toolkit.paths import Found, at_existing, check_cwd
from toolkit.rendering import call_view, result_view
from toolkit.texts.languages import language_of
from toolkit.texts.lines import window_of
from toolkit.texts.shown_lines import ShownLines, show_lines
from toolkit.texts.truncate import MAX_BYTES, MAX_COUNT, MAX_LINES, format_size
from toolkit.tool import AgentTool, AgentToolResult, OnUpdate, ToolDefinition, wrap_tool_definition

if TYPE_CHECKING:
    from toolkit.abort import AbortSignal

__all__ = ["ReadArguments", "create_read_tool", "create_read_tool_definition"]


class ReadArguments(BaseModel):
    """Arguments of read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(description="File to read: relative to the working folder, absolute, or ~/x.")
    offset: int | None = Field(
        default=None, ge=1, description="First line to show, counted from 1. Default: 1."
    )
    limit: int | None = Field(
        default=None, ge=1, description="Most lines to show. Default: as many as fit."
    )


def create_read_tool_definition(
    cwd: str,
    *,
    operations: ReadOperations,
    line_numbers: bool = False,
    max_lines: int = MAX_LINES,
    max_bytes: int = MAX_BYTES,
) -> ToolDefinition[ReadArguments]:
    """Define the read tool.

    Args:
        cwd: Folder on the target that relative paths are taken from.
        operations: Where the files are.
        line_numbers: Put "12│ " before each line.
        max_lines: Most lines of one result, 1 or more.
        max_bytes: Most bytes of UTF-8 of one result's lines, 1 or more.

    Raises:
        TypeError: `operations` lacks a method, or is a mock without a spec.
        ValueError: `cwd` is not absolute.
    """
    check_cwd(cwd)
    reader = _Reader(
        cwd=cwd,
        operations=operations,
        optional=optional_operations(operations, "access", "read_file"),
        line_numbers=line_numbers,
        max_lines=max_lines,
        max_bytes=max_bytes,
    )
    return ToolDefinition(
        name="read",
        label="Read",
        description=(
            f"Show a text file, at most {max_lines} lines or {format_size(max_bytes)} at a time; "
            "continue a longer one with offset. Images (png, jpeg, gif, webp, bmp) are shown as "
            "images; of other binary files only type and size."
        ),
        parameters=ReadArguments,
        execute=reader.execute,
        prompt_snippet="show lines of a text file, or an image",
        prompt_guidelines=(
            "Use read to look at files, not cat, head or sed.",
            "Read a file before you edit it.",
            "In a large file, read the part you need with offset and limit.",
        ),
        render_call=partial(call_view, "read"),
        render_result=partial(result_view, "read"),
    )


def create_read_tool(
    cwd: str,
    *,
    operations: ReadOperations,
    line_numbers: bool = False,
    max_lines: int = MAX_LINES,
    max_bytes: int = MAX_BYTES,
) -> AgentTool[ReadArguments]:
    """Create the read tool; see `create_read_tool_definition`."""
    return wrap_tool_definition(
        create_read_tool_definition(
            cwd,
            operations=operations,
            line_numbers=line_numbers,
            max_lines=max_lines,
            max_bytes=max_bytes,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    cwd: str
    operations: ReadOperations
    optional: OptionalOperations
    line_numbers: bool
    max_lines: int
    max_bytes: int

    async def execute(
        self,
        _tool_call_id: str,
        params: ReadArguments,
        signal: AbortSignal,
        on_update: OnUpdate,
        _context: Any,
    ) -> AgentToolResult:
        async def attempt(path: str) -> LineWindow:
            return await self._window(path, params, on_update)

        found = await unless_aborted(signal, at_existing(params.path, self.cwd, attempt))
        if found.value.kind == "image":
            return await unless_aborted(signal, _image(self.operations, params.path, found))
        if found.value.kind == "binary":
            return _binary(params.path, found)
        shown = show_lines(
            found.value,
            given=params.path,
            path=found.path,
            max_bytes=self.max_bytes,
            line_numbers=self.line_numbers,
        )
        return _text(found, shown)

    async def _window(self, path: str, params: ReadArguments, on_update: OnUpdate) -> LineWindow:
        start = min(params.offset or 1, MAX_COUNT)
        lines = min(params.limit or self.max_lines, self.max_lines)

        def on_progress(progress: Progress) -> None:
            on_update(AgentToolResult.text(_scanned(params.path, progress)))

        if self.optional.window is not None:
            try:
                return await self.optional.window.read_lines(
                    path,
                    start=start,
                    max_lines=lines,
                    max_bytes=self.max_bytes,
                    on_progress=on_progress,
                )
            except OperationUnsupported:
                pass
        await self.operations.access(path)
        images = self.optional.images
        mime_type = None if images is None else await images.detect_image_mime_type(path)
        return window_of(
            await self.operations.read_file(path),
            start=start,
            max_lines=lines,
            max_bytes=self.max_bytes,
            mime_type=mime_type,
        )


async def _image(
    operations: ReadOperations, given: str, found: Found[LineWindow]
) -> AgentToolResult:
    from anyio.to_thread import run_sync

    mime_type = found.value.mime_type or "image"
    details: dict[str, Any] = {"path": found.path, "kind": "image", "mime_type": mime_type}
    if found.value.size > MAX_FILE_BYTES:
        size, limit = format_size(found.value.size), format_size(MAX_FILE_BYTES)
        text = f"{given}: {mime_type}, {size}; over {limit}, so it is not shown"
        return AgentToolResult.text(text, details=details | {"bytes": found.value.size})
    content = await operations.read_file(found.path)
    view = await run_sync(view_image, content, mime_type)
    details |= {
        "bytes": len(content),
        "width": view.width,
        "height": view.height,
        "scale": view.scale,
    }
    note = TextContent(text=_noted(f"{given}: {view.note}", found.note))
    if view.data is None or view.mime_type is None:
        return AgentToolResult([note], details=details)
    return AgentToolResult(
        [note, ImageContent(data=view.data, mime_type=view.mime_type)], details=details
    )


def _binary(given: str, found: Found[LineWindow]) -> AgentToolResult:
    kind = found.value.mime_type
    text = f"{given}: binary file{f' ({kind})' if kind else ''}, {format_size(found.value.size)}"
    return AgentToolResult.text(
        _noted(f"{text}; its content is not shown", found.note),
        details={
            "path": found.path,
            "kind": "binary",
            "mime_type": kind,
            "bytes": found.value.size,
        },
    )


def _text(found: Found[LineWindow], shown: ShownLines) -> AgentToolResult:
    return AgentToolResult.text(
        _noted(shown.text, found.note),
        details={
            "path": found.path,
            "kind": "text",
            "language": language_of(found.path),
            "bytes": found.value.size,
            **shown.details,
        },
    )


def _noted(text: str, note: str) -> str:
    return f"{text}\n\n[{note}]" if note else text


def _scanned(path: str, progress: Progress) -> str:
    total = f" of {format_size(progress.total)}" if progress.total else ""
    return f"{path}: {format_size(progress.done)}{total} scanned"
