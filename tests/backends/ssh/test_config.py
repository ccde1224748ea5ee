"""What of an OpenSSH configuration holds here, and what is refused with its file and line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backends.ssh.address import Address
from backends.ssh.config import ALIVE_S, HostSettings, read_settings
from backends.ssh.config_reader import split_words
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


def test_an_included_file_that_others_can_write_is_not_read(
    config: Callable[[str], str], tmp_path: Path
) -> None:
    """Only where it would be used: what another host's block includes is not looked at."""
    more = tmp_path / "more"
    more.write_text("ProxyCommand touch /tmp/never\n")
    more.chmod(0o666)
    with pytest.raises(Unusable, match="more can be written by other users; chmod go-w"):
        read(config(f"Host web1\n  Include {tmp_path}/m*\n"))
    assert read(config(f"Host other\n  Include {tmp_path}/more\n")).proxy_command is None
    more.chmod(0o644)
    (tmp_path / "between").write_text(f"Include {more}\n")
    (tmp_path / "between").chmod(0o620)
    with pytest.raises(Unusable, match="between can be written"):
        read(config(f"Include {tmp_path}/between\n"))


def test_an_included_file_of_another_user_is_not_read(
    config: Callable[[str], str], tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    (tmp_path / "more").write_text("User eve\n")
    os.chown(tmp_path / "more", 12345, -1)
    with pytest.raises(Unusable, match="more belongs to another user"):
        read(config(f"Include {tmp_path}/more\n"))


def test_files_that_include_each_other_end(config: Callable[[str], str], tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="config line 1: files include each other"):
        read(config(f"Include {tmp_path}/config\n"))


def test_a_block_goes_on_after_what_it_includes(
    config: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "more").write_text("Host other\n  Port 1\nHost web1\n  Port 2\nHost x\n Port 3\n")
    settings = read(config(f"Host web1\n  Include {tmp_path}/more\n  User me\n"))
    assert (settings.port, settings.user) == (2, "me")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a b\tc", ["a", "b", "c"]),
        ("bob # who # it is", ["bob"]),
        ("a#b c", ["a#b", "c"]),
        ("#", []),
        ('"#" x', ["#", "x"]),
        ("\"a b\" 'c \"d' e' f'", ["a b", 'c "d', "e f"]),
        (r"a\ b \"c\' d\\e \n", ["a b", "\"c'", "d\\e", r"\n"]),
        (r'"a\"b"', ['a"b']),
        ("''", [""]),
    ],
)
def test_words_are_openssh_s(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7", 7), ("90s", 90), ("1m", 60), ("1H30m", 5400), ("2d", 172800), ("none", None)],
)
def test_times_are_openssh_s(config: Callable[[str], str], text: str, seconds: int | None) -> None:
    """A "none" leaves it to the lines below, or to what is usual here."""
    settings = read(config(f"ConnectTimeout {text} # at most\nServerAliveInterval={text}\n"))
    assert settings.connect_timeout_s == seconds
    assert settings.alive_s == (ALIVE_S if seconds is None else seconds)
    assert read(config("ConnectTimeout none\nConnectTimeout 3\n")).connect_timeout_s == 3


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ConnectTimeout 1x", "'1x'"),
        ("ConnectTimeout -1", "'-1'"),
        (f"ConnectTimeout {'1' * 6000}", "111"),
        ("ServerAliveInterval 99999999999", "'99999999999'"),
        ("Port 0", "from 1 to 65535, not '0'"),
        ("Port 99999", "from 1 to 65535, not '99999'"),
        ("Port 1234567", "from 1 to 65535, not '1234567'"),
        ('User "me', "does not end"),
        ("User me you", "more than one value: you"),
        ("User # me", "needs a value"),
        ("PubkeyAuthentication maybe", "maybe"),
        ("ProxyJump %Z@gate", "Z"),
        ("IdentityFile %Z", "Z"),
        ("IdentityFile ${NO_SUCH_NAME_HERE}", "NO_SUCH_NAME_HERE"),
        ("Match nonsense x", "nonsense"),
        ("Match host", "host"),
        ('Match ""', "no name"),
        ('Match exec "test %Z"', "Z"),
    ],
)
def test_a_fault_is_told_with_its_line_where_it_concerns_the_host(
    config: Callable[[str], str], line: str, told: str
) -> None:
    with pytest.raises(Unusable) as caught:
        read(config(f"\nHost web*\n  {line}\n"))
    assert "config line 3: " in str(caught.value)
    assert told in str(caught.value)
    if not line.startswith("Match"):
        assert read(config(f"Host other\n  {line}\n")).host == "web1"


def test_a_match_that_has_failed_is_not_looked_at_further(config: Callable[[str], str]) -> None:
    file = config(
        'Match host other exec "test 1 = 1" nonsense x\n  User eve\nMatch all\n  Port 5\n'
    )
    settings = read(file)
    assert (settings.port, settings.user == "eve") == (5, False)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ('exec "test 1 = 1"', True),
        ('exec "test 1 = 2"', False),
        ('!exec "test 1 = 2"', True),
        ('exec="test %h:%p = web1:22"', True),
        ("host=web1", True),
        ("host = w*,!web2", True),
        ('host "web1" user nobody', False),
        ("final host web1", True),
        ("host web1 # exec false", True),
        ("all", True),
        ("canonical", False),
    ],
)
def test_which_matches_hold(config: Callable[[str], str], condition: str, holds: bool) -> None:
    assert (read(config(f"Match {condition}\n  Port 5\n")).port == 5) is holds


def test_a_port_may_be_a_service_s_name(config: Callable[[str], str]) -> None:
    assert read(config("Port ssh\n")).port == 22


@pytest.mark.parametrize(
    ("said", "on"),
    [("unbound", True), ("host-bound", True), ("yes", True), ("no", False)],
)
def test_public_keys_on_and_off(config: Callable[[str], str], said: str, on: bool) -> None:
    settings = read(config(f"PubkeyAuthentication {said}\n"))
    assert settings.options["public_key_auth"] is on


def test_tokens_of_a_jump_are_those_of_the_host(config: Callable[[str], str]) -> None:
    file = config("Host web1\n  ProxyJump %r@gate-%h:%p # there\n  User me\n  Port 23\n")
    assert read(file).jumps == (Address("gate-web1", "me", 23),)


def test_a_command_keeps_its_signs(config: Callable[[str], str]) -> None:
    file = config("ProxyCommand=sh -c 'nc \"%h\" %p' # x\n")
    assert read(file).proxy_command == "sh -c 'nc \"web1\" 22' # x"


def test_what_is_no_utf_8_harms_nobody(config: Callable[[str], str], tmp_path: Path) -> None:
    file = config("")
    (tmp_path / "config").write_bytes(b"\xef\xbb\xbfHost web1 # caf\xe9\r\n  User me\r\n")
    assert read(file).user == "me"


@pytest.mark.parametrize(
    ("said", "ed25519", "rsa", "sha1"),
    [
        ("", True, True, False),
        ("CASignatureAlgorithms ssh-ed25519", True, False, False),
        ("CASignatureAlgorithms -rsa-*", True, False, False),
        ("CASignatureAlgorithms +ssh-rsa", True, True, True),
        ("CASignatureAlgorithms none", False, False, False),
    ],
)
def test_which_signatures_of_cas_count(
    config: Callable[[str], str], said: str, ed25519: bool, rsa: bool, sha1: bool
) -> None:
    allowed = read(config(said)).ca_signatures
    found = ["ssh-ed25519" in allowed, "rsa-sha2-512" in allowed, "ssh-rsa" in allowed]
    assert found == [ed25519, rsa, sha1]


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
