"""`toolkit demo`: what a newcomer sees first."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.toolkit.cli.commands import TOOLKIT, is_alive, place_with, toolkit, wait_for

if TYPE_CHECKING:
    from tests.servers import Server
    from tests.sshd import Sshd

REPAIRED = "+    return (price * (100 - percent) + 50) // 100"


def test_the_demo_repairs_the_project_and_leaves_nothing(tmp_path: Path) -> None:
    before = set(Path(tempfile.gettempdir()).glob("remotehands*"))
    done = toolkit("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" in done.stdout  # the first test run
    assert "not allowed here" in done.stdout  # the hook
    assert "pricing.py" in done.stdout
    assert "the tests pass: yes" in done.stdout
    assert "with the same messages: yes" in done.stdout
    assert set(Path(tempfile.gettempdir()).glob("remotehands-demo-*")) <= before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", ["local:", "command:sh -c"])
def test_it_repairs_the_project_wherever_it_is_told_to(target: str, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "temporary").mkdir()
    env = {"TMPDIR": str(tmp_path / "temporary")}
    done = toolkit("demo", "--on", target, cwd=tmp_path / "here", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the tests pass: yes" in done.stdout
    assert REPAIRED in done.stdout
    assert str(tmp_path / "temporary") in done.stdout
    assert list((tmp_path / "here").iterdir()) == []
    assert list((tmp_path / "temporary").iterdir()) == []


def test_without_commands_only_the_files_are_repaired(tmp_path: Path) -> None:
    done = toolkit("demo", "--on", "memory:", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no python3 runs here" in done.stdout
    assert "the file is repaired: yes" in done.stdout
    assert REPAIRED in done.stdout


@pytest.mark.parametrize(("target", "code"), [("nonsense", 2), ("command:false", 3)])
def test_a_target_that_cannot_be_used_is_told_in_a_line(
    target: str, code: int, tmp_path: Path
) -> None:
    done = toolkit("demo", "--on", target, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)


def test_a_target_without_room_for_the_project_is_told_in_a_line(tmp_path: Path) -> None:
    env = {"TMPDIR": "/no/such/folder"}
    done = toolkit("demo", "--on", "command:sh -c", cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "/no/such/folder" in done.stderr


def test_an_interrupt_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    target = place_with(tmp_path)
    python = tmp_path / "bin" / "python3"
    hang = f'case $* in *unittest*) echo $$ >"{tmp_path}/pid"; exec sleep 300 ;; esac'
    python.write_text(python.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\n{hang}\n"))
    (tmp_path / "temporary").mkdir()
    with subprocess.Popen(
        [*TOOLKIT, "demo", "--on", target],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path / "temporary")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        pid_file = tmp_path / "pid"
        wait_for(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (130, "")
    wait_for(lambda: not is_alive(int(pid_file.read_text())))
    assert list((tmp_path / "temporary").iterdir()) == []


def test_it_repairs_the_project_on_a_host_and_leaves_nothing_there(
    sshd: Sshd, tmp_path: Path
) -> None:
    config = quote(sshd.config(name="demo"))
    done = toolkit("demo", "--on", f"ssh://box?config={config}", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the tests pass: yes" in done.stdout
    assert REPAIRED in done.stdout
    assert list(tmp_path.iterdir()) == []
    assert sshd.engines() == []
    assert list((sshd.folder / "home").iterdir()) == []


def test_it_repairs_the_project_on_a_host_in_a_container_as_a_user_there(
    compose_servers: dict[str, Server], tmp_path: Path
) -> None:
    server = compose_servers["sshd"]
    user = server.add_user()
    try:
        config = quote(server.config(user))
        done = toolkit("demo", "--on", f"ssh://box?config={config}", cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "the tests pass: yes" in done.stdout
        assert REPAIRED in done.stdout
        left = server.execute('find / -xdev -user "$1" ! -path "/proc/*" 2>/dev/null', user).split()
        assert set(left) <= {f"/home/{user}", f"/work/{user}"}
    finally:
        server.remove_user(user)
