"""A login that gives only SFTP is a place of files; one without SFTP lacks nothing."""

from __future__ import annotations

import asyncio
import os
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import asyncssh
import pytest

from backends.ssh import SshBackend
from operations import BackendUnavailable, ConnectionLost, FileChanged, OperationUnsupported
from tests.backends.ssh.proxy import Wire
from tests.backends.ssh.sftp_doubles import Served, only_sftp
from tests.conformance.places import text
from toolkit import ToolCall, coding_tools, run_tool_calls
from toolkit.cli.weaker import kind_of, weaknesses

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.sshd import Sshd

pytestmark = pytest.mark.anyio

#: One session at a time is enough.
ONLY_SFTP = "MaxSessions 1\nSubsystem sftp internal-sftp\nForceCommand internal-sftp"


@pytest.fixture
def only(server: Callable[..., Sshd], tmp_path: Path) -> Sshd:
    """Give a server that has nothing but SFTP, which starts in a folder of the test's."""
    return server(f"{ONLY_SFTP} -d {tmp_path}\n")


@pytest.fixture
async def wire(only: Sshd) -> AsyncIterator[Wire]:
    """Give a wire to that server."""
    async with Wire(only.port) as made:
        yield made


@pytest.fixture
async def backend(only: Sshd, wire: Wire) -> AsyncIterator[SshBackend]:
    """Give an open backend behind the wire."""
    known = only.know(wire.port, name="known_wire")
    config = only.config(port=wire.port, name="wired")
    async with SshBackend.connect("box", config=config, known_hosts=str(known)) as opened:
        yield opened


async def eventually(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not condition():
            await anyio.sleep(0.02)


def temporaries(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".remotehands")]


async def test_bash_says_why_it_cannot_and_files_can(backend: SshBackend, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("here\n")
    calls = [
        ToolCall(id="1", name="bash", arguments={"command": "true"}),
        ToolCall(id="2", name="read", arguments={"path": "a.txt"}),
    ]
    bash, read = await run_tool_calls(calls, coding_tools(backend))
    assert bash.error_kind == "unsupported"
    assert "gives only SFTP" in text(bash)
    assert "a login with a shell" in text(bash)
    assert "here" in text(read)
    with pytest.raises(OperationUnsupported, match="gives only SFTP"):
        await backend.open_program(["true"])


async def test_check_says_that_only_files_can_be_handled(backend: SshBackend) -> None:
    assert backend.facts is not None
    assert kind_of(backend.facts) == "sftp"
    told = {weak.promise: weak.reason for weak in weaknesses(backend.facts, None, backend.cwd)}
    assert "gives only SFTP: files can be handled, but bash is refused" in told["commands"]
    assert "at most 256 MiB" in told["search"]


async def test_it_works_where_sftp_starts(backend: SshBackend, tmp_path: Path) -> None:
    assert backend.cwd == str(tmp_path)
    facts = backend.facts
    assert facts is not None
    assert (facts.home, facts.shell) == (str(tmp_path), None)
    assert "sftp_only" in facts.capabilities
    await backend.write_file("~/new", b"mine\n")
    assert (tmp_path / "new").read_bytes() == b"mine\n"
    assert (await backend.describe())["ssh"]["sessions"] == 1


async def test_a_server_that_refuses_to_run_anything_will_do(tmp_path: Path) -> None:
    async with only_sftp(Served, tmp_path, cwd="/") as backend:
        result = await backend.replace_file("/deep/er/f", b"one\n", make_parents=True)
        assert (result.created, result.atomic) == (True, True)
        version = (await backend.read_versioned("/deep/er/f")).version
        (tmp_path / "root/deep/er/f").write_bytes(b"two\n")
        with pytest.raises(FileChanged):
            await backend.replace_file("/deep/er/f", b"three\n", expected=version)
        assert os.listdir(tmp_path / "root/deep/er") == ["f"]


async def test_what_sftp_cannot_promise_is_refused_at_once(only: Sshd, tmp_path: Path) -> None:
    config = only.config()
    refused: list[tuple[dict[str, Any], str]] = [
        ({"become_user": "nobody"}, "the engine ended"),
        ({"root": str(tmp_path)}, "ChrootDirectory"),
    ]
    for options, says in refused:
        with pytest.raises(BackendUnavailable, match=says):
            async with SshBackend.connect("box", config=config, **options):
                pass


async def test_a_forced_command_that_is_no_sftp_is_told(server: Callable[..., Sshd]) -> None:
    made = server("Subsystem sftp internal-sftp\nForceCommand echo go away\n")
    with pytest.raises(BackendUnavailable, match="ForceCommand"):
        async with SshBackend.connect("box", config=made.config()):
            pass


async def test_a_host_whose_python_is_broken_is_not_taken_for_one_of_files(
    server: Callable[..., Sshd], tmp_path: Path
) -> None:
    (tmp_path / "python3").write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    (tmp_path / "python3").chmod(0o755)
    forced = f'env PATH={tmp_path}:/usr/bin:/bin sh -c "$SSH_ORIGINAL_COMMAND"'
    made = server(f"Subsystem sftp internal-sftp\nForceCommand {forced}\n")
    with pytest.raises(BackendUnavailable, match="exit status 3: broken"):
        async with SshBackend.connect("box", config=made.config()):
            pass


async def test_nothing_is_missing_where_only_a_shell_is(
    server: Callable[..., Sshd], tmp_path: Path
) -> None:
    made = server()  # no Subsystem stands in its configuration
    async with SshBackend.connect("box", config=made.config(), cwd=str(tmp_path)) as backend:
        link = backend._links.first
        assert link is not None
        with pytest.raises(asyncssh.ChannelOpenError):
            await link.login.connection.start_sftp_client()
        await backend.write_file(f"{tmp_path}/f", b"text\n")
        assert await backend.read_file(f"{tmp_path}/f") == b"text\n"
        said: list[bytes] = []
        result = await backend.exec("cat f", cwd=str(tmp_path), on_data=said.append)
        assert (result.exit_code, b"".join(said)) == (0, b"text\n")


async def test_a_cut_is_told_and_the_next_operation_connects_again(
    backend: SshBackend, wire: Wire, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(os.urandom(8 << 20))
    assert len(await backend.read_file("~/f")) == 8 << 20
    link = backend._links.first
    assert link is not None
    wire.cut()  # while nothing is under way
    await eventually(lambda: link.login.lost)
    assert await backend.exists("~/f")
    wire.bytes_per_s = 1 << 20
    async with anyio.create_task_group() as tasks:

        async def read() -> None:
            with pytest.raises(ConnectionLost, match="may or may not"):
                await backend.read_file("~/f")

        tasks.start_soon(read)
        await anyio.sleep(0.5)
        wire.cut()
    wire.bytes_per_s = None
    assert len(await backend.read_file("~/f")) == 8 << 20


async def test_a_write_that_was_cut_leaves_the_old_file_and_nothing_else(
    backend: SshBackend, wire: Wire, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(b"old\n")
    wire.cut_after(1 << 20)
    with pytest.raises(ConnectionLost):
        await backend.replace_file("~/f", os.urandom(4 << 20))
    assert (tmp_path / "f").read_bytes() == b"old\n"
    assert len(temporaries(tmp_path)) == 1  # nobody is there to remove it
    assert await backend.exists("~/f")
    await eventually(lambda: not temporaries(tmp_path))
    assert os.listdir(tmp_path) == ["f"]


async def test_a_cut_at_any_moment_of_a_write_leaves_the_old_file_or_the_new_one(
    backend: SshBackend, wire: Wire, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(b"0")
    last = b"0"
    for number, sent in enumerate(range(50, 1300, 150), 1):
        content = b"%d" % number
        wire.cut_after(sent)
        with suppress(ConnectionLost):
            await backend.replace_file("~/f", content)
            last = content
        assert (tmp_path / "f").read_bytes() in (last, content)
        last = (tmp_path / "f").read_bytes()
        with suppress(ConnectionLost):  # the cut may only come now
            await backend.exists("~/f")
    wire.cut()
    with suppress(ConnectionLost):
        await backend.exists("~/f")
    assert await backend.exists("~/f")
    await eventually(lambda: os.listdir(tmp_path) == ["f"])


async def test_a_cancelled_write_is_settled(tmp_path: Path) -> None:
    """Whole or not at all, and without a temporary file, as soon as the server answers."""
    writing, goes_on = asyncio.Event(), asyncio.Event()

    class Held(Served):
        async def write(self, file_obj: Any, offset: int, data: bytes) -> int:
            writing.set()
            await goes_on.wait()
            file_obj.seek(offset)
            return int(file_obj.write(data))

    async with only_sftp(Held, tmp_path) as backend:
        (tmp_path / "root/f").write_bytes(b"old\n")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(backend.replace_file, "/f", b"new\n")
            await writing.wait()
            tasks.cancel_scope.cancel()
            asyncio.get_running_loop().call_later(0.2, goes_on.set)
        assert os.listdir(tmp_path / "root") == ["f"]
        assert (tmp_path / "root/f").read_bytes() in (b"old\n", b"new\n")


async def test_a_window_of_a_large_file_is_all_that_is_held(
    backend: SshBackend, tmp_path: Path
) -> None:
    """What is under way is bounded, so the peak does not follow the size of the file."""
    with (tmp_path / "big").open("wb") as file:
        for number in range(40):
            file.write((b"%063d\n" % number) * (1 << 14))
    tracemalloc.start()
    try:
        window = await backend.read_lines("~/big", start=600_000, max_lines=2, max_bytes=1000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert window.data == (b"%063d\n" % (599_999 >> 14)) * 2
    assert (window.total_lines, window.size) == (40 << 14, 40 << 20)
    assert peak < 24 << 20


async def test_hard_links_are_seen_in_a_listing(backend: SshBackend, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old\n")
    os.link(tmp_path / "f", tmp_path / "g")
    result = await backend.replace_file("~/f", b"new and longer\n")
    assert (result.atomic, result.reason) == (False, "hard_links")
    assert (tmp_path / "g").read_bytes() == b"new and longer\n"
