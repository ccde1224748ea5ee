"""Any program that gives a shell somewhere is a place to act."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from backends.command import CommandBackend
from operations import BackendUnavailable, ConnectionLost
from tests.programs import that_runs

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

#: As sshd does it: the words are joined with spaces and read by the user's login shell.
LIKE_SSH = [
    sys.executable,
    "-c",
    "import os,sys;os.execvp('sh',['sh','-c',' '.join(sys.argv[1:])])",
]
#: How long a program sleeps that no other here does.
_SILENT = f"6{os.getpid()}.5"
#: Programs of this machine; those that `tests/programs.py` finds are fixtures.
PROGRAMS = {
    "sh -c": ["sh", "-c"],
    "like ssh": LIKE_SSH,
    "env": ["env"],
    "nsenter": ["nsenter", "--target", "1", "--uts"],
}
ELSEWHERE = ["chroot_argv", "sudo_argv", "bwrap_argv", "podman_argv"]


@pytest.fixture(params=[*PROGRAMS, *ELSEWHERE])
def argv(request: pytest.FixtureRequest) -> list[str]:
    """Give a program, or skip where it does not run."""
    if request.param in ELSEWHERE:
        return list(request.getfixturevalue(request.param))
    return that_runs(PROGRAMS[request.param])


async def test_a_place_behind_any_program(argv: list[str]) -> None:
    """Files and commands work whether it takes a command line, an argv, or joins its words."""
    await _use(argv)


async def _use(argv: list[str]) -> None:
    path = f"/tmp/remotehands-test-{uuid.uuid4().hex}/deep/file"
    content = bytes(range(256)) * 5000
    async with CommandBackend(argv, cwd="/") as backend:
        await backend.replace_file(path, content, make_parents=True)
        assert await backend.read_file(path) == content
        output: list[bytes] = []
        result = await backend.exec(f"wc -c < {path}", cwd="/", on_data=output.append)
        assert (result.ended, result.exit_code) == ("exited", 0)
        assert b"".join(output).strip() == b"1280000"
        await backend.exec(f"rm -r {path.rpartition('/deep')[0]}", cwd="/", on_data=output.append)


async def test_what_a_login_prints_first_is_skipped() -> None:
    noisy = ["sh", "-c", 'echo Welcome; echo warning >&2; exec "$0"']
    async with CommandBackend(noisy) as backend:
        assert await backend.is_directory("/")


async def test_the_home_folder_is_where_tools_work_unless_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    async with CommandBackend(["env"]) as backend:
        assert backend.cwd == str(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    async with CommandBackend(["env"]) as backend:
        assert backend.cwd == "/"


async def test_no_secret_of_ours_reaches_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `sh -c` is the program, its environment is the commands'."""
    monkeypatch.setenv("MY_API_KEY", "s3cr3t")
    for inherit, seen in ((False, b"none"), (True, b"s3cr3t")):
        output: list[bytes] = []
        async with CommandBackend(["sh", "-c"], inherit_env=inherit) as backend:
            await backend.exec('echo "${MY_API_KEY-none}"', cwd="/", on_data=output.append)
        assert b"".join(output).strip() == seen


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["no-such-program-here"], "No such file"),
        (["sh", "-c", "echo wrong password >&2; exit 5"], "exit status 5: wrong password"),
        (["sh", "-c", "yes"], "floods"),
        (["sh", "-c", f"sleep {_SILENT}"], "within 1 seconds"),
        (["env", "-i", "PATH=/nowhere"], "the target lacks"),
        (["sh", "-c", "kill -9 $$"], "SIGKILL"),
    ],
)
async def test_what_gives_no_engine_is_unavailable(argv: list[str], said: str) -> None:
    if said == "the target lacks":
        argv = [shutil.which("env") or "env", *argv[1:]]
    with anyio.fail_after(30):
        with pytest.raises(BackendUnavailable, match=said) as caught:
            async with CommandBackend(argv, connect_timeout_s=1):
                pass
        assert "command:" in str(caught.value)
    assert not _children(f"sleep {_SILENT}")


def test_an_empty_program_is_refused() -> None:
    with pytest.raises(ValueError, match="missing"):
        CommandBackend([])


async def test_the_death_of_the_program_is_a_loss_and_the_next_operation_connects() -> None:
    async with CommandBackend(["env"]) as backend:
        output: list[bytes] = []
        await backend.exec("echo $PPID", cwd="/", on_data=output.append)
        mark = f"7{os.getpid()}.5"

        async def wait_and_kill() -> None:
            await _eventually(lambda: bool(_children(f"sleep {mark}")))
            for pid in _children("from backends.engine import frames,serve", parent=os.getpid()):
                os.kill(pid, signal.SIGKILL)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait_and_kill)
            with pytest.raises(ConnectionLost, match="SIGKILL"):
                await backend.exec(f"sleep {mark}", cwd="/", on_data=output.append)
        assert await backend.exists("/")
        await _eventually(lambda: not _children(f"sleep {mark}"))


async def test_closing_ends_what_was_started() -> None:
    mark = f"7{os.getpid()}.6"
    async with CommandBackend(["sh", "-c"]) as backend:
        await backend.exec(f"sleep {mark} & sleep {mark} &", cwd="/", on_data=lambda _: None)
        assert _children(f"sleep {mark}")
    assert not _children(f"sleep {mark}")


async def _eventually(condition: Callable[[], bool]) -> None:
    """Wait until a condition of the machine's holds, which nothing tells us."""
    with anyio.fail_after(15):
        while not condition():
            await anyio.sleep(0.02)


def _children(text: str, parent: int | None = None) -> list[int]:
    """Return the pids of processes with a text in their command line."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            line = Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ").decode()
            stat = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
        except (OSError, UnicodeDecodeError):
            continue
        if text in line and stat[0] not in "ZX" and parent in (None, int(stat[1])):
            found.append(int(name))
    return found


async def test_a_home_folder_that_may_not_be_entered_is_none_to_work_in(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv")
    closed = tmp_path / "home"
    closed.mkdir(mode=0o700)
    ids = ["--reuid=65534", "--regid=65534", "--clear-groups"]
    async with CommandBackend(["setpriv", *ids, "env", f"HOME={closed}"]) as backend:
        assert backend.cwd == "/"
