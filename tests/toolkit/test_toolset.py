"""All tools of one place at once."""

from __future__ import annotations

import sys

import pytest

from toolkit.toolset import coding_tools, read_only_tools


class Place:
    """Has every needed method; none is called here."""

    cwd = "/w"

    async def access(self, path): ...
    async def read_file(self, path): ...
    async def write_file(self, path, content): ...
    async def make_directory(self, path): ...
    async def exec(self, command, *, cwd, on_data, timeout_s=None, env=None, stop=None): ...
    async def is_directory(self, path): ...
    async def grep(self, query, *, on_matches=None): ...
    async def exists(self, path): ...
    async def glob(self, pattern, root, *, limit, on_progress=None): ...
    async def list_directory(self, path, *, limit): ...


def test_coding_tools_are_seven():
    names = [tool.name for tool in coding_tools(Place())]
    assert names == ["read", "write", "edit", "bash", "grep", "find", "ls"]


def test_read_only_tools_change_nothing():
    assert [tool.name for tool in read_only_tools(Place())] == ["read", "grep", "find", "ls"]


def test_a_place_that_lacks_something_is_refused():
    with pytest.raises(TypeError, match=r"exec\(\)"):
        coding_tools(type("NoShell", (Place,), {"exec": None})())


def test_options_reach_the_tools():
    tools = {
        tool.name: tool for tool in coding_tools(Place(), default_timeout_s=7, max_timeout_s=9)
    }
    assert "a time limit of 7 seconds" in tools["bash"].description


@pytest.mark.parametrize("tool", coding_tools(Place()), ids=lambda tool: tool.name)
def test_every_tool_describes_itself_and_each_argument(tool):
    described = tool.describe()
    assert len(described["description"]) > 40
    assert described["parameters"]["additionalProperties"] is False
    for name, schema in described["parameters"]["properties"].items():
        assert schema.get("description"), name


def test_heavy_libraries_are_loaded_when_needed_only():
    import subprocess

    code = (
        "import sys, toolkit.toolset; heavy = {'PIL', 'charset_normalizer', 'backends'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.strip() == "[]"
