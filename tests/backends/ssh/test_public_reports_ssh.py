"""Faults that users met in other tool kits over SSH, and inputs close to them."""

# ruff: noqa: N802 - a test is named after the report that it stands for

from __future__ import annotations

import itertools
import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from backends.ssh import SshBackend
from tests.backends.ssh.lone_shell import without_python
from tests.backends.ssh.proxy import Wire
from tests.backends.ssh.waiting import eventually
from tests.sshd import Sshd, runs
from toolkit.abort import AbortController
from toolkit.calls import ToolCall, ToolResultMessage
from toolkit.runner import ToolRunner
from toolkit.toolset import coding_tools

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

#: What tools find at the far end.
FAR = ["python", "sh alone"]
_numbers = itertools.count(1)


class Hands:
    """All tools on one host.

    Args:
        runner: Runs them.
        folder: Where they work: a folder of this machine.
    """

    def __init__(self, runner: ToolRunner, folder: Path) -> None:
        self.folder = folder
        self._runner = runner

    async def call(self, tool: str, *, signal: Any = None, **arguments: Any) -> ToolResultMessage:
        [message] = await self._runner.run(
            [ToolCall(id="1", name=tool, arguments=arguments)], signal=signal
        )
        return message

    async def said(self, tool: str, **arguments: Any) -> str:
        """Run a call that must succeed; return its text."""
        message = await self.call(tool, **arguments)
        assert not message.is_error, message.text
        return message.text


@pytest.fixture
def start(server: Callable[[str], Sshd], tmp_path: Path) -> Callable[[str], Sshd]:
    """Give a function that starts a server with one of FAR, and what rc files say in its home."""

    def make(far: str, rc: str = "") -> Sshd:
        made = server("" if far == "python" else without_python(tmp_path / "bin"))
        (made.folder / "home" / ".bashrc").write_text(rc)
        return made

    return make


@asynccontextmanager
async def hands_on(
    made: Sshd, folder: Path, *, wire: Wire | None = None, alive: str = ""
) -> AsyncIterator[Hands]:
    port = made.port if wire is None else wire.port
    options: dict[str, Any] = {
        "config": made.config(alive, port=port, name="reports"),
        "known_hosts": str(made.know(port, name="known_reports")),
        "lease_s": 3.0,
    }
    work = folder / "work"
    work.mkdir()
    backend = SshBackend.connect("box", cwd=str(work), **options)
    async with backend, ToolRunner(coding_tools(backend)) as runner:
        yield Hands(runner, work)


@pytest.mark.parametrize("end", ["timeout", "stop", "cancel"])
@pytest.mark.parametrize("far", FAR)
async def test_B39_what_is_ended_here_ends_on_the_host(
    far: str, end: str, start: Callable[..., Sshd], tmp_path: Path
) -> None:
    marker = f"72{os.getpid()}.{next(_numbers)}5"
    controller = AbortController()
    async with hands_on(start(far), tmp_path) as hands:

        async def run() -> None:
            limit = {"timeout": 1} if end == "timeout" else {}
            command = f"sleep {marker}; touch late"
            await hands.call("bash", signal=controller.signal, command=command, **limit)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await eventually(lambda: runs(f"sleep {marker}"))
            if end == "stop":
                controller.abort("told so")
            elif end == "cancel":
                tasks.cancel_scope.cancel()
        assert not runs(f"sleep {marker}")
        assert not runs("touch late")
        assert "late" not in await hands.said("bash", command="ls")


@pytest.mark.parametrize(
    "command", ["nohup sleep {m} >/dev/null 2>&1 & echo ok", "sleep {m} & echo ok"]
)
@pytest.mark.parametrize("far", FAR)
async def test_B40_a_background_job_holds_nothing_open(
    far: str, command: str, start: Callable[..., Sshd], tmp_path: Path
) -> None:
    marker = f"73{os.getpid()}.{next(_numbers)}5"
    async with hands_on(start(far), tmp_path) as hands:
        with anyio.fail_after(30):
            assert "ok" in await hands.said("bash", command=command.replace("{m}", marker))
            assert runs(f"sleep {marker}")
            assert "next" in await hands.said("bash", command="echo next")
    await eventually(lambda: not runs(f"sleep {marker}"))


#: Also what looks like an answer: a number where a size is expected, an empty line, a NUL.
RC = "echo HELLO_RC; echo HELLO_RC >&2; echo; echo 0; printf '12345\\n\\000'\n"


@pytest.mark.parametrize("far", FAR)
async def test_B42_and_B89_what_rc_files_print_gets_into_nothing(
    far: str, start: Callable[..., Sshd], tmp_path: Path
) -> None:
    async with hands_on(start(far, RC), tmp_path) as hands:
        await hands.said("write", path="a.txt", content="one\ntwo\nthree\n")
        assert (hands.folder / "a.txt").read_bytes() == b"one\ntwo\nthree\n"
        assert await hands.said("read", path="a.txt") == "one\ntwo\nthree"
        await hands.said("edit", path="a.txt", edits=[{"oldText": "two", "newText": "2"}])
        assert (hands.folder / "a.txt").read_bytes() == b"one\n2\nthree\n"
        assert (await hands.said("bash", command="echo x")).strip() == "x"
        listing = "ls; find . -name 'a*'; grep -rn three"
        said = await hands.said("bash", command=listing)
        assert said.split() == ["a.txt", "./a.txt", "a.txt:3:three"]


@pytest.mark.parametrize("far", FAR)
async def test_B45_no_sftp_is_needed(far: str, start: Callable[..., Sshd], tmp_path: Path) -> None:
    made = start(far)
    assert "Subsystem" not in (made.folder / "sshd_config").read_text()
    async with hands_on(made, tmp_path) as hands:
        await hands.said("write", path="a", content="one\n")
        await hands.said("edit", path="a", edits=[{"oldText": "one", "newText": "two"}])
        assert await hands.said("read", path="a") == "two"
        assert "a" in await hands.said("bash", command="ls")


@pytest.mark.parametrize("far", FAR)
async def test_B46_a_write_that_is_cut_leaves_the_old_content(
    far: str, start: Callable[..., Sshd], tmp_path: Path
) -> None:
    made = start(far)
    old = "old line\n" * 200_000
    async with Wire(made.port) as wire, hands_on(made, tmp_path, wire=wire) as hands:
        file = hands.folder / "f"
        file.write_text(old)
        file.chmod(0o640)
        wire.cut_after(1_000_000)
        message = await hands.call("write", path="f", content="new line\n" * 400_000)
        assert message.error_kind == "connection_lost"
        assert file.read_text() == old
        assert await hands.said("write", path="f", content="short")
        assert file.read_bytes() == b"short"
        assert file.stat().st_mode & 0o777 == 0o640
        await eventually(lambda: os.listdir(hands.folder) == ["f"])


@pytest.mark.parametrize("far", FAR)
async def test_B47_a_half_open_connection_holds_no_call(
    far: str, start: Callable[..., Sshd], tmp_path: Path
) -> None:
    """A command ends by its own time, other calls by the keepalive's."""
    made = start(far)
    alive = "Host *\n  ServerAliveInterval 2\n  ServerAliveCountMax 1\n  ConnectTimeout 4\n"
    async with Wire(made.port) as wire, hands_on(made, tmp_path, wire=wire, alive=alive) as hands:
        await hands.said("write", path="f", content="x\n")
        wire.swallows = True
        kinds: dict[str, str | None] = {}

        async def call(tool: str, **arguments: Any) -> None:
            kinds[tool] = (await hands.call(tool, **arguments)).error_kind

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: call("bash", command="echo x", timeout=3))
                tasks.start_soon(lambda: call("read", path="f"))
        assert kinds["read"] in ("connection_lost", "unavailable")
        assert kinds["bash"] in ("connection_lost", "unavailable", "timeout")
        wire.swallows = False
        assert await hands.said("read", path="f") == "x"
        assert (await hands.said("bash", command="echo x")).strip() == "x"
