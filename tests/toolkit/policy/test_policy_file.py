"""Policies from TOML: what a file means, what a project may not do, what errors teach."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from toolkit.policy import (
    PROFILES,
    Limits,
    Place,
    PolicyFileError,
    load_policy_file,
    parse_policy_file,
    profile,
    tightened,
    user_policy_path,
)
from toolkit.policy.acts import acts_of
from toolkit.policy.decisions import decide

PLACE = Place(cwd="/w", home="/home/u")
OWN = b"""
profile = "careful"

[[rules]]
action = "allow"
commands = ["pytest", "git commit"]

[[rules]]
action = "deny"
tools = ["write", "edit"]
paths = ["**/.env"]
reason = "it holds secrets"

[limits]
calls_per_minute = 30
bash_seconds = 90.5

[redact]
env = ["API_KEY"]
"""


def action(file, command=None, path=None):
    tool = "bash" if command else "write"
    acts, _ = acts_of(tool, SimpleNamespace(command=command, path=path), PLACE)
    return decide(file.policies, tool, acts, PLACE).action


def test_a_file_is_rules_before_a_profile():
    """Its own come first."""
    file = parse_policy_file(OWN, "own.toml")
    assert action(file, command="pytest -q") == "allow"
    assert action(file, command="make") == "ask"
    assert action(file, command="ls") == "allow"
    assert action(file, path="x/.env") == "deny"
    assert file.limits == Limits(calls_per_minute=30, bash_seconds=90.5)
    assert file.redact_env == ("API_KEY",)


def test_an_empty_file_asks_and_an_empty_project_file_has_no_opinion():
    """Yours is about everything, a project's about what it names."""
    assert action(parse_policy_file(b"", "own.toml"), command="ls") == "ask"
    assert action(parse_policy_file(b"", "project.toml", project=True), command="ls") == "allow"


def test_a_project_file_may_only_tighten():
    """Whatever it says, what you deny or are asked about stays so; limits only shrink."""
    own = parse_policy_file(OWN, "own.toml")
    loose = b'default = "allow"\n[[rules]]\naction = "allow"\n[limits]\ncalls_per_minute = 1000'
    both = tightened(own, parse_policy_file(loose, "project.toml", project=True))
    assert action(both, command="make") == "ask"
    assert action(both, path="x/.env") == "deny"
    assert both.limits.calls_per_minute == 30
    strict = b'[[rules]]\naction = "deny"\ncommands = ["pytest"]\n[limits]\nbytes_written = 5'
    both = tightened(own, parse_policy_file(strict, "project.toml", project=True))
    assert action(both, command="pytest") == "deny"
    assert action(both, command="git commit") == "allow"
    assert (both.limits.bytes_written, both.limits.bash_seconds) == (5, 90.5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('profile = "carefull"', 'profile: "carefull" is not one of read-only, workspace'),
        ('default = "maybe"', 'default: "maybe" is not one of allow, ask, deny'),
        ("rule = 1", "rule: there is no such key; did you mean 'rules'"),
        ("rules = 1", "rules: 1 is not a list of tables; write [[rules]]"),
        ("[[rules]]", "rules[0].action: is missing; one of allow, ask, deny"),
        ('[[rules]]\naction = "Deny"', 'rules[0].action: "Deny" is not one of allow, ask, deny'),
        ('[[rules]]\naction = "deny"\ncommand = ["x"]', "rules[0].command: there is no such key"),
        ('[[rules]]\naction = "deny"\ncommands = "x"', 'rules[0].commands: "x" is not a list'),
        ('[[rules]]\naction = "deny"\naccess = ["exec"]', 'rules[0].access: "exec" is not one of'),
        ('[[rules]]\naction = "deny"\nunknown = 1', "rules[0].unknown: 1 is not true or false"),
        ('[[rules]]\naction = "deny"\ncommands = ["a|b"]', "rules[0]: 'a|b' has '|'"),
        (
            "[limits]\ncalls_per_minute = 0",
            "limits.calls_per_minute: 0 is not a whole number above",
        ),
        ("[limits]\nbytes_written = 1.5", "limits.bytes_written: 1.5 is not a whole number"),
        ("[limits]\nbash_seconds = nan", "limits.bash_seconds: "),
        ("[redact]\nenv = [1]", "redact.env: [1] is not a list of texts"),
        ("redact = 1", "redact: 1 is not a table; write [redact]"),
        ("x = ", "is no TOML"),
        ("\ud800", "is no TOML"),
    ],
)
def test_an_error_names_file_key_value_and_what_is_right(text, said):
    """One that is wrong is not half used."""
    with pytest.raises(PolicyFileError) as caught:
        parse_policy_file(text.encode("utf-8", "surrogatepass"), "p.toml")
    assert str(caught.value).startswith("p.toml: ")
    assert said in str(caught.value)


def test_a_file_is_read_from_this_machine(tmp_path):
    """And one that is not there is an error, not an empty policy."""
    path = tmp_path / "policy.toml"
    path.write_bytes(OWN)
    assert load_policy_file(path).policies[0].name == str(path)
    with pytest.raises(PolicyFileError, match="cannot be read: No such file"):
        load_policy_file(tmp_path / "none.toml")
    with pytest.raises(PolicyFileError, match="cannot be read"):
        load_policy_file(tmp_path)


def test_the_users_file_has_a_place(monkeypatch, tmp_path):
    """Where programs of this machine keep their settings."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = user_policy_path()
    assert path.name == "policy.toml"
    assert "remotehands" in path.parts


def test_profiles_say_honestly_what_they_are():
    """By name; what is advice is not called a wall."""
    assert list(PROFILES) == ["read-only", "workspace", "careful", "trusted"]
    assert "advice, not a wall" in profile("workspace").description
    assert "no sandbox" in profile("read-only").description
    with pytest.raises(ValueError, match="'strict' is no profile; there are read-only"):
        profile("strict")
