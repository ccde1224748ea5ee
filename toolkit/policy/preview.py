"""What write and edit would change, worked out without changing anything."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from anyio.to_thread import run_sync

from operations import OperationError, PathNotFound
from toolkit.failures import ToolFailure, error_text
from toolkit.paths import at_existing, resolve_path
from toolkit.texts.diff import unified_diff
from toolkit.texts.edit_plan import plan_edit
from toolkit.texts.match import Edit, Replacement
from toolkit.texts.text import decode_for_editing, escape_name, without_terminal_codes
from toolkit.texts.truncate import format_size

if TYPE_CHECKING:
    from operations import EditOperations

__all__ = ["preview_call"]

#: Larger files are not compared: a person could not look through the difference anyway.
_MOST_BYTES = 2 * 1024 * 1024


async def preview_call(
    tool: str, arguments: Any, operations: EditOperations, cwd: str
) -> str | None:
    """Return the unified diff of what a call of write or edit would change; None for other tools.

    Reads the file, writes nothing. Where there is no diff to show (the file cannot be read, or the
    edit does not fit it), a sentence says why. The file may change before the call runs.

    Args:
        tool: The tool's name.
        arguments: Its validated arguments.
        operations: Where the files are.
        cwd: Where relative paths are taken from.
    """
    try:
        if tool == "write":
            return await _write(arguments.path, arguments.content, operations, cwd)
        if tool == "edit":
            return await _edit(arguments, operations, cwd)
    except (ToolFailure, OperationError, UnicodeError) as error:
        return f"no preview: {without_terminal_codes(error_text(error))}"
    return None


async def _write(given: str, content: str, operations: EditOperations, cwd: str) -> str:
    try:
        before = await operations.read_file(resolve_path(given, cwd))
    except PathNotFound:
        before = b""
    size = len(content.encode())
    if max(len(before), size) > _MOST_BYTES:
        return f"no preview: {format_size(len(before))} would become {format_size(size)}"
    file = decode_for_editing(before)
    if file is None or b"\0" in before[:8192]:
        return f"no preview: a binary file of {format_size(len(before))} would be replaced"
    if file.text == content:
        return f"no change: {escape_name(given)} holds exactly this"
    whole = Replacement(start=0, end=len(file.text), text=content, edit=0)
    diff = await run_sync(partial(unified_diff, file.text, [whole], escape_name(given)))
    return diff.text


async def _edit(arguments: Any, operations: EditOperations, cwd: str) -> str:
    found = await at_existing(arguments.path, cwd, operations.read_file)
    if len(found.value) > _MOST_BYTES:
        return f"no preview: the file has {format_size(len(found.value))}"
    edits = [
        Edit(old_text=each.old_text, new_text=each.new_text, replace_all=each.replace_all)
        for each in arguments.edits
    ]
    plan = await run_sync(partial(plan_edit, found.value, edits, escape_name(arguments.path)))
    return plan.diff.text
