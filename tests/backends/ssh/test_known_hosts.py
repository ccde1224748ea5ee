"""Which lines of a known_hosts file are about a host."""

from __future__ import annotations

import subprocess
from pathlib import Path

import asyncssh
import pytest

from backends.ssh.address import Address
from backends.ssh.config import read_settings
from backends.ssh.known_hosts import HostKeys

KEY = asyncssh.generate_private_key("ssh-ed25519")
OTHER = asyncssh.generate_private_key("ssh-ed25519")


def text(key: asyncssh.SSHKey) -> str:
    return key.export_public_key("openssh").decode().strip()


def known(lines: str, tmp_path: Path, *, host: str = "web1", port: int = 22) -> HostKeys:
    file = tmp_path / "known_hosts"
    file.write_text(lines)
    settings = read_settings(Address(host, "me", port), config=None, known_hosts=str(file))
    return HostKeys(settings)


@pytest.mark.parametrize(
    ("names", "port", "counts"),
    [
        ("web1", 22, True),
        ("WEB1", 22, True),
        ("a,web1,b", 22, True),
        ("web2", 22, False),
        ("w?b*", 22, True),
        ("w*,!web1", 22, False),
        ("web", 22, False),
        ("[web1]:2222", 2222, True),
        ("[web1]:2222", 22, False),
        ("[web1]:2222", 2223, False),
        ("web1", 2222, True),
        ("w[e]b1", 22, False),
        ("10.0.0.1", 22, False),
    ],
)
def test_which_names_count(names: str, port: int, counts: bool, tmp_path: Path) -> None:
    keys = known(f"{names} {text(KEY)} comment\n", tmp_path, port=port)
    assert bool(keys.known("web1", "10.0.0.1", port)[0]) is counts


def test_hashed_names_count(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text(f"[web1]:2222 {text(KEY)}\nweb2 {text(OTHER)}\n")
    argv = ["ssh-keygen", "-q", "-H", "-f", str(tmp_path / "plain")]
    subprocess.run(argv, check=True, capture_output=True, timeout=30)
    hashed = (tmp_path / "plain").read_text()
    assert "web1" not in hashed
    assert known(hashed, tmp_path, port=2222).known("", "", 0)[0] == [KEY.convert_to_public()]
    assert known(hashed, tmp_path, host="web2").known("", "", 0)[0] == [OTHER.convert_to_public()]
    assert known(hashed, tmp_path, host="web3").known("", "", 0)[0] == []


def test_what_is_no_line_is_skipped(tmp_path: Path) -> None:
    lines = "\n# web1 x\nweb1\n@odd\nweb1 ssh-rsa !!!\n|1|x|y ssh-ed25519 z\n"
    lines += f"@revoked web1 {text(OTHER)}\n"
    keys = known(lines + f"@cert-authority *.example {text(OTHER)}\nweb1 {text(KEY)}\n", tmp_path)
    found = keys.known("web1", "", 22)
    assert found == ([KEY.convert_to_public()], [], [OTHER.convert_to_public()])
    assert keys.place_of(KEY.convert_to_public()) == f"{tmp_path}/known_hosts line 9"


def test_a_refusal_names_all_that_a_person_needs(tmp_path: Path) -> None:
    keys = known("", tmp_path, port=2222)
    keys.shown = OTHER.convert_to_public()
    said = keys.refusal("Host key is not trusted")
    assert OTHER.get_fingerprint() in said
    assert f"{tmp_path}/known_hosts" in said
    assert f"echo '[web1]:2222 {' '.join(text(OTHER).split()[:2])}' >> " in said
    assert "keyscan" not in said

    keys = known(f"\nweb1 {text(KEY)}\n", tmp_path)
    keys.shown = OTHER.convert_to_public()
    said = keys.refusal("Host key is not trusted")
    assert f"{tmp_path}/known_hosts line 2 has ssh-ed25519 {KEY.get_fingerprint()}" in said
    assert OTHER.get_fingerprint() in said
    assert f"ssh-keygen -R web1 -f {tmp_path}/known_hosts && echo " in said


def test_known_kinds_are_asked_for_first_and_any_after_them(tmp_path: Path) -> None:
    rsa = asyncssh.generate_private_key("ssh-rsa", key_size=2048)
    algorithms = known(f"web1 {text(rsa)}\n", tmp_path).algorithms()
    assert algorithms[0].startswith("rsa-sha2-")
    assert "ssh-ed25519" in algorithms
    assert not any("cert" in algorithm for algorithm in algorithms)
    assert "cert" in known(f"@cert-authority web1 {text(KEY)}\n", tmp_path).algorithms()[0]
