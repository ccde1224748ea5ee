"""The tools for one place, all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from operations import (
    BashOperations,
    EditOperations,
    FindOperations,
    GrepOperations,
    LsOperations,
    ReadOperations,
    WriteOperations,
)
from toolkit.tools import (
    create_bash_tool,
    create_edit_tool,
    create_find_tool,
    create_grep_tool,
    create_ls_tool,
    create_read_tool,
    create_write_tool,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.tool import AgentTool

__all__ = ["CodingPlace", "ReadOnlyPlace", "coding_tools", "read_only_tools"]


class ReadOnlyPlace(ReadOperations, GrepOperations, FindOperations, LsOperations, Protocol):
    """A place whose files can be looked at."""

    @property
    def cwd(self) -> str:
        """The folder that relative paths are taken from."""
        ...


class CodingPlace(ReadOnlyPlace, WriteOperations, EditOperations, BashOperations, Protocol):
    """A place that all seven tools can act on; every backend is one."""


def read_only_tools(
    backend: ReadOnlyPlace, *, cwd: str | None = None, line_numbers: bool = False
) -> list[AgentTool]:
    """Create read, grep, find and ls.

    Args:
        backend: Where the files are.
        cwd: Folder that relative paths are taken from; None for the backend's own.
        line_numbers: Have read put "12│ " before each line.
    """
    cwd = backend.cwd if cwd is None else cwd
    return [
        create_read_tool(cwd, operations=backend, line_numbers=line_numbers),
        create_grep_tool(cwd, operations=backend),
        create_find_tool(cwd, operations=backend),
        create_ls_tool(cwd, operations=backend),
    ]


def coding_tools(
    backend: CodingPlace,
    *,
    cwd: str | None = None,
    line_numbers: bool = False,
    durable: bool = False,
    default_timeout_s: float | None = 120.0,
    max_timeout_s: float | None = None,
    env: Mapping[str, str] | None = None,
) -> list[AgentTool]:
    """Create read, write, edit, bash, grep, find and ls.

    Args:
        backend: Where they act.
        cwd: Folder that commands start in and relative paths are taken from; None for the
            backend's own.
        line_numbers: Have read put "12│ " before each line.
        durable: Have write and edit sync each file before they answer.
        default_timeout_s: Limit of a bash command that names none, in seconds; None for no limit.
        max_timeout_s: The longest limit that a bash command may name, in seconds; None for any.
        env: Variables for bash, on top of the target's own.
    """
    cwd = backend.cwd if cwd is None else cwd
    read, *search = read_only_tools(backend, cwd=cwd, line_numbers=line_numbers)
    return [
        read,
        create_write_tool(cwd, operations=backend, durable=durable),
        create_edit_tool(cwd, operations=backend, durable=durable),
        create_bash_tool(
            cwd,
            operations=backend,
            default_timeout_s=default_timeout_s,
            max_timeout_s=max_timeout_s,
            env=env,
        ),
        *search,
    ]
