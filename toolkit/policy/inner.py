"""What a program runs: the values that a look at its arguments gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.policy.words import Word

__all__ = ["Found", "Inner", "Source", "Undecided", "sourced"]


@dataclass(frozen=True, slots=True)
class Inner:
    """A command inside another one, as words."""

    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """A command inside another one, as the source of a shell."""

    text: str


@dataclass(frozen=True, slots=True)
class Undecided:
    """Why nobody can say what runs."""

    reason: str


Found = Inner | Source | Undecided


def sourced(words: Sequence[Word]) -> list[Found]:
    """Return what is undecided about a script that is run: a file is not, an input is."""
    for word in words:
        if word.text is None:
            return [Undecided(f"the script {word.shown} is known only when it runs")]
        if word.text.startswith(("/dev/", "/proc/")) or word.text == "-":
            return [Undecided("a shell runs what it reads from its input")]
    return []
