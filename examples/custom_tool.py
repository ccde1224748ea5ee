"""A tool of one's own, all layers of it: `outline` lists what a Python file defines.

`python -m examples.custom_tool [FILE]` runs it on this machine. It has no effect but operations, so
it works wherever a backend leads.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import Any

import anyio
from pydantic import BaseModel, ConfigDict, Field

from backends.local import LocalBackend
from operations import ReadOperations
from toolkit import (
    AbortSignal,
    AgentToolResult,
    OnUpdate,
    ToolCall,
    ToolDefinition,
    ToolFailure,
    run_tool_calls,
    wrap_tool_definition,
)
from toolkit.paths import resolve_path


class OutlineArguments(BaseModel):
    """Arguments of outline; the descriptions are for the model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(description="The Python file.")
    depth: int = Field(default=2, ge=1, le=10, description="How deep to go; 2 shows methods.")


def create_outline_definition(
    cwd: str, *, operations: ReadOperations
) -> ToolDefinition[OutlineArguments]:
    """Define the tool.

    Args:
        cwd: Folder on the target that relative paths are taken from.
        operations: Where the files are; any backend.
    """

    async def execute(
        _tool_call_id: str,
        params: OutlineArguments,
        _signal: AbortSignal,
        on_update: OnUpdate,
        _context: Any,
    ) -> AgentToolResult:
        # A missing file needs no care here: the operation's error is told to the model as it is.
        source = await operations.read_file(resolve_path(params.path, cwd))
        on_update(AgentToolResult.text(f"parsing {len(source)} bytes"))
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError) as error:
            raise ToolFailure(f"{params.path}: no Python that can be parsed: {error}") from error
        found = list(definitions(tree, params.depth))
        return AgentToolResult.text(
            "\n".join(found) or f"{params.path} defines nothing.",
            details={"path": params.path, "count": len(found)},
        )

    return ToolDefinition(
        name="outline",
        label="Outline",
        description="List the classes and functions of a Python file with their line numbers.",
        parameters=OutlineArguments,
        execute=execute,
        prompt_snippet="list what a Python file defines",
        prompt_guidelines=("Use outline before reading a long Python file.",),
    )


def definitions(node: ast.AST, depth: int, indent: str = "") -> Iterator[str]:
    """Yield a line for each definition in a tree, `depth` levels of them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            kind = "class" if isinstance(child, ast.ClassDef) else "def"
            yield f"{child.lineno:>5} {indent}{kind} {child.name}"
            if depth > 1:
                yield from definitions(child, depth - 1, indent + "  ")


async def main(path: str) -> None:
    """Show the outline of a file of this machine."""
    async with LocalBackend() as backend:
        definition = create_outline_definition(backend.cwd, operations=backend)
        call = ToolCall(id="1", name="outline", arguments={"path": path})
        (message,) = await run_tool_calls([call], [wrap_tool_definition(definition)])
        print(message.text)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1] if len(sys.argv) > 1 else __file__)
