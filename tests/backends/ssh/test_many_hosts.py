"""Thirty hosts at once, some of them bad: everyone answers, nobody waits for a bad one."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from backends.ssh import SshBackend
from tests.backends.ssh.proxy import Wire
from tests.sshd import Sshd, runs
from tests.toolkit.cli.commands import on_terminal
from toolkit import Fleet, HostMessage, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]
GOOD = 27


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on, none of them twice."""
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def listening(server: Callable[..., Sshd], ports: list[int], *, like: Sshd | None = None) -> Sshd:
    """Start a server that stands for a host on each port; it lets all of us in at once.

    Args:
        server: Starts one.
        ports: At most 15: an sshd listens on 16, one of which is its own.
        like: Another server, whose users' keys are let in here too.
    """
    sshd = server("MaxStartups 200\n" + "".join(f"Port {port}\n" for port in ports))
    if like is not None:
        shutil.copy(like.folder / "authorized_keys", sshd.folder / "authorized_keys")
    return sshd


def know(file: Path, ports: dict[Sshd, list[int]]) -> str:
    """Write each server's host key for its ports; return the file."""
    lines = [
        f"[127.0.0.1]:{port} {(sshd.folder / 'host_key.pub').read_text().rsplit(None, 1)[0]}\n"
        for sshd in ports
        for port in ports[sshd]
    ]
    file.write_text("".join(lines))
    return str(file)


async def test_thirty_hosts_answer_and_the_bad_ones_hold_up_nobody(
    server: Callable[..., Sshd], tmp_path: Path
) -> None:
    """One refuses, one says nothing, one dies in its command; the others' results are there."""
    *ports, closed = free_ports(GOOD + 1)
    sshd = listening(server, ports[:14])
    other = listening(server, ports[14:], like=sshd)
    mark = f"8{os.getpid()}.25"
    command = f'echo "$SSH_CONNECTION"; [ -z "$DIES" ] || sleep {mark}'
    script = [[ToolCall(id="1", name="bash", arguments={"command": command})]]
    async with Wire(sshd.port) as silent, Wire(sshd.port) as dying:
        silent.swallows = True
        bad = {"refuses": closed, "silent": silent.port, "dies": dying.port}
        named = {f"web{port}": port for port in ports} | bad
        known = know(tmp_path / "known", {sshd: [*ports[:14], *bad.values()], other: ports[14:]})
        config = sshd.config()
        hosts = {
            name: SshBackend.connect(
                f"box:{port}",
                config=config,
                known_hosts=known,
                connect_timeout_s=5 if name == "silent" else None,
                env={"DIES": "1"} if name == "dies" else None,
            )
            for name, port in named.items()
        }
        said: dict[str, HostMessage] = {}
        with anyio.fail_after(60):
            async with Fleet(hosts, script) as fleet:
                async for answer in fleet:
                    assert answer.host not in said
                    said[answer.host] = answer
                    if len(said.keys() - bad.keys()) == GOOD and "dies" not in said:
                        while not runs(f"sleep {mark}") and fleet.statuses[-1].answered == 0:
                            await anyio.sleep(0.02)
                        dying.cut()
    told = {name: (said[name].message.error_kind, said[name].message.text) for name in named}
    for port in ports:
        kind, text = told.pop(f"web{port}")
        assert kind is None
        assert text.split()[3] == str(port)
    assert told["refuses"][0] == told["silent"][0] == "unavailable"
    assert "nothing listens" in told["refuses"][1]
    assert "5 s" in told["silent"][1]
    assert told["dies"][0] == "connection_lost"
    assert "may or may not have happened" in told["dies"][1]
    assert Counter(status.state for status in fleet.statuses) == {
        "done": GOOD, "unreachable": 2, "failed": 1,
    }  # fmt: skip
    with anyio.fail_after(60):
        while sshd.engines() or other.engines() or runs(f"sleep {mark}"):
            await anyio.sleep(0.05)


async def test_the_command_takes_a_range_of_hosts(
    server: Callable[..., Sshd], tmp_path: Path
) -> None:
    """With one line of output for each, and the one that is not there by its name."""
    *ports, closed = free_ports(3)
    sshd = listening(server, ports)
    known = know(tmp_path / "known", {sshd: [*ports, closed]})
    some = ",".join(map(str, [*ports, closed]))
    target = f"ssh://box:[{some}]/tmp?config={sshd.config()}&known_hosts={known}"
    argv = [sys.executable, "-m", "toolkit.cli", "call", "bash", "command=pwd", "--on", target]
    done = await anyio.run_process(argv, cwd=ROOT, check=False)
    *good, bad = sorted(done.stdout.decode().splitlines(), key=len)
    assert sorted(good) == sorted(f"box:{port} | /tmp" for port in ports)
    assert bad.startswith(f"box:{closed} | ")
    assert "nothing listens" in bad
    assert done.returncode == 3
    assert done.stderr.decode() == f"toolkit: 2 done; 1 unreachable (box:{closed})\n"
    with anyio.fail_after(60):
        while sshd.engines():
            await anyio.sleep(0.05)


def test_a_passphrase_is_asked_for_once_and_not_by_every_host(
    server: Callable[..., Sshd], tmp_path: Path
) -> None:
    """Questions that come all at once could show what is typed."""
    ports = free_ports(3)
    sshd = listening(server, ports)
    shutil.copy(sshd.make_key("key", "s3cret").with_suffix(".pub"), sshd.folder / "authorized_keys")
    known = know(tmp_path / "known", {sshd: ports})
    target = f"ssh://box:[{','.join(map(str, ports))}]/?config={sshd.config()}&known_hosts={known}"
    code, shown = on_terminal(
        "call", "ls", "--on", target, cwd=tmp_path, types={"Passphrase": "s3cret\n"}
    )
    assert code == 0
    assert shown.count("Passphrase") == 1
    assert "s3cret" not in shown
    assert "3 done" in shown
