"""`toolkit demo`: a scripted agent repairs a small project through the real pipeline."""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import anyio
import typer

from operations import BackendUnavailable, ConnectionLost, OperationError
from toolkit import (
    BeforeToolCall,
    Block,
    ToolCall,
    ToolResultMessage,
    ToolRunner,
    coding_tools,
)
from toolkit.cli.call import message_text
from toolkit.cli.session import EXIT_UNREACHABLE, TargetFailed, Where, complain, open_session
from toolkit.cli.shown import named, shown, styled

if TYPE_CHECKING:
    from backends.targets import Backend

__all__ = ["run_demo", "run_demo_on"]

BUG = "return (price * (100 + percent) + 50) // 100"
FIX = "return (price * (100 - percent) + 50) // 100"
SHOWN_LINES, SHOWN_CHARS, PATCH_LINES = 6, 110, 40
RUN_TESTS = "python3 -B -m unittest"
CLEAN_UP_S = 15.0
_TEMP = "${TMPDIR:-/tmp}/$NAME"


async def run_demo() -> int:
    """Repair the project on this machine, then do the file part again in memory.

    Returns:
        0 when every step ended as it should, else 1.
    """
    from backends.local import LocalBackend
    from backends.memory import MemoryBackend

    started = time.monotonic()
    with _copy_of_project() as project:
        memory = MemoryBackend.from_directory(project)

        _title("local:  a copy of a small project on this machine")
        async with LocalBackend(cwd=str(project)) as backend:
            local = await _Agent(backend, backend.cwd, with_shell=True).repair()
        _title("memory:  the same file calls on a tree of dicts")
        async with memory as backend:
            in_memory = await _Agent(backend, backend.cwd, with_shell=False).repair()

    same = [_comparable(message) for message in local if message.tool_name != "bash"] == [
        _comparable(message) for message in in_memory
    ]
    fixed = _passed(local[-1])
    calls = len(local) + len(in_memory)
    _title(f"{calls} calls in {time.monotonic() - started:.1f} s")
    _say(f"the tests pass: {_mark(fixed)}")
    _say(f"both places answered the file calls with the same messages: {_mark(same)}")
    return 0 if fixed and same else 1


async def run_demo_on(target: str) -> int:
    """Put the project into a target, repair it there, show the patch, and leave nothing.

    Returns:
        0 when every step ended as it should, 1 when one did not, 2 for a target that is
        malformed, 3 for one that is unreachable.
    """
    try:
        async with open_session(target, Where()) as backend:
            return await _repair_on(backend, target)
    except TargetFailed as error:
        return complain(str(error), error.exit_code)
    except OperationError as error:
        gone = isinstance(error, BackendUnavailable | ConnectionLost)
        return complain(str(error), EXIT_UNREACHABLE if gone else 1)


async def _repair_on(backend: Backend, target: str) -> int:
    from backends.workspace import put_folder, take_patch

    started = time.monotonic()
    async with _folder(backend, target) as folder:
        with (
            _copy_of_project() as project,
            await put_folder(backend, str(project), f"{folder}/shop") as baseline,
        ):
            where = f"a copy of a small project in {shown(baseline.destination)}"
            _title(f"{shown(named(target))}  {where}")
            with_shell = await _can_test(backend)
            if not with_shell:
                _say("no python3 runs here, so the tests of the project cannot: only the files")
            agent = _Agent(backend, baseline.destination, with_shell=with_shell)
            messages = await agent.repair()
            patch = await take_patch(backend, baseline)
    _say("what the agent has changed:")
    _show_patch(patch)
    _title(f"{len(messages)} calls in {time.monotonic() - started:.1f} s")
    fixed = f"+    {FIX}\n".encode() in patch
    if with_shell:
        fixed = fixed and _passed(messages[-1])
        _say(f"the tests pass: {_mark(fixed)}")
    else:
        _say(f"the file is repaired: {_mark(fixed)}")
    return 0 if fixed else 1


@contextmanager
def _copy_of_project() -> Iterator[Path]:
    """Give a folder of this machine with the project, and nothing else, in it."""
    resource = files("toolkit.cli") / "demo_project"
    with as_file(resource) as source, tempfile.TemporaryDirectory(prefix="remotehands-demo-") as at:
        project = Path(at) / "shop"
        shutil.copytree(source, project, ignore=shutil.ignore_patterns("__pycache__"))
        yield project


@asynccontextmanager
async def _folder(backend: Backend, target: str) -> AsyncIterator[str]:
    """Give a folder on the target that is ours alone: one that goes with it, or a temporary one."""
    if _is_ours(target):
        yield backend.cwd
        return
    # Named here, so that it can be removed whenever an interrupt comes.
    env = {"NAME": f"remotehands-demo-{secrets.token_hex(8)}"}
    try:
        made = await _shell(backend, f'mkdir -m 700 -- "{_TEMP}" && printf %s "{_TEMP}"', env)
        if not made.startswith("/"):
            raise OperationError(f"no temporary folder can be made there: {made[:200]!r}")
        yield made
    finally:
        with anyio.move_on_after(CLEAN_UP_S, shield=True):
            try:
                await _shell(backend, f'rm -rf -- "{_TEMP}"', env)
            except OperationError as error:
                complain(f"the temporary folder {env['NAME']} stays there: {error}", 1)


def _is_ours(target: str) -> bool:
    scheme, _, rest = target.partition(":")
    shared = scheme == "docker+run" and "mount" in parse_qs(rest.partition("?")[2])
    return scheme in ("docker+run", "memory") and not shared


async def _can_test(backend: Backend) -> bool:
    facts = backend.facts
    if facts is not None and (facts.platform == "memory" or facts.shell is None):
        return False
    probe = "python3 -c 'import unittest' >/dev/null 2>&1 && echo able"
    return (await _shell(backend, probe, {})).strip() == "able"


async def _shell(backend: Backend, command: str, env: dict[str, str]) -> str:
    """Return the first 4 KiB of what a command prints, both on stdout and on stderr."""
    said = bytearray()

    def take(data: bytes) -> None:
        said.extend(data[: 4096 - len(said)])

    await backend.exec(command, cwd="/", on_data=take, timeout_s=CLEAN_UP_S, env=env)
    return said.decode("utf-8", "surrogateescape")


class _Agent:
    """A model's part, played from a script; it only knows what the messages tell it."""

    def __init__(self, backend: Backend, cwd: str, *, with_shell: bool) -> None:
        tools = coding_tools(backend, cwd=cwd)
        self._runner = ToolRunner(tools, before_tool_call=[_no_recursive_removal])
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


def _passed(message: ToolResultMessage) -> bool:
    return not message.is_error and "OK" in message_text(message)


def _title(text: str) -> None:
    typer.echo("\n" + styled(f"== {text}", bold=True))


def _say(text: str) -> None:
    typer.echo(f"\n   {text}")


def _mark(good: bool) -> str:  # noqa: FBT001
    return styled("yes", fg="green") if good else styled("NO", fg="red")


def _show(name: str, arguments: dict[str, Any], message: ToolResultMessage) -> None:
    given = ", ".join(f"{key}={str(value)[:60]!r}" for key, value in arguments.items())
    mark = styled("✗", fg="red") if message.is_error else styled("✓", fg="green")
    elapsed = f"{message.duration_ms:.0f} ms" if message.duration_ms is not None else ""
    typer.echo(f"   {mark} {styled(name, bold=True)}({given})  {styled(elapsed, dim=True)}")
    lines = message_text(message).split("\n")
    more = f"... {len(lines) - SHOWN_LINES} more lines" if len(lines) > SHOWN_LINES else None
    if more and name == "bash":  # how it ended matters most
        shown_lines = [more, *lines[-SHOWN_LINES:]]
    else:
        shown_lines = [*lines[:SHOWN_LINES], *([more] if more else [])]
    for line in shown_lines:
        typer.echo(styled(f"       {_line(line)}", dim=True))


def _show_patch(patch: bytes) -> None:
    lines = patch.decode("utf-8", "replace").splitlines()
    for line in lines[:PATCH_LINES]:
        colour = {"+": "green", "-": "red"}.get(line[:1])
        typer.echo(styled(f"       {_line(line)}", fg=colour))
    if len(lines) > PATCH_LINES:
        typer.echo(f"       ... {len(lines) - PATCH_LINES} more lines")


def _line(text: str) -> str:
    return shown(text.expandtabs(), SHOWN_CHARS)
