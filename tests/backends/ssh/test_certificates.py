"""With what a host's certificate may be signed, and which kinds of host keys are taken."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import asyncssh
import pytest

from backends.ssh import SshBackend
from backends.ssh.address import Address
from backends.ssh.certificates import allowed_signatures, fault_of
from backends.ssh.config import read_settings
from backends.ssh.credentials import Asking
from backends.ssh.faults import Unreachable
from backends.ssh.known_hosts import offered_kinds
from backends.ssh.login import log_in
from tests.backends.ssh.test_connecting import refused, works
from tests.sshd import Sshd

if TYPE_CHECKING:
    from collections.abc import Callable

RSA = asyncssh.generate_private_key("ssh-rsa", key_size=2048)
KEYS = {
    "ssh-rsa": RSA,
    "ssh-ed25519": asyncssh.generate_private_key("ssh-ed25519"),
    "ecdsa-sha2-nistp256": asyncssh.generate_private_key("ecdsa-sha2-nistp256"),
    "ecdsa-sha2-nistp384": asyncssh.generate_private_key("ecdsa-sha2-nistp384"),
    "ecdsa-sha2-nistp521": asyncssh.generate_private_key("ecdsa-sha2-nistp521"),
}
DEFAULT = allowed_signatures(None)


def certificate(
    kind: str = "ssh-ed25519", ca: asyncssh.SSHKey = RSA, signature: str | None = None
) -> bytes:
    made = ca.generate_host_certificate(
        KEYS[kind].convert_to_public(), "host", principals=["web1"], sig_alg=signature or ()
    )
    return made.public_data


@pytest.mark.parametrize("kind", KEYS)
def test_the_signature_is_found_behind_every_kind_of_key(kind: str) -> None:
    for name, ca in KEYS.items():
        signature = "rsa-sha2-256" if name == "ssh-rsa" else name
        shown = certificate(kind, ca, signature)
        assert fault_of(shown, DEFAULT) == ""
        assert repr(signature) in fault_of(shown, ["other"])
        assert fault_of(shown, [signature]) == ""


def test_sha_1_never_counts() -> None:
    shown = certificate(signature="ssh-rsa")
    assert "SHA-1" in fault_of(shown, DEFAULT)
    assert "SHA-1" in fault_of(shown, allowed_signatures("+ssh-rsa"))


def test_a_plain_key_has_no_signature_to_judge() -> None:
    for key in KEYS.values():
        assert fault_of(key.convert_to_public().public_data, []) == ""


def test_what_cannot_be_read_is_a_fault() -> None:
    shown = certificate()
    assert all(fault_of(shown[:end], DEFAULT) for end in range(len(shown)))
    assert fault_of(shown + b"\0", DEFAULT)
    assert fault_of(shown.replace(b"ssh-ed25519-cert", b"ssh-ed25518-cert", 1), DEFAULT)


def test_what_a_host_offers_is_never_more_than_names() -> None:
    start = b"\x14" + bytes(16) + b"\0\0\0\1x"
    names = b"ssh-ed25519,\x1b[31m,rsa-sha2-512," + b"y" * 65
    message = start + len(names).to_bytes(4, "big") + names
    assert offered_kinds(message) == ["ssh-ed25519", "rsa-sha2-512"]
    assert offered_kinds(b"") == []
    assert all(offered_kinds(message[:end]) == [] for end in range(len(message)))


def run(*argv: object) -> None:
    subprocess.run([str(word) for word in argv], check=True, timeout=30, capture_output=True)


@pytest.mark.anyio
async def test_which_signatures_let_a_host_in(server: Callable[..., Sshd]) -> None:
    """OpenSSH takes no SHA-1 from a CA, and what CASignatureAlgorithms says limits no other key."""
    made = server()
    ca = made.folder / "rsa"
    run("ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", ca)
    made._options = f"HostCertificate {made.folder}/host_key-cert.pub\n"
    plain = (made.folder / "known_hosts").read_text()
    known = made.folder / "known_hosts"
    known.write_text(f"@cert-authority * {(made.folder / 'rsa.pub').read_text()}")

    def sign(algorithm: str) -> None:
        names = ("-I", "h", "-h", "-n", "127.0.0.1")
        run("ssh-keygen", "-q", "-t", algorithm, "-s", ca, *names, f"{made.folder}/host_key.pub")
        made.stop()
        made.start()

    def says(option: str = "") -> SshBackend:
        return SshBackend.connect("box", config=made.config(more=option))

    sign("rsa-sha2-512")
    assert await works(says())
    said = await refused(says("CASignatureAlgorithms ssh-ed25519"))
    assert "signed with 'rsa-sha2-512', and CASignatureAlgorithms allows ssh-ed25519" in said
    try:
        sign("ssh-rsa")
    except subprocess.CalledProcessError:
        pytest.skip("this ssh-keygen signs nothing with SHA-1")
    assert "SHA-1" in await refused(says())
    assert "SHA-1" in await refused(says("CASignatureAlgorithms +ssh-rsa"))

    known.write_text(plain)
    (made.folder / "authorized_keys").write_text((made.folder / "rsa.pub").read_text())
    config = Path(made.config(more="CASignatureAlgorithms ssh-ed25519"))
    config.write_text(config.read_text().replace(f"{made.folder}/key\n", f"{ca}\n"))
    assert await works(SshBackend.connect("box", config=str(config)))


@pytest.mark.anyio
async def test_kinds_of_host_keys_with_nothing_in_common_are_told_at_once(
    server: Callable[..., Sshd],
) -> None:
    made = server()
    option = "HostKeyAlgorithms rsa-sha2-512,ecdsa-sha2-nistp256"
    settings = read_settings(Address("box"), config=made.config(more=option))
    with pytest.raises(Unreachable) as caught:
        await log_in(settings, None, Asking())
    assert not caught.value.passing  # so that nobody tries again
    said = str(caught.value)
    assert f"127.0.0.1:{made.port} has no host key of a kind that is wanted" in said
    assert "it offers ssh-ed25519; wanted is one of rsa-sha2-512, ecdsa-sha2-nistp256" in said
    assert "HostKeyAlgorithms" in said
