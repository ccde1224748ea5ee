"""A place in memory: every operation on a tree of its own, with scripted commands and faults."""

from __future__ import annotations

import os
import posixpath
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, Self, TypedDict, Unpack

from backends.memory.access import to_bytes
from backends.memory.clock import Clock, LoopClock
from backends.memory.command_operations import CommandOperations
from backends.memory.commands import Handler, Matcher
from backends.memory.file_operations import FileOperations
from backends.memory.nodes import SUPERUSER, User
from backends.memory.search_operations import SearchOperations
from backends.memory.seed import Directory, SeedFiles, copy_directory, plant, plant_all
from backends.memory.simulated import SimulatedShell
from backends.remote.arguments import check_within
from operations import TargetFacts

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["MemoryBackend", "MemoryOptions"]

Scripts = Mapping[Matcher, Handler] | Iterable[tuple[Matcher, Handler]]


class MemoryOptions(TypedDict, total=False):
    """The options of `MemoryBackend`, for `from_directory`."""

    cwd: str | None
    home: str
    uid: int
    gid: int | None
    umask: int
    env: Mapping[str, str] | None
    clock: Clock | None
    commands: Scripts
    shell: Literal["scripted", "simulated"]
    kept_output_limit: int
    root: str | None
    unconfined_commands: bool


class MemoryBackend(FileOperations, CommandOperations, SearchOperations):
    r"""A machine in memory: a real tree of files, scripted commands, faults on demand.

    A product of its own, to try out an agent where nothing can break, and the double to test one
    with: swap it for another backend and the same tools do the same on a real machine. Answers,
    errors and limits are those of the other backends. ::

        backend = MemoryBackend({"src/main.py": "print('hi')\n", "run.sh": File("...", mode=0o755)})
        backend.on_command("pytest -q", CommandOutput("1 failed\n", exit_code=1))
        tools = coding_tools(backend)
        ...
        assert backend.read_text("src/main.py") == "print('ho')\n"
        assert [c.command for c in backend.commands] == ["pytest -q"]

    Three kinds of methods: the operations (async), as the Protocols in `operations` promise them;
    the test's own hands (sync), inherited from `TreeAccess`, which pass every permission check;
    and `on_command`, `commands`, `calls`, `faults`, to script and to look back.

    It needs no `async with` and holds no resource; leaving one removes the kept outputs. All its
    methods are for one event loop's thread (asyncio or trio). Each file operation is one moment
    in which nothing else happens. A search works on the tree as it was when it began, in a
    thread; the names are copied for that if something has changed (about 4 ms per thousand).

    Args:
        files: What is there at first, by path: text (stored as UTF-8) or bytes for a file, None
            or a name that ends with "/" for a folder, or `File`, `Directory`, `Symlink`,
            `Special`. Relative paths are under `cwd`, `~/x` under `home`; folders above are made.
        cwd: Absolute path of the folder that tools work in; None for `root`, else /work. It,
            `home`, `root` and /tmp are there from the start.
        home: Absolute path that `~` stands for.
        uid: Whom operations and commands act as, and whom everything belongs to that is not said
            to be another's. Permission bits are enforced as on Linux, except for user 0.
        gid: That user's one group; None for the number of `uid`.
        umask: Permission bits that new files and folders do not get.
        env: Variables for every command, on top of HOME, PATH and the like.
        clock: What times go by; None for the event loop's time. See `ManualClock`.
        commands: Scripts to begin with: pairs (or a mapping) of what `on_command` takes.
        shell: What runs commands that no script fits: nothing, or a "simulated" shell (extra
            `shell`), as `backends.memory.simulated` says.
        kept_output_limit: Most bytes of a command's output that are kept in a file.
        root: See `RemoteBackend`; it is made as a folder. A test's own hands are not confined.
        unconfined_commands: See `RemoteBackend`.

    Attributes:
        cwd: The folder that tools work in.
        commands: Every command that was run, in the order of their starts.
        calls: Every call of an operation, in order.
        faults: Makes operations fail, stall or lose their answers; see `Faults`.
        skipped: What `from_directory` left out, as "name: why".

    Raises:
        ImportError: `shell` is "simulated", and just-bash is not installed.
        OSError: A seed is in another one's way.
        ValueError: `cwd` or `home` is not absolute, a seed's path cannot be, or there is no such
            `shell`.
    """

    def __init__(
        self,
        files: SeedFiles | None = None,
        *,
        cwd: str | None = None,
        home: str = "/home/user",
        uid: int = 1000,
        gid: int | None = None,
        umask: int = 0o022,
        env: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        commands: Scripts = (),
        shell: Literal["scripted", "simulated"] = "scripted",
        kept_output_limit: int = 64 << 20,
        root: str | None = None,
        unconfined_commands: bool = False,
    ) -> None:
        cwd = _absolute("cwd", cwd or root or "/work")
        if root is not None:
            root = _absolute("root", root)
            check_within(root, cwd)
        super().__init__(
            cwd=cwd,
            home=_absolute("home", home),
            user=User(uid=uid, gid=uid if gid is None else gid, umask=umask),
            clock=clock or LoopClock(),
            env=env or {},
            kept_output_limit=kept_output_limit,
            root=root,
            unconfined_commands=unconfined_commands,
        )
        self.skipped: tuple[str, ...] = ()
        self._machine_id = f"memory-{uuid.uuid4().hex}"
        for folder in filter(None, (self.cwd, self._home, root)):
            self._tree.make_folders(to_bytes(folder), self._user, by=SUPERUSER)
        plant(self._tree, b"/tmp", Directory(mode=0o1777, uid=0, gid=0), self._user)
        self._plant(files)
        if shell == "simulated":
            self.on_command(_any_command, SimulatedShell(self._tree, self._user))
        elif shell != "scripted":
            raise ValueError(f"shell has to be 'scripted' or 'simulated', not {shell!r}")
        for matcher, handler in commands.items() if isinstance(commands, Mapping) else commands:
            self.on_command(matcher, handler)

    @classmethod
    def from_directory(
        cls,
        path: str | os.PathLike[str],
        files: SeedFiles | None = None,
        **options: Unpack[MemoryOptions],
    ) -> Self:
        """Return a backend whose `cwd` holds a copy of a real folder of this machine.

        Modes, modification times, symlinks (as they are) and hard links are kept; everything
        belongs to the backend's user. FIFOs, devices, sockets and what cannot be read are left
        out and named in `skipped`. Blocks while it reads: call it before the event loop runs,
        or in a thread.

        Args:
            path: The folder.
            files: More files, put in after the copy.
            options: As for `MemoryBackend`.

        Raises:
            OSError: `path` is not a folder that can be read.
        """
        backend = cls(**options)
        backend.skipped = copy_directory(
            backend._tree, os.fspath(path), to_bytes(backend.cwd), backend._user
        )
        backend._plant(files)
        return backend

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def facts(self) -> TargetFacts:
        """See `TargetOperations`; there is no connecting, so they are known from the start."""
        return TargetFacts(  # noqa: S604 - `shell` is a name, and nothing is called
            home=self._home,
            machine_id=self._machine_id,
            platform="memory",
            shell="bash",
            capabilities=frozenset({"kept_output"}),
            umask=self._user.umask,
        )

    def _plant(self, files: SeedFiles | None) -> None:
        seeds = {self._absolute(path): seed for path, seed in (files or {}).items()}
        plant_all(self._tree, seeds, self._user)


def _any_command(_: str) -> bool:
    return True


def _absolute(name: str, folder: str) -> str:
    if not folder.startswith("/"):
        raise ValueError(f"{name} has to be absolute, not {folder!r}")
    return posixpath.normpath(folder)
