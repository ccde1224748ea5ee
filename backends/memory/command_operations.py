"""The operations that run commands in memory, and how their scripts are written."""

from __future__ import annotations

import itertools
import posixpath
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, overload

from backends.engine.beneath import NO_COMMANDS
from backends.engine.faults import Fault
from backends.engine.shell import QUIET
from backends.memory.access import TreeAccess, to_bytes, to_text
from backends.memory.core import Core
from backends.memory.nodes import EXECUTE, WRITE
from backends.memory.outputs import ForwardedOutput, TailedOutput
from backends.memory.seed import Directory, File, plant
from backends.memory.shell import Order, Script, Shell
from backends.remote.arguments import command_request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from backends.memory.clock import Clock
    from backends.memory.commands import (
        CommandRun,
        Handler,
        HandlerReturn,
        Matcher,
        RecordedCommand,
    )
    from backends.memory.nodes import User
    from backends.memory.outputs import Output
    from operations import ExecResult, OutputSnapshot, StopSignal

__all__ = ["CommandOperations"]

H = TypeVar("H", bound="Callable[[CommandRun], HandlerReturn | Awaitable[HandlerReturn]]")


class CommandOperations(Core):
    """Run commands by scripts.

    Args:
        cwd: As for `Core`.
        home: As for `Core`.
        user: As for `Core`.
        clock: As for `Core`.
        env: Variables for every command, on top of HOME, PATH and the like.
        kept_output_limit: Most bytes of a command's output that are kept in a file.
        root: Absolute path of the folder that file operations are confined to, or None.
        unconfined_commands: Run commands in spite of a root.
    """

    def __init__(
        self,
        *,
        cwd: str,
        home: str,
        user: User,
        clock: Clock,
        env: Mapping[str, str],
        kept_output_limit: int,
        root: str | None,
        unconfined_commands: bool,
    ) -> None:
        self._kept_folder = f"/tmp/remotehands-{user.uid}"  # noqa: S108 - of the tree in memory
        readable = [root, *([self._kept_folder] if unconfined_commands else [])] if root else []
        roots = tuple(to_bytes(folder) for folder in readable)
        super().__init__(cwd=cwd, home=home, user=user, clock=clock, roots=roots)
        self._refuses_commands = root is not None and not unconfined_commands
        self._shell = Shell(clock, {**_usual_environment(home), **env})
        self._kept_limit = kept_output_limit
        self._kept_numbers = itertools.count(1)
        self._kept: list[str] = []

    @property
    def commands(self) -> list[RecordedCommand]:
        """Every command that was run, in the order of their starts."""
        return self._shell.commands

    @overload
    def on_command(
        self, matcher: Matcher, handler: Handler, *, survivors: Sequence[str] = ()
    ) -> None: ...

    @overload
    def on_command(
        self, matcher: Matcher, *, survivors: Sequence[str] = ()
    ) -> Callable[[H], H]: ...

    def on_command(
        self, matcher: Matcher, handler: Handler | None = None, *, survivors: Sequence[str] = ()
    ) -> Callable[[H], H] | None:
        """Say what commands do; without `handler`, decorate the function that is to be it.

        The script that was added last is asked first, so a test can override what a fixture
        scripted. A command that no script fits ends with exit code 127 and says how to script it.

        A handler is one of

        - text or bytes: what the command prints, with exit code 0;
        - a `CommandOutput`: with an exit code, a signal, a delay;
        - a function, plain or async, that takes a `CommandRun` and returns one of these, an exit
          code, None for 0, or a whole `ExecResult` (whose totals are filled in). A plain function
          runs on the event loop and must not block.

        A time limit or a stop cancels the handler; the result has what was printed until then.
        An `OperationError` that a handler raises is raised by the operation itself. Anything else
        that it raises is a fault of the test: the command ends with exit code 70, its output with
        the traceback, and the error is in `commands[-1].error`.

        Args:
            matcher: The exact text of the command, a regular expression that has to fit the whole
                of it, or a function of the text that returns something true. A program that is
                run without a shell is matched by its words, quoted as by `shlex.join`.
            handler: What to do.
            survivors: Names of processes that the kill at a time limit or a stop is said to have
                left alive, for testing what is told about them.
        """

        def add(given: H) -> H:
            script = Script(matcher=matcher, handler=given, survivors=tuple(survivors))
            self._shell.add(script)
            return given

        if handler is None:
            return add
        self._shell.add(Script(matcher=matcher, handler=handler, survivors=tuple(survivors)))
        return None

    async def exec(
        self,
        command: str,
        *,
        cwd: str,
        on_data: Callable[[bytes], None],
        timeout_s: float | None = None,
        env: Mapping[str, str] | None = None,
        stop: StopSignal | None = None,
    ) -> ExecResult:
        """See `BashOperations`; what runs is said by `on_command`."""
        command_request(command, cwd, env or {}, timeout_s)

        async def effect(at: bytes) -> ExecResult:
            order = Order(
                command=command,
                tree=self._enter(at),
                env=env or {},
                timeout_s=timeout_s,
                stop=stop,
            )
            return await self._run(order, ForwardedOutput(on_data))

        return await self._operate("exec", cwd, effect, command=command)

    async def exec_tail(
        self,
        command: str,
        *,
        cwd: str,
        on_snapshot: Callable[[OutputSnapshot], None],
        tail_bytes: int,
        keep_over_bytes: int,
        keep_over_lines: int,
        timeout_s: float | None = None,
        env: Mapping[str, str] | None = None,
        stop: StopSignal | None = None,
        argv: Sequence[str] | None = None,
        stdin: bytes = b"",
    ) -> ExecResult:
        """See `TailBashOperations`; kept output is a file in the tree until `close`."""
        command_request(command, cwd, env or {}, timeout_s, argv=argv, stdin=stdin)
        text = command if argv is None else shlex.join(argv)

        async def effect(at: bytes) -> ExecResult:
            output = TailedOutput(
                on_snapshot,
                self.clock,
                tail_bytes=tail_bytes,
                keep_over_bytes=keep_over_bytes,
                keep_over_lines=keep_over_lines,
                keep_limit=self._kept_limit,
            )
            order = Order(
                command=text,
                argv=None if argv is None else tuple(argv),
                tree=self._enter(at),
                env=env or {},
                timeout_s=timeout_s,
                stdin=bytes(stdin),
                stop=stop,
            )
            return await self._run(order, output)

        return await self._operate("exec_tail", cwd, effect, command=text)

    def close(self) -> None:
        """Remove the kept outputs of commands; everything else stays, and goes on working."""
        for path in self._kept:
            if self.has(path):
                self.remove(path)
        if self.has(self._kept_folder) and not self.names(self._kept_folder):
            self.remove(self._kept_folder)
        self._kept.clear()

    async def _run(self, order: Order, output: Output) -> ExecResult:
        record, result = await self._shell.run(order, output)
        content = output.finish()
        if content is not None:
            result = self._keep(result, content)
        record.result = result
        return result

    def _enter(self, cwd: bytes) -> TreeAccess:
        """Return the tree as seen from the working folder, which has to be there.

        Raises:
            Fault: It is not, or no command may run here.
        """
        if self._refuses_commands:
            raise Fault("unsupported", "bash", NO_COMMANDS)
        self._files.open_folder(cwd, wanted=EXECUTE)
        path = posixpath.normpath(to_text(self._files.expand(cwd)))
        return TreeAccess(self._tree, cwd=path, home=self._home, user=self._user)

    def _keep(self, result: ExecResult, content: bytes) -> ExecResult:
        """Put a whole output into a file, if the user may."""
        path = f"{self._kept_folder}/output-{next(self._kept_numbers)}.log"
        try:
            if not self.has(self._kept_folder):
                above = self._tree.get(to_bytes(posixpath.dirname(self._kept_folder)), self._user)
                if not self._user.may(above, WRITE):
                    return replace(result, dropped="no folder for temporary files can be written")
                plant(self._tree, to_bytes(self._kept_folder), Directory(mode=0o700), self._user)
            plant(self._tree, to_bytes(path), File(content, mode=0o600), self._user)
        except OSError as error:
            return replace(result, dropped=error.strerror)
        self._kept.append(path)
        return replace(result, kept_path=path, kept_bytes=len(content))


def _usual_environment(home: str) -> dict[str, str]:
    quiet = {name.decode(): value.decode() for name, value in QUIET.items()}
    return {
        "HOME": home,
        "USER": "user",
        "LOGNAME": "user",
        "SHELL": "/bin/bash",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        **quiet,
    }
