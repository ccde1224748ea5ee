"""`toolkit demo`: a scripted agent repairs a small project through the real pipeline."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import typer

from toolkit import (
    BeforeToolCall,
    Block,
    ToolCall,
    ToolResultMessage,
    ToolRunner,
    coding_tools,
)
from toolkit.cli.call import message_text

__all__ = ["run_demo"]

BUG = "return (price * (100 + percent) + 50) // 100"
FIX = "return (price * (100 - percent) + 50) // 100"
SHOWN_LINES = 6
RUN_TESTS = "python3 -B -m unittest 2>&1 | tail -n 12; exit ${PIPESTATUS[0]}"


async def run_demo() -> int:
    """Repair the project on this machine, then do the file part again in memory.

    Returns:
        0 when every step ended as it should, else 1.
    """
    from backends.local import LocalBackend
    from backends.memory import MemoryBackend

    started = time.monotonic()
    resource = files("toolkit.cli") / "demo_project"
    with as_file(resource) as source, tempfile.TemporaryDirectory(prefix="remotehands-demo-") as at:
        project = Path(at) / "shop"
        shutil.copytree(source, project, ignore=shutil.ignore_patterns("__pycache__"))
        memory = MemoryBackend.from_directory(project)

        _title("local:  a copy of a small project on this machine")
        async with LocalBackend(cwd=str(project)) as backend:
            local = await _Agent(backend, with_shell=True).repair()
        _title("memory:  the same file calls on a tree of dicts")
        async with memory as backend:
            in_memory = await _Agent(backend, with_shell=False).repair()

    same = [_comparable(message) for message in local if message.tool_name != "bash"] == [
        _comparable(message) for message in in_memory
    ]
    fixed = local[-1].is_error is False and "OK" in message_text(local[-1])
    calls = len(local) + len(in_memory)
    _title(f"{calls} calls in {time.monotonic() - started:.1f} s")
    _say(f"the tests pass: {_mark(fixed)}")
    _say(f"both places answered the file calls with the same messages: {_mark(same)}")
    return 0 if fixed and same else 1


class _Agent:
    """A model's part, played from a script; it only knows what the messages tell it."""

    def __init__(self, backend: Any, *, with_shell: bool) -> None:
        self._runner = ToolRunner(coding_tools(backend), before_tool_call=[_no_recursive_removal])
        self._with_shell = with_shell
        self._messages: list[ToolResultMessage] = []

    async def repair(self) -> list[ToolResultMessage]:
        async with self._runner:
            await self._look_around()
            if self._with_shell:
                _say("run the tests: they fail")
                await self._call("bash", command=RUN_TESTS)
            name = await self._correct_a_mistaken_path()
            _say("fix the sign")
            await self._call("edit", path=name, edits=[{"old_text": BUG, "new_text": FIX}])
            if self._with_shell:
                _say("clean up with rm -rf: a before hook says no")
                await self._call("bash", command="rm -rf / --no-preserve-root")
                _say("run the tests again")
                await self._call("bash", command=RUN_TESTS)
        return self._messages

    async def _look_around(self) -> None:
        _say("look around: four calls in one parallel batch")
        await self._batch(
            ("read", {"path": "README.md"}),
            ("grep", {"pattern": r"\bdiscounted\(", "glob": "*.py"}),
            ("find", {"pattern": "**/*.py"}),
            ("ls", {}),
        )

    async def _correct_a_mistaken_path(self) -> str:
        _say("read the module, with a typing error in its name: the message tells the right one")
        error = await self._call("read", path="shop/pricng.py")
        suggested = re.search(r"\bhas (\w+\.py)", message_text(error))
        name = f"shop/{suggested[1]}" if suggested else "shop/pricing.py"
        await self._call("read", path=name)
        return name

    async def _call(self, name: str, **arguments: Any) -> ToolResultMessage:
        return (await self._batch((name, arguments)))[0]

    async def _batch(self, *calls: tuple[str, dict[str, Any]]) -> Sequence[ToolResultMessage]:
        first = len(self._messages) + 1
        messages = await self._runner.run(
            [
                ToolCall(id=f"call_{number}", name=name, arguments=arguments)
                for number, (name, arguments) in enumerate(calls, first)
            ]
        )
        for (name, arguments), message in zip(calls, messages, strict=True):
            _show(name, arguments, message)
        self._messages += messages
        return messages


async def _no_recursive_removal(context: BeforeToolCall) -> Block | None:
    command = getattr(context.params, "command", "")
    if re.search(r"\brm\s+-\w*r", command):
        return Block(reason="rm -r is not allowed here; delete single files by name")
    return None


def _comparable(message: ToolResultMessage) -> tuple[str, str, bool]:
    return message.tool_name, message_text(message), message.is_error


def _title(text: str) -> None:
    typer.secho(f"\n== {text}", bold=True)


def _say(text: str) -> None:
    typer.echo(f"\n   {text}")


def _mark(good: bool) -> str:  # noqa: FBT001
    return typer.style("yes", fg="green") if good else typer.style("NO", fg="red")


def _show(name: str, arguments: dict[str, Any], message: ToolResultMessage) -> None:
    shown = ", ".join(f"{key}={str(value)[:60]!r}" for key, value in arguments.items())
    mark = typer.style("✗", fg="red") if message.is_error else typer.style("✓", fg="green")
    elapsed = f"{message.duration_ms:.0f} ms" if message.duration_ms is not None else ""
    typer.echo(
        f"   {mark} {typer.style(name, bold=True)}({shown})  {typer.style(elapsed, dim=True)}"
    )
    lines = message_text(message).split("\n")
    more = f"... {len(lines) - SHOWN_LINES} more lines" if len(lines) > SHOWN_LINES else None
    if more and name == "bash":  # how it ended matters most
        shown_lines = [more, *lines[-SHOWN_LINES:]]
    else:
        shown_lines = [*lines[:SHOWN_LINES], *([more] if more else [])]
    for line in shown_lines:
        typer.secho(f"       {line[:110]}", dim=True)
