"""The folder of kept outputs over lanes: nothing is left of it but outputs that are to stay."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from backends.remote.channel import Channel
from backends.remote.pipe import open_pipe
from backends.remote.shell_backend import ShellBackend

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("keep_output", [True, False])
@pytest.mark.parametrize(("command", "outputs"), [("true", 0), ("seq 1 20000", 1)])
async def test_what_stays(tmp_path: Path, keep_output: bool, command: str, outputs: int) -> None:
    async def open_channel(argv: Sequence[str]) -> Channel:
        return await open_pipe(["sh", *argv[1:]], env={**os.environ, "TMPDIR": str(tmp_path)})

    options = {"target": "sh:", "cwd": "/", "keep_output": keep_output}
    async with ShellBackend(open_channel, **options) as backend:
        for _ in range(2):
            await backend.exec_tail(
                command,
                cwd="/",
                on_snapshot=lambda _: None,
                tail_bytes=1000,
                keep_over_bytes=50_000,
                keep_over_lines=2000,
            )
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == (2 * outputs if keep_output else 0)
    if not files:
        assert list(tmp_path.iterdir()) == []
