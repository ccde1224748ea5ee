"""How the tests run `toolkit`, and the targets that they run it on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

TOOLKIT = [sys.executable, "-m", "toolkit.cli"]


def toolkit(
    *argv: str, cwd: Path, stdin: str | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TOOLKIT, *argv],
        cwd=cwd,
        input=stdin,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
    )


def on_terminal(*argv: str, cwd: Path, types: dict[str, str] | None = None) -> tuple[int, str]:
    """Run the command on a terminal of 120 times 12; return its exit code and what was shown.

    Args:
        argv: The command's arguments.
        cwd: Where it runs.
        types: What is typed once a text has been shown, each once.
    """
    said = ""
    types = dict(types or {})
    # In a process of its own, since forking one that has threads is not safe.
    spawn = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "12"}
    with subprocess.Popen(
        [sys.executable, "-c", spawn, *TOOLKIT, *argv],
        cwd=cwd,
        env={**env, "PYTHONPATH": str(Path(__file__).parents[3])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        while piece := os.read(process.stdout.fileno(), 1 << 16):
            said += piece.decode()
            for text in [text for text in types if text in said]:
                process.stdin.write(types.pop(text).encode())
                process.stdin.flush()
    return process.returncode, said


def program(path: Path, script: str) -> Path:
    """Make a shell script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def place_with(folder: Path, **programs: str) -> str:
    """Return a target on this machine on whose PATH these programs come first.

    Python is this one: another may be found through a program that is replaced. The engine's pid
    is in the file `engine`.
    """
    for name, script in {"python3": f'exec "{sys.executable}" "$@"', **programs}.items():
        program(folder / "bin" / name, script)
    wrap = program(
        folder / "wrap", f'echo $$ >"{folder}/engine"; PATH="{folder}/bin:$PATH" exec "$@"'
    )
    return f"command:{wrap}"


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
