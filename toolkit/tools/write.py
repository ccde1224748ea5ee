"""write: make a text the whole content of a file."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from operations import OperationError, OperationUnsupported, WriteOperations, WriteResult
from toolkit.failures import ToolFailure
from toolkit.mutation_key import mutation_key
from toolkit.mutation_queue import mutation_queue
from toolkit.optional import OptionalOperations, optional_operations
from toolkit.paths import check_cwd, resolve_path, retell
from toolkit.rendering import call_view, result_view
from toolkit.texts.truncate import count_lines, format_size
from toolkit.texts.written import in_place_note
from toolkit.tool import AgentTool, AgentToolResult, OnUpdate, ToolDefinition, wrap_tool_definition

if TYPE_CHECKING:
    from toolkit.abort import AbortSignal

__all__ = ["WriteArguments", "create_write_tool", "create_write_tool_definition"]


class WriteArguments(BaseModel):
    """Arguments of write."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(
        description="File to write: relative to the working folder, absolute, or ~/x."
    )
    content: str = Field(description="The whole new content, written exactly as given, as UTF-8.")


def create_write_tool_definition(
    cwd: str, *, operations: WriteOperations, durable: bool = False
) -> ToolDefinition[WriteArguments]:
    """Define the write tool.

    Args:
        cwd: Folder on the target that relative paths are taken from.
        operations: Where the files are.
        durable: Sync each file before answering, so that a power cut is covered too.

    Raises:
        TypeError: `operations` lacks a method, or is a mock without a spec.
        ValueError: `cwd` is not absolute.
    """
    check_cwd(cwd)
    writer = _Writer(
        cwd=cwd,
        operations=operations,
        optional=optional_operations(operations, "write_file", "make_directory"),
        durable=durable,
    )
    return ToolDefinition(
        name="write",
        label="Write",
        description=(
            "Write a whole file, made with its missing folders or replaced. Whoever reads it "
            "meanwhile sees the old content or the new."
        ),
        parameters=WriteArguments,
        execute=writer.execute,
        prompt_snippet="create or replace a whole file",
        prompt_guidelines=(
            "Use write for new files and complete rewrites; use edit for changes to a file.",
            "Do not write files with cat or echo in bash.",
        ),
        render_call=partial(call_view, "write"),
        render_result=partial(result_view, "write"),
    )


def create_write_tool(
    cwd: str, *, operations: WriteOperations, durable: bool = False
) -> AgentTool[WriteArguments]:
    """Create the write tool; see `create_write_tool_definition`."""
    return wrap_tool_definition(
        create_write_tool_definition(cwd, operations=operations, durable=durable)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer:
    cwd: str
    operations: WriteOperations
    optional: OptionalOperations
    durable: bool

    async def execute(
        self,
        _tool_call_id: str,
        params: WriteArguments,
        _signal: AbortSignal,
        _on_update: OnUpdate,
        _context: Any,
    ) -> AgentToolResult:
        path = _file_path(params.path, self.cwd)
        content = params.content.encode()
        async with mutation_queue(mutation_key(self.operations, self.optional.facts(), path)):
            try:
                written = await self._put(path, content)
            except OperationError as error:
                raise retell(error, params.path, self.cwd, noun="folder") from error
        return _told(params, path, len(content), written)

    async def _put(self, path: str, content: bytes) -> WriteResult | None:
        if self.optional.replace is not None:
            try:
                return await self.optional.replace.replace_file(
                    path, content, make_parents=True, durable=self.durable
                )
            except OperationUnsupported:
                pass
        await self.operations.make_directory(posixpath.dirname(path) or "/")
        await self.operations.write_file(path, content)
        return None


def _file_path(given: str, cwd: str) -> str:
    path = resolve_path(given, cwd)
    # Its parents would be made first, and this would be one of them.
    if path.endswith(("/", "/.", "/..")):
        raise ToolFailure(f"{given}: is the name of a folder, not of a file")
    return path


def _told(
    params: WriteArguments, path: str, size: int, written: WriteResult | None
) -> AgentToolResult:
    lines = count_lines(params.content)
    did = "Wrote" if written is None else "Created" if written.created else "Replaced"
    text = f"{did} {params.path} ({lines} line{'' if lines == 1 else 's'}, {format_size(size)})."
    details: dict[str, Any] = {"path": path, "bytes": size, "lines": lines}
    if written is not None:
        details |= {
            "created": written.created,
            "replaced": not written.created,
            "atomic": written.atomic,
        }
        if not written.atomic:
            details["reason"] = written.reason
            text += f"\n\n[{in_place_note(written)}]"
    return AgentToolResult.text(text, details=details)
