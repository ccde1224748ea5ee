"""read, grep, find and ls over whole trees: every error is expected, with its reason."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest

from backends.local import LocalBackend
from toolkit.calls import ToolCall, ToolResultMessage
from toolkit.runner import ToolRunner
from toolkit.toolset import read_only_tools

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
LIBRARY = Path(sysconfig.get_paths()["stdlib"])
#: One file of so many is read; 1 reads every file.
EVERY = int(os.environ.get("REMOTEHANDS_WHOLE_TREES_EVERY", "20"))
_LEFT_OUT = {".git", ".venv", "__pycache__", "site-packages", "dist-packages", ".hypothesis",
             ".mypy_cache", ".ruff_cache", ".pytest_cache"}  # fmt: skip

#: (tool, kind of the error, part of its text) -> why it is right.
EXPECTED = {
    ("read", "failed", "offset 2 is past the end"): "a file of one line or none has no second one",
}


def walk(root: Path) -> tuple[list[Path], list[Path]]:
    """Return the files and folders of a tree, sorted."""
    files, folders = [], []
    for folder, below, names in os.walk(root):
        below[:] = sorted(name for name in below if name not in _LEFT_OUT)
        folders.append(Path(folder))
        files += [Path(folder, name) for name in sorted(names)]
    return files, folders


@pytest.mark.parametrize("root", [ROOT, LIBRARY], ids=["this repository", "standard library"])
async def test_every_error_is_an_expected_one(root: Path) -> None:
    files, folders = walk(root)
    calls = [
        *(("read", {"path": str(path)}) for path in files[::EVERY]),
        *(("read", {"path": str(path), "offset": 2, "limit": 3}) for path in files[:: 5 * EVERY]),
        *(("ls", {"path": str(path)}) for path in folders[:: max(1, EVERY // 4)]),
        *(("find", {"pattern": "*.py", "path": str(path)}) for path in folders[:: 4 * EVERY]),
        *(("grep", {"pattern": p}) for p in (r"def \w+", "import", r"\u00e9", "^class ", "xyzzy")),
        *(("grep", {"pattern": "the", "path": str(path)}) for path in files[:: 10 * EVERY]),
    ]
    assert len(calls) > 20
    unexpected = []
    async with (
        LocalBackend(cwd=str(root)) as backend,
        ToolRunner(read_only_tools(backend, cwd=str(root))) as runner,
    ):
        for number in range(0, len(calls), 64):
            batch = [
                ToolCall(id=str(n), name=name, arguments=arguments)
                for n, (name, arguments) in enumerate(calls[number : number + 64])
            ]
            for call, message in zip(batch, await runner.run(batch), strict=True):
                assert message.to_json()
                if message.is_error and not expected(message):
                    unexpected.append((call.arguments, message.error_kind, message.text[:200]))
    assert unexpected == []


def expected(message: ToolResultMessage) -> bool:
    """Return True if this error is on the list."""
    return any(
        (message.tool_name, message.error_kind) == (tool, kind) and part in message.text
        for tool, kind, part in EXPECTED
    )
