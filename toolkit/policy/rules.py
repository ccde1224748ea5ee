"""Rules, and policies made of them. Pure."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from toolkit.policy.acts import Place
from toolkit.policy.patterns import CommandPattern, PathGlob, command_pattern, path_globs

if TYPE_CHECKING:
    from toolkit.policy.acts import Act

__all__ = ["ACCESSES", "ACTIONS", "Action", "Policy", "Rule", "any_fits"]

Action = Literal["allow", "ask", "deny"]
#: From the mildest to the strictest.
ACTIONS: tuple[Action, ...] = ("allow", "ask", "deny")
ACCESSES = ("read", "write", "delete", "run")
#: As many patterns or rules are named in a message.
MOST_HINTS = 6
_NOWHERE = Place(cwd="/", home="/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What is to happen to the acts that it fits; every criterion that is given must fit.

    Attributes:
        action: "allow", "ask" or "deny".
        tools: Names of tools, with `*` and `?`; empty for any.
        access: "read", "write", "delete" (which is a "write" too) and "run"; empty for any.
        paths: Globs for canonical paths, see `path_glob`. A rule that asks or denies also fits
            what is done to all of a folder that such a path is in, and a command that names one.
        commands: Patterns for parsed commands, see `command_pattern`.
        targets: Globs for the target's URL; empty for any.
        tree: True for what is done to a path with all beneath it, as `chmod -R` does.
        unknown: True for acts of which nobody can say what they do. A rule without it fits those
            only if it has neither access, paths nor commands, or if it asks or denies what the
            program of one is.
        reason: Why, for the model.
        instead: What would be allowed, for the model.

    Raises:
        ValueError: Something in it has no meaning; the text names it.
    """

    action: Action
    tools: tuple[str, ...] = ()
    access: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    tree: bool = False
    unknown: bool = False
    reason: str = ""
    instead: str = ""
    _globs: dict[tuple[str, str], PathGlob] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _patterns: dict[str, list[CommandPattern]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise ValueError(f"action: {self.action!r} is none of {', '.join(ACTIONS)}")
        for name in ("tools", "access", "paths", "commands", "targets"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise ValueError(f"{name}: {value!r} is one text; give a tuple of them")
            object.__setattr__(self, name, tuple(value))
        for access in self.access:
            if access not in ACCESSES:
                raise ValueError(f"access: {access!r} is none of {', '.join(ACCESSES)}")
        if (self.paths or self.tree) and (self.commands or self.unknown):
            one = "paths" if self.paths else "tree"
            other = "commands" if self.commands else "unknown"
            raise ValueError(f"{one}: a rule has {one} or {other}, not both; make two of it")
        self._globs_at(_NOWHERE)
        for text in self.commands:
            pattern = command_pattern(text)
            self._patterns.setdefault(pattern.literal_program, []).append(pattern)

    def fits(self, tool: str, act: Act, place: Place) -> bool:
        """Whether the rule is about this act of a call of `tool`."""
        return self.concerns(tool, place.target) and self.fits_act(act, place)

    def concerns(self, tool: str, target: str) -> bool:
        """Whether the rule can be about any act of this tool on this target."""
        if self.tools and not any_fits(self.tools, tool):
            return False
        return not self.targets or any_fits(self.targets, target)

    def fits_act(self, act: Act, place: Place) -> bool:
        """Whether the rule, if it concerns the tool and target, is about this act."""
        if act.kind == "path" and (self.commands or self.unknown):
            return False
        if self.unknown or act.kind == "unknown":
            return self._fits_unknown(act)
        if self.commands and not self._fits_command(act):
            return False
        if self.tree and not act.tree:
            return False
        if self.paths and act.command is not None and self.action != "allow":
            reading = not self.access or "read" in self.access
            return reading and any(self._names(path, place) for path in act.named)
        if self.access and not (
            act.access in self.access or (act.access == "delete" and "write" in self.access)
        ):
            return False
        return not self.paths or self._fits_path(act, place)

    def _fits_unknown(self, act: Act) -> bool:
        if act.kind != "unknown":
            return False
        if self.commands:
            return (self.unknown or self.action != "allow") and self._fits_command(act)
        return self.unknown or not (self.access or self.paths or self.tree)

    def _fits_command(self, act: Act) -> bool:
        command = act.command
        if command is None:
            return False
        certain = self.action == "allow"
        names = [command.name]
        if not certain and "/" in command.name:
            names.append(command.name.rpartition("/")[2])
        return any(
            pattern.fits_arguments(command, certain=certain)
            for name in names
            for pattern in self._patterns.get(name, ())
        ) or any(pattern.fits(command, certain=certain) for pattern in self._patterns.get("", ()))

    def _fits_path(self, act: Act, place: Place) -> bool:
        if act.path is None:
            return False
        if self._names(act.path, place):
            return True
        wild = min((at for each in "*?[" if (at := act.path.find(each)) >= 0), default=-1)
        if self.action == "allow" or not (act.tree or wild >= 0):
            return False
        folder = act.path if wild < 0 else act.path[:wild].rpartition("/")[0]
        return self._globs_at(place).may_fit_beneath(folder or "/")

    def _names(self, path: str, place: Place) -> bool:
        return self._globs_at(place).fits(path)

    def _globs_at(self, place: Place) -> PathGlob:
        key = (place.cwd, place.home)
        if key not in self._globs:
            self._globs[key] = path_globs(self.paths, *key)
        return self._globs[key]

    def describe(self) -> str:
        """Return the rule in words: "deny write, delete of /etc/**"."""
        parts: list[str] = []
        if self.tools:
            parts.append(f"by {', '.join(self.tools)}")
        if self.commands:
            parts.append(f"of {', '.join(f'`{each}`' for each in self.commands[:MOST_HINTS])}")
        if self.paths:
            parts.append(f"of {', '.join(self.paths[:MOST_HINTS])}")
        if self.tree:
            parts.append("with all beneath it")
        if self.unknown:
            parts.append("of what cannot be decided")
        if self.targets:
            parts.append(f"on {', '.join(self.targets)}")
        return " ".join([self.action, ", ".join(self.access) or "any use", *parts])


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Rules in order; the first that fits an act decides on it.

    Attributes:
        name: What messages call it: "profile careful", "policy.toml".
        rules: In order.
        default: For an act that no rule fits.
        description: What it is good for, and what it is not.
    """

    name: str
    rules: tuple[Rule, ...] = ()
    default: Action = "deny"
    description: str = ""
    _narrowed: dict[tuple[str, str], list[tuple[int, Rule]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        if self.default not in ACTIONS:
            raise ValueError(f"default: {self.default!r} is none of {', '.join(ACTIONS)}")

    def concerning(self, tool: str, target: str) -> list[tuple[int, Rule]]:
        """Return the rules that can be about this tool and target, each with its number from 1."""
        key = (tool, target)
        if key not in self._narrowed:
            numbered = enumerate(self.rules, start=1)
            self._narrowed[key] = [each for each in numbered if each[1].concerns(*key)]
        return self._narrowed[key]


def any_fits(patterns: tuple[str, ...], name: str) -> bool:
    """Whether a name fits one of several patterns with `*` and `?`."""
    return name in patterns or any(fnmatch.fnmatchcase(name, each) for each in patterns)
