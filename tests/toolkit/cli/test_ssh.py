"""`toolkit check` and `toolkit call` on a host behind an SSH server."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.sshd import Sshd
from tests.toolkit.cli.commands import toolkit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def gate(sshd: Sshd) -> Iterator[Sshd]:
    """Give another server, which one may go through."""
    made = Sshd()
    try:
        shutil.copy(sshd.folder / "key.pub", made.folder / "authorized_keys")
        made.start()
        yield made
    finally:
        made.remove()


def test_check_tells_the_host_key_the_cipher_the_way_and_round_trips(
    sshd: Sshd, gate: Sshd, tmp_path: Path
) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(f"{gate.know().read_text()}{sshd.know().read_text()}")
    config = sshd.config(f"Host gate\n  Port {gate.port}\n", name="check")
    target = f"ssh://box/tmp?via=gate&config={quote(config)}&known_hosts={quote(str(known))}"
    argv = ["ssh-keygen", "-lf", str(sshd.folder / "host_key.pub")]
    fingerprint = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()[1]
    done = toolkit("check", target, "--format", "json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    about = told["about"]["ssh"]
    assert about["host_key"] == f"ssh-ed25519 {fingerprint}"
    assert about["known_from"] == f"{known} line 4"
    assert about["cipher"] == "aes128-gcm@openssh.com"
    assert about["via"] == [f"{gate.user}@127.0.0.1:{gate.port}"]
    assert told["latency"]["round_trips"] > 0
    shown = toolkit("check", target, cwd=tmp_path).stdout
    for words in (fingerprint, "aes128-gcm", f"via {gate.user}@127.0.0.1", "a round trip"):
        assert words in shown


def test_an_unknown_host_is_told_with_what_to_do_and_nothing_runs_here(
    sshd: Sshd, tmp_path: Path
) -> None:
    (tmp_path / "known_hosts").touch()
    known = quote(str(tmp_path / "known_hosts"))
    target = f"ssh://box?config={quote(sshd.config(name='unknown'))}&known_hosts={known}"
    command = f"command=touch {tmp_path}/made"
    done = toolkit("call", "bash", command, "--on", target, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert "SHA256:" in done.stderr
    assert f">> {tmp_path}/known_hosts" in done.stderr
    assert not (tmp_path / "made").exists()
