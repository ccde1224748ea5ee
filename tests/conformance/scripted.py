"""What scripted shells answer to the few commands that tests use without a real shell.

Each entry behaves as the same text does in bash; the tests hold for both.
"""

from __future__ import annotations

from typing import Any

from backends.memory import CommandOutput


def _pwd(run: Any) -> str:
    return f"{run.cwd}\n"


def _variable(run: Any) -> str:
    return str(run.env.get("FOO", ""))


def _echo_stdin(run: Any) -> bytes:
    return bytes(run.stdin)


async def _print_then_wait(run: Any) -> None:
    await run.print("before")
    await run.clock.sleep(60)


async def _write_file(run: Any) -> None:
    run.tree.write("made.txt", b"made\n")


def handlers() -> list[tuple[str, Any]]:
    """Return (command, answer) pairs."""
    return [
        ("true", ""),
        ("echo hi", "hi\n"),
        ("echo hi; exit 3", CommandOutput("hi\n", exit_code=3)),
        ("exit 3", CommandOutput("", exit_code=3)),
        ("cat", _echo_stdin),
        ("pwd -P", _pwd),
        ('printf %s "$FOO"', _variable),
        ("sleep 60", CommandOutput("", delay_s=60)),
        ("echo before; sleep 60", _print_then_wait),
        ("echo before; kill -KILL $$", CommandOutput("before\n", signal=9)),
        ("echo before; kill -TERM $$", CommandOutput("before\n", signal=15)),
        ("seq 1 5000", "".join(f"{n}\n" for n in range(1, 5001))),
        ("seq 1 2000", "".join(f"{n}\n" for n in range(1, 2001))),
        ("seq 1 2001", "".join(f"{n}\n" for n in range(1, 2002))),
        ("echo made > made.txt", _write_file),
        ("sleep 0.3; echo late", CommandOutput("late\n", delay_s=0.3)),
    ]
