"""Answers that hold for more than one call: "always, for this pattern, in this run"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.policy.effects import KNOWN_PROGRAMS
from toolkit.policy.patterns import command_pattern
from toolkit.policy.wrappers import runs_others

if TYPE_CHECKING:
    from toolkit.policy.acts import Act

__all__ = ["Grant", "grant_for"]

#: Programs whose first operand says what they do.
_WITH_SUBCOMMANDS = frozenset(
    {"apt", "brew", "cargo", "gh", "git", "go", "npm", "pip", "pnpm", "poetry", "yarn"}
)


@dataclass(frozen=True, slots=True)
class Grant:
    """One kind of act of one tool that need not be asked about again.

    Attributes:
        tool: The tool.
        pattern: A pattern for commands, or "" if just acts in the same words are meant.
        shown: The act in words.
        source: The whole command that it was in, "" for what was no command.
    """

    tool: str
    pattern: str
    shown: str
    source: str = ""

    def fits(self, tool: str, act: Act) -> bool:
        """Whether the act is one of these."""
        if tool != self.tool:
            return False
        if not self.pattern or act.kind != "command" or act.command is None:
            return (act.shown, act.source) == (self.shown, self.source)
        return command_pattern(self.pattern).fits(act.command, certain=True)

    def describe(self) -> str:
        """Return what is granted, in words."""
        return f"run `{self.pattern} ...`" if self.pattern else self.shown


def grant_for(tool: str, act: Act) -> Grant:
    """Return what "always" means for an act.

    A program is granted with any arguments, one with subcommands for that subcommand; but what
    changes files or runs other programs, and what cannot be decided, only in the same words.
    """
    command = act.command
    if act.kind != "command" or command is None:
        return Grant(tool, "", act.shown, act.source)
    name, pattern = command.name, ""
    if name in _WITH_SUBCOMMANDS:
        first = command.words[0].text if command.words else None
        if first and first.isidentifier():
            pattern = f"{name} {first}"
    elif (
        name not in KNOWN_PROGRAMS
        and not runs_others(name)
        and name.replace("-", "_").isidentifier()
    ):
        pattern = name
    return Grant(tool, pattern, act.shown, act.source)
