"""What a destination and a target's URL say, and what a line for any login shell is."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from backends.remote import bootstrap
from backends.ssh import SshBackend
from backends.ssh.address import Address, parse_address, parse_jumps
from backends.ssh.line import login_line, with_login_env, with_user
from backends.ssh.urls import connect_options
from backends.targets import open_target


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("web1", Address("web1")),
        ("me@web1.example:2222", Address("web1.example", "me", 2222)),
        ("ssh://me@web1", Address("web1", "me")),
        ("me@[::1]:22", Address("::1", "me", 22)),
        ("fe80::1%eth0", Address("fe80::1%eth0")),
        ("a\\b@web1", Address("web1", "a\\b")),
    ],
)
def test_an_address(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "text",
    [
        "", "@web1", "me@", "web1:", "web1:x", "web1:0", "web1:70000", "-oProxyCommand=x", "we b",
        "$(id)@web1", "-x@web1", "web1;id", "web1\n", "[::1", "`id`", "a@b@c",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no (user|host)'s name|a port is|password"):
        parse_address(text)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    for use in (parse_address, connect_options):
        with pytest.raises(ValueError, match="password") as caught:
            use("ssh://me:s3cr3t@web1/dir")
        assert "s3cr3t" not in str(caught.value)


def test_jumps() -> None:
    assert parse_jumps("a, me@b:22") == (Address("a"), Address("b", "me", 22))
    assert parse_jumps("none") == ()


def test_a_url() -> None:
    url = "ssh://me@web1:2222/srv/a%20b?via=j1,me@j2&user=app&env=A=1&env=B=2&login_env=yes"
    assert connect_options(url) == {
        "destination": "me@web1:2222",
        "cwd": "/srv/a b",
        "via": "j1,me@j2",
        "become_user": "app",
        "env": {"A": "1", "B": "2"},
        "login_env": True,
    }
    assert connect_options("ssh://web1/~/x")["cwd"] == "~/x"
    assert "cwd" not in connect_options("ssh://web1")


@pytest.mark.parametrize("query", ["vai=x", "env=A", "login_env=perhaps", "via=a,$b", "user="])
def test_a_url_that_says_something_else_is_refused(query: str) -> None:
    with pytest.raises(ValueError, match=r"no option|env is|login_env is|no host|is empty"):
        connect_options(f"ssh://web1/?{query}")


def test_the_target_is_named_as_the_user_did() -> None:
    assert isinstance(open_target("ssh://me@web1:22/dir", cwd="/x"), SshBackend)
    with pytest.raises(ValueError, match="become_user"):
        SshBackend.connect("web1", become_user="a b")


ARGVS = [
    ["printf", "[%s]\n", "it's", "a\\b!c", "two\nlines", '$HOME `x` "q"', "é", "", "*"],
    ["printf", "%s", "plain words"],
]
SHELLS = ["sh", "bash", "dash", "ksh", "zsh", "fish", "csh", "tcsh"]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("argv", ARGVS)
def test_any_login_shell_hands_the_arguments_on(shell: str, argv: list[str]) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    expected = subprocess.run(argv, capture_output=True, check=True).stdout
    for line in (login_line(argv), login_line(with_login_env(argv))):
        done = subprocess.run(
            [program, "-c", line],
            capture_output=True,
            timeout=30,
            check=False,
            env={"PATH": "/usr/bin:/bin", "SHELL": program, "HOME": "/nonexistent"},
        )
        assert done.stdout == expected, done.stderr


def test_the_engines_line_is_plain() -> None:
    line = login_line(with_user(bootstrap.shell_argv(), "app"))
    assert line.startswith("exec sudo -n -H -u app -- /bin/sh -c")
    assert not any(odd in line for odd in "\\!\n")
