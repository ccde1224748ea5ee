"""edit: replace texts in a file, all of them or none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio.to_thread import run_sync
from pydantic import BaseModel, ConfigDict, Field

from operations import (
    EditOperations,
    FileChanged,
    FileVersion,
    OperationError,
    OperationUnsupported,
    WriteResult,
)
from toolkit.failures import ToolFailure
from toolkit.mutation_key import mutation_key
from toolkit.mutation_queue import mutation_queue
from toolkit.optional import OptionalOperations, optional_operations
from toolkit.paths import Found, at_existing, check_cwd, resolve_path, retell
from toolkit.rendering import call_view, result_view
from toolkit.texts.edit_plan import EditPlan, plan_edit
from toolkit.texts.match import Edit
from toolkit.texts.written import in_place_note
from toolkit.tool import AgentTool, AgentToolResult, OnUpdate, ToolDefinition, wrap_tool_definition

if TYPE_CHECKING:
    from toolkit.abort import AbortSignal

__all__ = ["EditArguments", "create_edit_tool", "create_edit_tool_definition"]

_MOST_ATTEMPTS = 4
# Working out an edit of more than this takes long enough for other calls to notice.
_THREAD_FROM_BYTES = 512 * 1024


class EditItem(BaseModel):
    """One text to replace."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    old_text: str = Field(
        description="Text as it stands in the file, with its indentation; enough of it to be there "
        "only once. Line ends may be given as LF whatever the file has."
    )
    new_text: str = Field(description='Text to put in its place; "" removes it.')
    replace_all: bool = Field(
        default=False, description="Replace every place where old_text stands."
    )


class EditArguments(BaseModel):
    """Arguments of edit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(description="File to edit: relative to the working folder, absolute, or ~/x.")
    edits: list[EditItem] = Field(
        min_length=1,
        description="Replacements, each matched against the file as it is before any of them; "
        "they must not overlap.",
    )


def create_edit_tool_definition(
    cwd: str, *, operations: EditOperations, durable: bool = False
) -> ToolDefinition[EditArguments]:
    """Define the edit tool.

    Args:
        cwd: Folder on the target that relative paths are taken from.
        operations: Where the files are.
        durable: Sync each file before answering, so that a power cut is covered too.

    Raises:
        TypeError: `operations` lacks a method, or is a mock without a spec.
        ValueError: `cwd` is not absolute.
    """
    check_cwd(cwd)
    editor = _Editor(
        cwd=cwd,
        operations=operations,
        optional=optional_operations(operations, "access", "read_file", "write_file"),
        durable=durable,
    )
    return ToolDefinition(
        name="edit",
        label="Edit",
        description=(
            "Replace texts in a file. Each old_text must stand in the file exactly once (or set "
            "replace_all); all edits are matched against the file as it is, and all are made or "
            "none. Put several changes of one file into one call."
        ),
        parameters=EditArguments,
        execute=editor.execute,
        prepare_arguments=_with_edits_list,
        prompt_snippet="replace exact texts in a file",
        prompt_guidelines=(
            "Use edit to change a file. Copy old_text from what read showed, and keep it short.",
            "Make several changes to one file in one edit call with several edits.",
        ),
        render_call=partial(call_view, "edit"),
        render_result=partial(result_view, "edit"),
    )


def create_edit_tool(
    cwd: str, *, operations: EditOperations, durable: bool = False
) -> AgentTool[EditArguments]:
    """Create the edit tool; see `create_edit_tool_definition`."""
    return wrap_tool_definition(
        create_edit_tool_definition(cwd, operations=operations, durable=durable)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Editor:
    cwd: str
    operations: EditOperations
    optional: OptionalOperations
    durable: bool

    async def execute(
        self,
        _tool_call_id: str,
        params: EditArguments,
        _signal: AbortSignal,
        _on_update: OnUpdate,
        _context: Any,
    ) -> AgentToolResult:
        path = resolve_path(params.path, self.cwd)
        # The turn is taken before the first trip, so that effects follow the order of calls.
        async with mutation_queue(mutation_key(self.operations, self.optional.facts(), path)):
            found = await at_existing(params.path, self.cwd, self._get)
            try:
                return await self._edit(params, found)
            except OperationError as error:
                raise retell(error, params.path, self.cwd) from error

    async def _edit(
        self, params: EditArguments, found: Found[tuple[bytes, FileVersion | None]]
    ) -> AgentToolResult:
        edits = [Edit(**item.model_dump()) for item in params.edits]
        content, version = found.value
        for attempt in range(1, _MOST_ATTEMPTS + 1):
            plan = await _planned(content, edits, params.path)
            try:
                written = await self._put(found.path, plan.content, version)
            except FileChanged:
                content, version = await self._get(found.path)
            else:
                return _told(plan, written, params.path, found, attempt)
        raise ToolFailure(
            f"{params.path}: was changed by somebody else between reading and writing, "
            f"{_MOST_ATTEMPTS} times in a row. Nothing was changed; read it again.",
            kind="changed",
            details={"path": found.path, "attempts": _MOST_ATTEMPTS},
        )

    async def _get(self, path: str) -> tuple[bytes, FileVersion | None]:
        if self.optional.versioned is not None:
            try:
                read = await self.optional.versioned.read_versioned(path)
            except OperationUnsupported:
                pass
            else:
                return read.content, read.version
        await self.operations.access(path)
        return await self.operations.read_file(path), None

    async def _put(
        self, path: str, content: bytes, version: FileVersion | None
    ) -> WriteResult | None:
        if self.optional.replace is not None:
            try:
                return await self.optional.replace.replace_file(
                    path, content, expected=version, durable=self.durable
                )
            except OperationUnsupported:
                pass
        await self.operations.write_file(path, content)
        return None


def _with_edits_list(arguments: Any) -> Any:
    """Accept one edit whose texts stand at the top level, as other tools of this name have it."""
    names = {name: name.replace("_", "").lower() for name in arguments if isinstance(name, str)}
    moved = {
        name: arguments[name]
        for name, folded in names.items()
        if folded in ("oldtext", "newtext", "replaceall")
    }
    if arguments.get("edits") or "oldtext" not in names.values():
        return arguments
    rest = {name: value for name, value in arguments.items() if name not in moved}
    return rest | {"edits": [moved]}


async def _planned(content: bytes, edits: list[Edit], given: str) -> EditPlan:
    if len(content) < _THREAD_FROM_BYTES:
        return plan_edit(content, edits, given)
    return await run_sync(partial(plan_edit, content, edits, given))


def _told(
    plan: EditPlan,
    written: WriteResult | None,
    given: str,
    found: Found[tuple[bytes, FileVersion | None]],
    attempts: int,
) -> AgentToolResult:
    count = len(plan.edited.replacements)
    notes = [found.note] if found.note else []
    notes += plan.notes()
    details = {"path": found.path, **plan.details(), "attempts": attempts}
    if attempts > 1:
        notes.append("The file was changed meanwhile; the edits were matched again.")
    if written is not None:
        details["atomic"] = written.atomic
        if not written.atomic:
            details["reason"] = written.reason
            notes.append(in_place_note(written))
    text = (
        f"Edited {given}: {count} replacement{'' if count == 1 else 's'} "
        f"(+{plan.diff.added} -{plan.diff.removed} lines), "
        f"the first in line {plan.diff.first_changed_line}."
    )
    return AgentToolResult.text(
        "\n\n".join((text, *(f"[{each}]" for each in notes))), details=details
    )
