"""What the profiles say of hundreds of commands, dangerous ones and their harmless twins."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from toolkit.policy import PROFILES, Place
from toolkit.policy.acts import acts_of
from toolkit.policy.decisions import decide

PLACE = Place(cwd="/home/u/work", home="/home/u")
LETTERS = {"allow": "a", "ask": "?", "deny": "d"}


def table() -> list[tuple[str, str, str]]:
    """Return (section, verdicts, command) for every row."""
    rows, section = [], ""
    for line in Path(__file__).with_name("commands.txt").read_text().split("\n"):
        if line.startswith("# "):
            section = line[2:]
        elif line:
            verdicts, _, command = line.partition(" ")
            for escape, meant in (("\\\\", "\0"), ("\\n", "\n"), ("\\r", "\r"), ("\0", "\\")):
                command = command.replace(escape, meant)
            rows.append((section, verdicts, command))
    return rows


def verdicts(command: str) -> str:
    acts, _ = acts_of("bash", SimpleNamespace(command=command), PLACE)
    decisions = [decide([policy], "bash", acts, PLACE) for policy in PROFILES.values()]
    return "".join(LETTERS[decision.action] for decision in decisions)


def test_every_command_gets_the_verdicts_of_the_table():
    """All of them at once, so that a change shows whole."""
    wrong = [
        f"{command!r}: {found}, not {wanted}"
        for _, wanted, command in table()
        if (found := verdicts(command)) != wanted
    ]
    assert wrong == []


def test_the_table_is_large_and_has_both_sides():
    """200 rows were promised."""
    sections = [section for section, _, _ in table()]
    assert len(sections) >= 300
    assert sections.count("harmless") >= 100


def test_nothing_dangerous_is_allowed_but_by_trusted():
    """read-only and workspace deny, careful at least asks."""
    for section, wanted, command in table():
        if section.startswith("dangerous"):
            assert wanted[0] == "d", command
            assert wanted[1] in "d?", command
            assert wanted[2] in "d?", command


def test_what_is_harmless_may_run_in_the_workspace():
    """A policy that stops everything is switched off."""
    assert {wanted[1] for section, wanted, _ in table() if section == "harmless"} == {"a"}


def test_stricter_profiles_are_never_looser_for_a_command():
    """read-only allows nothing that careful asks about; careful nothing that trusted denies."""
    order = "a?d"
    for _, wanted, command in table():
        read_only, _, careful, trusted = (order.index(letter) for letter in wanted)
        assert read_only >= careful >= trusted, command
