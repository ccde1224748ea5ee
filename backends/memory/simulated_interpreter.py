"""just-bash as the shell of a tree in memory, at the shell's end of the wire."""

from __future__ import annotations

import asyncio
import errno
import os
import posixpath
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from just_bash.commands.registry import COMMAND_NAMES, create_command_registry
from just_bash.interpreter import (
    ExitError,
    Interpreter,
    InterpreterState,
    expansion,
    interpreter,
)
from just_bash.interpreter.errors import InterpreterError
from just_bash.interpreter.types import VariableStore
from just_bash.parser import parse
from just_bash.parser.parser import ParseException
from just_bash.types import ExecResult, ExecutionLimits, FsStat

from backends.memory.simulated_wire import MOST_CONTENT, Blocks, block

if TYPE_CHECKING:
    from just_bash.ast.types import CommandNode, StatementNode
    from just_bash.types import Command, CommandContext

__all__ = ["run"]

#: sqlite3 opens files of the real machine; the others show just-bash's insides or say nothing.
_LEFT_OUT = {"argv.py", "clear", "help", "history", "html-to-markdown", "printenv.py", "sqlite3"}
_LIMITS = ExecutionLimits(
    max_call_depth=200,
    max_command_count=1_000_000,
    max_loop_iterations=1_000_000,
    max_awk_iterations=1_000_000,
    max_sed_iterations=1_000_000,
)
_PIECE = 1 << 18
_LONGEST_S = 1e9


def run() -> None:
    """Run the command that stdin tells, to its end."""
    wire = _Wire()
    # A print or a traceback of a program's would break into the wire or wake nobody.
    sys.stdout = sys.stderr = None
    command, cwd, env, stdin = wire.read()
    asyncio.sleep = wire.sleep  # type: ignore[assignment] # by the clock of the tree's side
    vars(expansion)["eval"] = _refuse  # their last resort for an index is Python's own
    vars(interpreter)["Interpreter"] = _Shell  # what they make for a subshell
    variables = {_text(name): _text(value) for name, value in env}
    state = InterpreterState(env=_variables(variables, _text(cwd)), cwd=_text(cwd))
    state.group_stdin = _text(stdin) or None
    wire.write(["end", asyncio.run(_outermost(wire, state, _text(command)))])


async def _outermost(wire: _Wire, state: InterpreterState, command: str) -> int:
    shell = _Outermost(wire, state)
    try:
        result = await shell.execute_script(parse(command))
    except ParseException as error:
        result = ExecResult(stderr=f"bash: {error}\n", exit_code=2)
    except ExitError as error:
        result = ExecResult(error.stdout, error.stderr, error.exit_code)
    except InterpreterError as error:  # of limits, for one
        result = ExecResult(error.stdout, f"{error.stderr}bash: {error}\n", 1)
    except RecursionError:
        result = ExecResult(stderr="bash: nested too deeply\n", exit_code=1)
    except MemoryError:
        result = ExecResult(stderr="bash: out of memory\n", exit_code=137)
    wire.print(result)
    return result.exit_code & 255


class _Shell(Interpreter):
    """An interpreter in which what a program does not expect ends that program, not all."""

    async def execute_command(self, node: CommandNode, stdin: str) -> ExecResult:
        try:
            return await super().execute_command(node, stdin)
        except (InterpreterError, MemoryError, RecursionError):
            raise
        except ParseException as error:  # of `bash -c`
            return ExecResult(stderr=f"bash: {error}\n", exit_code=2)
        except OSError as error:
            about = ": ".join(getattr(error, "__notes__", ()))
            return ExecResult(stderr=f"bash: {about}: {error}\n", exit_code=1)
        except Exception as error:
            reason = f"the simulated shell does not master this: {error!r}"
            return ExecResult(stderr=f"bash: {reason}\n", exit_code=1)


class _Outermost(_Shell):
    """The interpreter of the command itself: prints after each of its statements."""

    def __init__(self, wire: _Wire, state: InterpreterState) -> None:
        commands = create_command_registry([n for n in COMMAND_NAMES if n not in _LEFT_OUT])
        commands["cat"] = _Cat(commands["cat"])
        super().__init__(_TreeFileSystem(wire), commands, _LIMITS, state)
        self._wire = wire
        self._within = False

    async def execute_statement(self, node: StatementNode) -> ExecResult:
        if self._within:  # of a loop, a function, a substitution: who reads that is not known
            return await super().execute_statement(node)
        self._within = True
        try:
            result = await super().execute_statement(node)
        finally:
            self._within = False
        self._wire.print(result)
        return ExecResult(exit_code=result.exit_code)


class _Cat:
    """`cat` that adds no newline to a file that ends without; with options it is theirs."""

    name = "cat"

    def __init__(self, theirs: Command) -> None:
        self._theirs = theirs

    async def execute(self, args: list[str], ctx: CommandContext) -> ExecResult:
        if any(arg.startswith("-") and arg != "-" for arg in args):
            return await self._theirs.execute(args, ctx)
        result = ExecResult()
        for name in args or ["-"]:
            try:
                path = ctx.fs.resolve_path(ctx.cwd, name)
                result.stdout += ctx.stdin if name == "-" else await ctx.fs.read_file(path)
            except OSError as error:
                result.stderr += f"cat: {name}: {error}\n"
                result.exit_code = 1
        return result


class _Wire:
    """The near end of stdin and stdout; nobody else uses them."""

    def __init__(self) -> None:
        self._blocks = Blocks()

    def read(self) -> Any:
        """Return the next value; end if there will be none."""
        while True:
            data = os.read(0, 1 << 18)
            if not data:
                os._exit(1)
            for value in self._blocks.feed(data):
                return value  # the other side sends one at a time

    def write(self, value: Any) -> None:
        rest = memoryview(block(value))
        while rest:
            rest = rest[os.write(1, rest) :]

    def ask(self, kind: str, *arguments: Any, about: str = "") -> Any:
        """Return what the tree's side answers.

        Raises:
            OSError: It is an error.
        """
        self.write([kind, *arguments])
        said, value = self.read()
        if said == "done":
            return value
        raise _error(value, about)

    async def sleep(self, seconds: float, result: Any = None) -> Any:
        self.ask("sleep", min(float(seconds), _LONGEST_S))
        return result

    def print(self, result: ExecResult) -> None:
        for text in (result.stdout, result.stderr):
            data = _bytes(text)
            for start in range(0, len(data), _PIECE):
                self.write(["output", data[start : start + _PIECE]])


class _TreeFileSystem:
    """just-bash's `IFileSystem`, with `lstat`, `cp`, `mv` and `link`, which its programs call."""

    def __init__(self, wire: _Wire) -> None:
        self._wire = wire

    async def read_file(self, path: str, encoding: str = "utf-8") -> str:
        return _text(await self.read_file_bytes(path), encoding)

    async def read_file_bytes(self, path: str) -> bytes:
        if path == "/dev/null":
            return b""
        content: bytes = self._ask("read", path)
        return content

    async def write_file(self, path: str, content: str | bytes, encoding: str = "utf-8") -> None:
        self._write(path, _bytes(content, encoding))

    async def append_file(self, path: str, content: str | bytes, encoding: str = "utf-8") -> None:
        old = await self.read_file_bytes(path) if await self.exists(path) else b""
        self._write(path, old + _bytes(content, encoding))

    async def exists(self, path: str) -> bool:
        return await self._kind(path) is not None

    async def is_file(self, path: str) -> bool:
        return await self._kind(path) == 0

    async def is_directory(self, path: str) -> bool:
        return await self._kind(path) == 1

    async def stat(self, path: str) -> FsStat:
        return self._stat(path, follow=True)

    async def lstat(self, path: str) -> FsStat:
        return self._stat(path, follow=False)

    async def mkdir(self, path: str, recursive: bool = False) -> None:  # noqa: FBT001, FBT002 - theirs
        self._ask("mkdir", path, recursive)

    async def readdir(self, path: str) -> list[str]:
        return [_text(name) for name in self._ask("names", path)]

    async def rm(self, path: str, recursive: bool = False, force: bool = False) -> None:  # noqa: FBT001, FBT002 - theirs
        try:
            folder = self._stat(path, follow=False).is_directory
        except FileNotFoundError:
            if force:
                return
            raise
        if not folder:
            self._ask("unlink", path)
            return
        if recursive:
            for name in await self.readdir(path):
                await self.rm(posixpath.join(path, name), recursive=True)
        self._ask("rmdir", path)

    async def cp(self, src: str, dest: str, recursive: bool = False) -> None:  # noqa: FBT001, FBT002 - theirs
        status = self._stat(src, follow=not recursive)
        if status.is_symbolic_link:
            self._ask("symlink", dest, self._ask("readlink", src))
        elif not status.is_directory:
            self._write(dest, await self.read_file_bytes(src), status.mode)
        elif not recursive:
            raise _error(errno.EISDIR, src)
        elif (dest + "/").startswith(src + "/"):
            raise _error(errno.EINVAL, dest)
        else:
            if not await self.is_directory(dest):
                self._ask("mkdir", dest, False)  # noqa: FBT003 - without those above
            for name in await self.readdir(src):
                await self.cp(posixpath.join(src, name), posixpath.join(dest, name), recursive=True)

    async def mv(self, src: str, dest: str) -> None:
        self._ask("rename", src, _bytes(dest))

    async def chmod(self, path: str, mode: int) -> None:
        self._ask("chmod", path, mode & 0o7777)

    async def symlink(self, target: str, link_path: str) -> None:
        self._ask("symlink", link_path, _bytes(target))

    async def link(self, existing_path: str, new_path: str) -> None:
        self._ask("link", new_path, _bytes(existing_path))

    async def readlink(self, path: str) -> str:
        return _text(self._ask("readlink", path))

    async def utimes(self, path: str, atime: float, mtime: float) -> None:
        self._ask("utime", path, float(mtime))

    async def realpath(self, path: str) -> str:
        return _text(self._ask("realpath", path))

    def resolve_path(self, base: str, path: str) -> str:
        return "/" + posixpath.normpath(posixpath.join(base, path)).lstrip("/")

    async def _kind(self, path: str) -> int | None:
        if path == "/dev/null":
            return 3
        try:
            kind: int = self._ask("stat", path, True)[0]  # noqa: FBT003 - follow
        except OSError:
            return None
        return kind

    def _stat(self, path: str, *, follow: bool) -> FsStat:
        kind, mode, size, mtime_ns, links = self._ask("stat", path, follow)
        return FsStat(
            is_file=kind == 0,
            is_directory=kind == 1,
            is_symbolic_link=kind == 2,
            mode=mode,
            size=size,
            mtime=mtime_ns / 1e9,
            nlink=links,
        )

    def _write(self, path: str, content: bytes, mode: int = 0o666) -> None:
        if path == "/dev/null":
            return
        if len(content) > MOST_CONTENT:
            raise _error(errno.EFBIG, path)
        self._ask("write", path, content, mode)

    def _ask(self, kind: str, path: str, *arguments: Any) -> Any:
        return self._wire.ask(kind, _bytes(path), *arguments, about=path)


def _variables(given: dict[str, str], cwd: str) -> VariableStore:
    """Return the variables that a command begins with, all of them exported."""
    store = VariableStore({"PWD": cwd, "SHLVL": "1", **given})
    for name in store:
        store.set_attribute(name, "x")
    store.update({"?": "0", "OPTIND": "1", "BASH_VERSION": "5.2.15(1)-release"})
    return store


def _text(data: bytes, encoding: str = "utf-8") -> str:
    return data.decode(encoding, "surrogateescape")


def _bytes(text: str | bytes, encoding: str = "utf-8") -> bytes:
    if isinstance(text, bytes):
        return text
    try:
        return text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        return text.encode(encoding, "replace")


def _error(number: int, path: str) -> OSError:
    """Return an error whose text is the reason alone, since that is what programs print of it."""
    reason = os.strerror(number)
    error = type(OSError(number, reason))(reason)
    error.errno = number
    error.add_note(path)
    return error


def _refuse(*_: object) -> NoReturn:
    raise ValueError("an index that is no arithmetic")
