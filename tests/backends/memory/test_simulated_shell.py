"""The simulated shell: on the tree, under limits, and never more than its caller wants."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from backends.engine.frames import WireError
from backends.memory import Directory, File, ManualClock, MemoryBackend
from backends.memory.nodes import User
from backends.memory.simulated import SimulatedShell
from backends.memory.simulated_files import SimulatedFiles
from backends.memory.simulated_wire import Blocks, block
from backends.memory.tree import Tree
from operations import ExecResult, OperationUnsupported, OutputSnapshot

pytest.importorskip("just_bash", reason="the extra `shell` is not installed")
pytestmark = pytest.mark.anyio

#: Longer than any machine needs to start a shell, so that only what has no end meets it.
LONG_S = 60.0
FOREVER = r"""[[ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! =~ ^(a+)+$ ]]"""


@pytest.fixture
def anyio_backend() -> str:
    """Name the event loop; a shell is a process, so that one loop is enough for most."""
    return "asyncio"


class Stop:
    """A stop signal that a test fires."""

    def __init__(self) -> None:
        self.event = anyio.Event()

    def is_set(self) -> bool:
        return self.event.is_set()

    async def wait(self) -> None:
        await self.event.wait()


def simulated(files: Any = None, **options: Any) -> MemoryBackend:
    """Return a backend with a simulated shell."""
    return MemoryBackend(files, shell="simulated", **options)


async def run(backend: MemoryBackend, command: str, **options: Any) -> tuple[ExecResult, str]:
    """Run a command in the working folder; return how it ended and what it printed."""
    chunks: list[bytes] = []
    settings = {"cwd": "/work", "on_data": chunks.append, "timeout_s": LONG_S, **options}
    result = await backend.exec(command, **settings)
    return result, b"".join(chunks).decode()


def shells(parent: int) -> list[int]:
    """Return the shells' processes that `parent` has started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            above = int((entry / "stat").read_text().rpartition(") ")[2].split()[1])
            program = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if above == parent and b"simulated_child.py" in program:
            found.append(int(entry.name))
    return found


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_a_pipe_and_a_redirection_work_on_the_tree(anyio_backend: str) -> None:
    """What the tools read is what the shell wrote."""
    backend = simulated({"x1": "", "x2": "", "y1": ""})
    result, said = await run(backend, "ls | grep x > found; wc -l < found")
    assert (result.ended, result.exit_code, said) == ("exited", 0, "2\n")
    assert await backend.read_file("/work/found") == b"x1\nx2\n"
    assert backend.stat("found").mode == 0o644


async def test_scripts_come_first_whenever_they_were_added() -> None:
    """A test says what `pytest` prints, and leaves the rest to the shell."""
    backend = simulated(commands={"pytest -q": "1 failed\n"})
    backend.on_command(re.compile("git .*"), "clean\n")
    said = [(await run(backend, line))[1] for line in ("pytest -q", "git status", "echo hi")]
    assert said == ["1 failed\n", "clean\n", "hi\n"]
    assert [c.command for c in backend.commands] == ["pytest -q", "git status", "echo hi"]


async def test_a_command_gets_its_folder_variables_and_stdin_and_leaves_none() -> None:
    """Neither `cd` nor `export` reaches the next command."""
    backend = simulated({"d/": None}, env={"CONFIGURED": "1"})
    snapshots: list[OutputSnapshot] = []

    async def tail(command: str, **more: Any) -> bytes:
        snapshots.clear()
        await backend.exec_tail(
            command,
            cwd="/work/d",
            on_snapshot=snapshots.append,
            tail_bytes=1000,
            keep_over_bytes=1000,
            keep_over_lines=1000,
            **more,
        )
        return b"".join(snapshot.data for snapshot in snapshots)

    line = "pwd; echo $HOME $CONFIGURED $GIVEN; cat; export GIVEN=no; cd /"
    given = {"env": {"GIVEN": "é"}, "stdin": b"in"}
    assert await tail(line, **given) == "/work/d\n/home/user 1 é\nin".encode()
    assert await tail("pwd; echo $GIVEN") == b"/work/d\n\n"
    assert (
        await tail("", argv=["printf", "<%s>", "a  b", "$HOME", "é"]) == "<a  b><$HOME><é>".encode()
    )


async def test_long_output_is_kept_as_that_of_a_script() -> None:
    """In a file that `read` can open."""
    backend = simulated()
    result = await backend.exec_tail(
        "seq 1000",
        cwd="/work",
        on_snapshot=lambda _: None,
        tail_bytes=100,
        keep_over_bytes=1000,
        keep_over_lines=100,
    )
    assert (result.total_lines, result.kept_bytes) == (1000, 3893)
    assert backend.read_bytes(str(result.kept_path)).startswith(b"1\n2\n")


async def test_the_shell_may_do_what_the_user_may_do() -> None:
    """Modes and owners are asked as for operations."""
    backend = simulated(
        {
            "mine": File("1", mode=0o444),
            "secret": File("2", uid=0, mode=0o600),
            "theirs/": Directory(uid=0, mode=0o755),
        }
    )
    before = backend.snapshot()
    for line in ("echo x > mine", "cat secret", "echo x > theirs/new", "chmod 777 secret"):
        result, said = await run(backend, line)
        assert result.exit_code != 0, line
        assert "ermi" in said, line  # Permission denied, not permitted
    assert backend.snapshot() == before
    assert backend.stat("secret").mode == 0o600


async def test_output_comes_after_each_statement() -> None:
    """Not only in the end; and `sleep` goes by the backend's clock."""
    clock = ManualClock()
    backend = simulated(clock=clock)
    chunks: list[bytes] = []
    results: list[ExecResult] = []

    async def call() -> None:
        command = "echo before; sleep 3600; echo after"
        results.append(await backend.exec(command, cwd="/work", on_data=chunks.append))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await clock.wait_until_sleeping()
        assert chunks == [b"before\n"]
        clock.advance(3600)
    assert chunks == [b"before\n", b"after\n"]
    assert results[0].duration_s == 3600


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
@pytest.mark.parametrize(
    "command",
    ["while true; do echo x > f; done", FOREVER],
    ids=["a loop", "a regular expression"],
)
async def test_what_has_no_end_ends_at_its_limit(command: str, anyio_backend: str) -> None:
    """Its process is gone, other tasks run meanwhile, and the tree stays as it is then."""
    clock = ManualClock()
    backend = simulated({"f": ""}, clock=clock)
    results: list[ExecResult] = []

    async def call() -> None:
        line = f"echo started; sleep 1; {command}"
        results.append((await run(backend, line, timeout_s=10))[0])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await clock.wait_until_sleeping(2)
        clock.advance(1)
        await anyio.sleep(0.2)  # it is busy by now, or else is killed at an earlier point
        clock.advance(9)
    assert (results[0].ended, results[0].killed) == ("timeout", "killed")
    assert shells(os.getpid()) == []
    before = backend.snapshot()
    assert (await run(backend, "echo still here"))[1] == "still here\n"
    assert backend.snapshot() == before


@pytest.mark.parametrize("way", ["stop", "cancel"])
async def test_a_stop_and_a_cancellation_end_the_process(way: str) -> None:
    """Before the call is over."""
    clock = ManualClock()
    backend = simulated(clock=clock)
    stop = Stop()
    results: list[ExecResult] = []

    async def call() -> None:
        results.append((await run(backend, "sleep 5; echo never", stop=stop))[0])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await clock.wait_until_sleeping(2)
        stop.event.set() if way == "stop" else tasks.cancel_scope.cancel()
    assert [result.ended for result in results] == (["stopped"] if way == "stop" else [])
    assert shells(os.getpid()) == []


async def test_the_shell_dies_with_the_process_that_it_works_for() -> None:
    """By SIGKILL, and deep in a regular expression, which looks at no pipe."""
    source = f"""
import anyio
from backends.memory import MemoryBackend
async def main():
    command = "echo started; " + {FOREVER!r}
    show = lambda data: print(data.decode(), flush=True)
    await MemoryBackend(shell="simulated").exec(command, cwd="/work", on_data=show)
anyio.run(main)
"""
    environment = {"PYTHONPATH": str(Path(__file__).parents[3]), "PATH": os.environ["PATH"]}
    with subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        await anyio.to_thread.run_sync(process.stdout.readline)
        (shell,) = shells(process.pid)
        process.send_signal(signal.SIGKILL)
    with anyio.fail_after(10):
        while Path(f"/proc/{shell}/cmdline").exists() and _program(shell):
            await anyio.sleep(0.02)


def _program(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()  # empty for a zombie
    except OSError:
        return b""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("a=xxxxxxxx; while true; do a=$a$a; done", "bash: out of memory\n"),
        ("f() { f; }; f", "bash: function call depth exceeded (200)\n"),
    ],
)
async def test_a_bomb_is_a_failed_command(command: str, said: str) -> None:
    """And nothing more; a real shell would end with as little."""
    backend = simulated()
    result, told = await run(backend, command)
    assert (result.ended, told) == ("exited", said)
    assert result.exit_code


async def test_nothing_of_this_machine_is_there() -> None:
    """Neither its files, nor its variables, nor a program that opens either."""
    backend = simulated()
    lines = ["cat /etc/passwd", "ls /usr", "sqlite3 :memory: .databases", "curl http://127.0.0.1/"]
    for line in lines:
        assert (await run(backend, line))[0].exit_code in (1, 2, 127), line
    _, said = await run(backend, "env; echo */ /*")
    assert str(Path.home()) not in said
    assert sys.prefix not in said
    assert said.endswith("*/ /home /tmp /work\n")


async def test_names_and_contents_that_are_not_utf8_pass_unchanged() -> None:
    """Text in the shell, bytes outside."""
    name, content = os.fsdecode(b"n\xff\n$(x)"), b"\xfe\r\n\xc3\xa9\x00"
    backend = simulated({name: content})
    chunks: list[bytes] = []
    line = 'for f in n*; do cp "$f" copy; mv "$f" "m$f"; cat copy > third; done; cat third; ls m*'
    await backend.exec(line, cwd="/work", on_data=chunks.append)
    assert b"".join(chunks) == content + b"mn\xff\n$(x)\n"
    assert backend.snapshot() == {"copy": content, "third": content, f"m{name}": content}


async def test_many_run_at_once_on_one_tree() -> None:
    """Each in its own process, one file operation after the other."""
    backend = simulated({f"d{n}/": None for n in range(4)})

    async def call(number: int) -> None:
        line = f"for i in 1 2 3; do echo $i >> own; echo {number} > ../shared; done"
        result, _ = await run(backend, line, cwd=f"/work/d{number}")
        assert result.exit_code == 0

    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(call, number)
    assert {backend.read_text(f"d{n}/own") for n in range(4)} == {"1\n2\n3\n"}
    assert backend.read_text("shared") in {f"{n}\n" for n in range(4)}


async def test_a_root_refuses_the_shell_too() -> None:
    """As any other command, unless told otherwise."""
    with pytest.raises(OperationUnsupported):
        await run(simulated(root="/work"), "true")
    backend = simulated({"/out": "side"}, root="/work", unconfined_commands=True)
    assert (await run(backend, "cat /out"))[1] == "side"


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("print('this is no block of ours')", "a block of"),
        ("import sys; sys.exit(7)", "exit status 7"),
        (f"import os; os.write(1, {block(['end', 'nil'])!r})", "an end without an exit code"),
        (f"import os; os.write(1, {block(['sleep', float('nan')])!r})", "a sleep without an end"),
        (f"import os; os.write(1, {block({'read': b'/'})!r})", "neither output nor a request"),
    ],
)
async def test_a_process_that_breaks_is_an_end_that_nobody_knows(program: str, told: str) -> None:
    """Never exit code 0."""
    backend = MemoryBackend()
    shell = SimulatedShell(Tree(lambda: 0, User(uid=1, gid=1)), User(uid=1, gid=1))
    shell._argv = [sys.executable, "-I", "-S", "-c", program]
    backend.on_command("x", shell)
    result, said = await run(backend, "x")
    assert (result.ended, result.exit_code) == ("lost", None)
    assert told in said


def test_a_shell_that_is_not_there_is_refused_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At once, not at the first command."""
    with pytest.raises(ValueError, match="'scripted' or 'simulated', not 'fish'"):
        MemoryBackend(shell="fish")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "just_bash", None)
    with pytest.raises(ImportError, match=r"just-bash; pip install 'remotehands\[shell\]'"):
        simulated()


# The wire: what arrives is not believed ----------------------------------------------------


def files(tree: Tree | None = None) -> SimulatedFiles:
    """Return what answers the requests of one command."""
    return SimulatedFiles(tree or Tree(lambda: 0, User(uid=1, gid=1)), User(uid=1, gid=1))


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("nothing", []),
        ("read", []),
        ("read", ["text"]),
        ("write", [b"/f", b"", True]),
        ("write", [b"/f", "text", 0]),
        ("answer", ["read", [b"/"]]),
    ],
)
def test_what_is_no_request_changes_nothing(kind: str, arguments: list[Any]) -> None:
    """It ends the command."""
    tree = Tree(lambda: 0, User(uid=1, gid=1))
    version = tree.version
    with pytest.raises(WireError):
        files(tree).answer(kind, arguments)
    assert tree.version == version


def test_a_block_is_no_longer_than_it_may_be() -> None:
    """However it arrives."""
    with pytest.raises(WireError):
        Blocks().feed(b"\xff\xff\xff\xff")
    blocks, data = Blocks(), block(["output", b"x"]) + block(["end", 0])
    values = [value for byte in data for value in blocks.feed(bytes([byte]))]
    assert values == [["output", b"x"], ["end", 0]]


def test_one_command_cannot_fill_the_memory_through_the_tree() -> None:
    """At some point the disk is full; a kernel's error, that a script can meet."""
    answerer, content = files(), bytes(30 << 20)
    written = [answerer.answer("write", [b"/f%d" % n, content, 0o666]) for n in range(9)]
    assert [answer[0] for answer in written] == ["done"] * 8 + ["error"]
    assert written[-1] == ["error", errno.ENOSPC]
    # Names take room as well, and the rest of it is not much.
    made = [answerer.answer("mkdir", [b"/d%d" % n, False]) for n in range(20_000)]
    assert made[-1] == ["error", errno.ENOSPC]


def test_a_name_holds_no_nul() -> None:
    """Whatever part of a request it is."""
    answerer = files()
    answerer.answer("write", [b"/f", b"", 0o666])
    for request in (
        ["write", b"/a\0b", b"", 0o666],
        ["mkdir", b"/a\0b", True],
        ["rename", b"/f", b"/a\0b"],
        ["link", b"/a\0b", b"/f"],
        ["symlink", b"/l", b"a\0b"],
    ):
        assert answerer.answer(request[0], request[1:])[0] == "error", request
