"""What of an OpenSSH configuration holds here, and what is refused with its file and line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backends.ssh.address import Address
from backends.ssh.config import HostSettings, read_settings
from backends.ssh.faults import Unusable
from backends.ssh.links import Route

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def config(tmp_path: Path) -> Callable[[str], str]:
    """Give a function that writes a configuration and returns its file."""

    def write(text: str) -> str:
        (tmp_path / "config").write_text(text)
        return str(tmp_path / "config")

    return write


def read(file: str, host: str = "web1") -> HostSettings:
    return read_settings(Address(host), config=file)


def test_what_is_said_holds(config: Callable[[str], str]) -> None:
    settings = read(
        config(
            "Host web*\n  HostName 10.0.0.1\n  User deploy\n  Port 2222\n  IdentityFile ~/k\n"
            "  IdentitiesOnly yes\n  UserKnownHostsFile /a /b\n  GlobalKnownHostsFile none\n"
            "  ConnectTimeout 7\n  ServerAliveInterval 3\n  ServerAliveCountMax 2\n"
            "  ProxyJump me@j1:23,j2\n  HostKeyAlias other\n  StrictHostKeyChecking yes\n"
            "  Ciphers aes256-gcm@openssh.com\nHost *\n  User nobody\n"
        )
    )
    assert (settings.host, settings.user, settings.port) == ("10.0.0.1", "deploy", 2222)
    assert settings.identities == (str(Path("~/k").expanduser()),)
    assert settings.only_identities
    assert settings.known_hosts == ("/a", "/b")
    assert (settings.connect_timeout_s, settings.alive_s, settings.alive_count) == (7.0, 3, 2)
    assert settings.jumps == (Address("j1", "me", 23), Address("j2"))
    assert settings.alias == "other"
    assert settings.algorithms == {"encryption_algs": "aes256-gcm@openssh.com"}


def test_what_the_destination_says_counts_more(config: Callable[[str], str]) -> None:
    file = config("Host *\n  User a\n  Port 1\n")
    settings = read_settings(Address("web1", "me", 99), config=file)
    assert (settings.user, settings.port) == ("me", 99)


@pytest.mark.parametrize(
    "option",
    [
        "StrictHostKeyChecking no",
        "StrictHostKeyChecking accept-new",
        "stricthostkeychecking=off",
        "KnownHostsCommand /bin/true",
        "RevokedHostKeys /etc/revoked",
        "VerifyHostKeyDNS yes",
        "CheckHostIP yes",
        "CanonicalizeHostname yes",
        "RequiredRSASize 4096",
        "PubkeyAcceptedKeyTypes ssh-ed25519",
        "BindInterface tun0",
        "ProxyUseFdpass yes",
    ],
)
def test_what_is_not_honoured_and_changes_safety_is_refused(
    config: Callable[[str], str], option: str
) -> None:
    file = config(f"# mine\nHost other\n  {option}\nHost *\n  User me\n  {option}\n")
    with pytest.raises(Unusable) as caught:
        read(file)
    assert f"{file} line 6: " in str(caught.value)
    assert option.replace("=", " ").split()[1] in str(caught.value)


def test_it_is_refused_only_where_it_holds(config: Callable[[str], str], tmp_path: Path) -> None:
    """Another host's block, and what an earlier line has overruled, do not count."""
    (tmp_path / "more").write_text("Host web2\n  StrictHostKeyChecking no\n")
    file = config(
        f"Host web1\n  StrictHostKeyChecking yes\nHost web3\n  KnownHostsCommand x\n"
        f"Host *\n  StrictHostKeyChecking no\n  Include {tmp_path}/more\n"
    )
    assert read(file).host == "web1"
    with pytest.raises(Unusable, match="config line 6"):
        read(file, "web3")


def test_an_included_file_is_named(config: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "more").write_text("\n\nKnownHostsCommand x\n")
    with pytest.raises(Unusable, match="more line 3"):
        read(config(f"Include {tmp_path}/more\n"))


def test_a_file_that_others_can_write_is_not_read(
    config: Callable[[str], str], tmp_path: Path
) -> None:
    file = config("")
    (tmp_path / "config").chmod(0o666)
    with pytest.raises(Unusable, match="other users"):
        read(file)
    with pytest.raises(Unusable, match="No such file"):
        read(str(tmp_path / "missing"))


def test_nonsense_is_told_with_its_line(config: Callable[[str], str]) -> None:
    with pytest.raises(Unusable, match="line 2"):
        read(config("Host *\n  Port many\n"))
    with pytest.raises(Unusable, match="line 1"):
        read(config("ProxyJump $x\n"))


def test_the_first_of_jump_and_command_holds(config: Callable[[str], str]) -> None:
    both = read(config("ProxyCommand nc %h %p\nProxyJump j\n"))
    assert (both.proxy_command, both.jumps) == ("nc web1 22", ())
    both = read(config("ProxyJump none\nProxyCommand nc %h %p\n"))
    assert (both.proxy_command, both.jumps) == (None, ())


def plan(file: str, via: tuple[Address, ...] | None = None, host: str = "web1") -> list[str]:
    return [hop.name for hop in Route(Address(host), via, file, None).plan()]


def test_jumps_are_a_chain(config: Callable[[str], str]) -> None:
    """The first of a chain may have a jump of its own; a jump host does not jump over itself."""
    file = config("Host web1\n  ProxyJump j1,j2\nHost j1 j2\n  ProxyJump gate\nHost *\n User me\n")
    assert plan(file) == ["gate", "j1", "j2", "web1"]
    assert plan(file, via=()) == ["web1"]
    assert plan(file, via=(Address("x"),)) == ["x", "web1"]
    file = config("Host *\n  ProxyJump gate\n")
    assert plan(file) == ["gate", "web1"]
    assert plan(file, host="gate") == ["gate"]


def test_a_jump_over_another_port_of_the_same_machine_stays(config: Callable[[str], str]) -> None:
    """To leave a jump out would be to go straight where somebody wanted a detour."""
    file = config("Host web1\n  HostName 127.0.0.1\n  Port 2201\n  ProxyJump 127.0.0.1:2202\n")
    assert plan(file) == ["127.0.0.1", "web1"]
    assert plan(file, via=(Address("web1", port=7),)) == ["127.0.0.1", "web1", "web1"]


def test_jumps_in_circles_are_told(config: Callable[[str], str]) -> None:
    file = config("Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n")
    with pytest.raises(Unusable, match="circles"):
        plan(file, host="a")
