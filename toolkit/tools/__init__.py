"""The seven tools: each file holds an arguments model and one tool, nothing else."""

from __future__ import annotations

from toolkit.tools.bash import create_bash_tool, create_bash_tool_definition
from toolkit.tools.edit import create_edit_tool, create_edit_tool_definition
from toolkit.tools.find import create_find_tool, create_find_tool_definition
from toolkit.tools.grep import create_grep_tool, create_grep_tool_definition
from toolkit.tools.ls import create_ls_tool, create_ls_tool_definition
from toolkit.tools.read import create_read_tool, create_read_tool_definition
from toolkit.tools.write import create_write_tool, create_write_tool_definition

__all__ = [
    "create_bash_tool",
    "create_bash_tool_definition",
    "create_edit_tool",
    "create_edit_tool_definition",
    "create_find_tool",
    "create_find_tool_definition",
    "create_grep_tool",
    "create_grep_tool_definition",
    "create_ls_tool",
    "create_ls_tool_definition",
    "create_read_tool",
    "create_read_tool_definition",
    "create_write_tool",
    "create_write_tool_definition",
]
