"""Policies from TOML files: yours, and a project's, which may only tighten it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from toolkit.json_values import preview
from toolkit.policy.limits import Limits
from toolkit.policy.profiles import PROFILES
from toolkit.policy.rules import ACCESSES, ACTIONS, Action, Policy, Rule

__all__ = [
    "PolicyFile",
    "PolicyFileError",
    "load_policy_file",
    "parse_policy_file",
    "tightened",
    "user_policy_path",
]

_MOST_BYTES = 1024 * 1024
_TOP = ("profile", "default", "description", "rules", "limits", "redact")
_RULE_LISTS = ("tools", "access", "paths", "commands", "targets")
_RULE = ("action", *_RULE_LISTS, "tree", "unknown", "reason", "instead")
_LIMITS = ("calls_per_minute", "bash_seconds", "bytes_written")


class PolicyFileError(ValueError):
    """A policy file cannot be used.

    Args:
        file: The file.
        key: Where in it, as "rules[0].action"; "" for the whole file.
        problem: What is wrong, with the value, and what would be right.
    """

    def __init__(self, file: str, key: str, problem: str) -> None:
        super().__init__(file, key, problem)
        self.file = file
        self.key = key
        self.problem = problem

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.key, self.problem) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFile:
    """What policy files say.

    Attributes:
        policies: Each has a veto: the strictest word counts.
        limits: Budgets.
        redact_env: Names of environment variables whose values are redacted.
    """

    policies: tuple[Policy, ...]
    limits: Limits = field(default_factory=Limits)
    redact_env: tuple[str, ...] = ()


def user_policy_path() -> Path:
    """Return where a user's own policy file belongs on this machine, whether there is one or not.

    Raises:
        ImportError: The extra `policy` is not installed.
    """
    import platformdirs

    return platformdirs.user_config_path("remotehands") / "policy.toml"


def load_policy_file(path: Path | str, *, project: bool = False) -> PolicyFile:
    """Read a policy file of this machine.

    Args:
        path: The file.
        project: Whether it came with a project rather than from the user. It has no opinion on
            what its rules do not name, where yours asks unless told otherwise.

    Raises:
        PolicyFileError: It cannot be read, or something in it has no meaning.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise PolicyFileError(str(path), "", f"cannot be read: {error.strerror}") from error
    if len(data) > _MOST_BYTES:
        raise PolicyFileError(str(path), "", f"has more than {_MOST_BYTES} bytes")
    return parse_policy_file(data, str(path), project=project)


def parse_policy_file(data: bytes, name: str, *, project: bool = False) -> PolicyFile:
    """Read the content of a policy file; as `load_policy_file`.

    Args:
        data: The content.
        name: What errors and denials call the file.
        project: Whether it came with a project.
    """
    try:
        table = tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise PolicyFileError(name, "", f"is no TOML: {error}") from error
    reader = _Reader(name)
    reader.known(table, "", _TOP)
    rules = reader.rules(table.get("rules", []))
    default: Action = "allow" if project else "ask"
    if "profile" in table:
        base = PROFILES[reader.one_of(table["profile"], "profile", tuple(PROFILES))]
        rules += base.rules
        default = base.default
    if "default" in table:
        default = reader.action(table["default"], "default")
    policy = Policy(
        name=name,
        rules=rules,
        default=default,
        description=reader.text(table.get("description", ""), "description"),
    )
    redact = reader.table(table.get("redact", {}), "redact")
    reader.known(redact, "redact.", ("env",))
    return PolicyFile(
        policies=(policy,),
        limits=reader.limits(table.get("limits", {})),
        redact_env=reader.texts(redact.get("env", []), "redact.env"),
    )


def tightened(user: PolicyFile, *others: PolicyFile) -> PolicyFile:
    """Return what `user` says, made stricter by what the others (a project's) say.

    For every act the strictest word of all counts, and the smallest of each limit: whatever the
    others hold, nothing that `user` denies or asks about is allowed by them.
    """
    limits = user.limits
    for other in others:
        limits = limits.tightened_by(other.limits)
    files = (user, *others)
    return replace(
        user,
        policies=tuple(policy for file in files for policy in file.policies),
        limits=limits,
        redact_env=tuple(dict.fromkeys(name for file in files for name in file.redact_env)),
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Checks values; every complaint names the file, the key, the value and what would be right."""

    file: str

    def wrong(self, key: str, value: Any, wanted: str) -> PolicyFileError:
        shown = preview(value, max_chars=80)
        return PolicyFileError(self.file, key, f"{shown} is not {wanted}")

    def known(self, table: dict[str, Any], at: str, names: tuple[str, ...]) -> None:
        from toolkit.arguments import did_you_mean

        for name in table:
            if name not in names:
                hint = did_you_mean(name, names)
                known = ", ".join(names)
                problem = f"there is no such key{hint} (known: {known})"
                raise PolicyFileError(self.file, f"{at}{name[:80]}", problem)

    def table(self, value: Any, key: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(key, value, f"a table; write [{key}]")
        return value

    def text(self, value: Any, key: str) -> str:
        if not isinstance(value, str):
            raise self.wrong(key, value, "a text")
        return value

    def texts(self, value: Any, key: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.wrong(key, value, 'a list of texts, as ["a", "b"]')
        return tuple(value)

    def one_of(self, value: Any, key: str, names: tuple[str, ...]) -> str:
        if not isinstance(value, str) or value not in names:
            raise self.wrong(key, value, f"one of {', '.join(names)}")
        return value

    def action(self, value: Any, key: str) -> Action:
        self.one_of(value, key, ACTIONS)
        return next(action for action in ACTIONS if action == value)

    def rules(self, value: Any) -> tuple[Rule, ...]:
        if not isinstance(value, list):
            raise self.wrong("rules", value, "a list of tables; write [[rules]]")
        return tuple(self.rule(each, f"rules[{number}]") for number, each in enumerate(value))

    def rule(self, value: Any, at: str) -> Rule:
        table = self.table(value, at)
        self.known(table, f"{at}.", _RULE)
        if "action" not in table:
            known = ", ".join(ACTIONS)
            raise PolicyFileError(self.file, f"{at}.action", f"is missing; one of {known}")
        lists = {
            name: self.texts(table[name], f"{at}.{name}") for name in _RULE_LISTS if name in table
        }
        for access in lists.get("access", ()):
            self.one_of(access, f"{at}.access", ACCESSES)
        flags = {name: table.get(name, False) for name in ("tree", "unknown")}
        for name, flag in flags.items():
            if not isinstance(flag, bool):
                raise self.wrong(f"{at}.{name}", flag, "true or false")
        try:
            return Rule(
                action=self.action(table["action"], f"{at}.action"),
                tools=lists.get("tools", ()),
                access=lists.get("access", ()),
                paths=lists.get("paths", ()),
                commands=lists.get("commands", ()),
                targets=lists.get("targets", ()),
                tree=flags["tree"],
                unknown=flags["unknown"],
                reason=self.text(table.get("reason", ""), f"{at}.reason"),
                instead=self.text(table.get("instead", ""), f"{at}.instead"),
            )
        except PolicyFileError:
            raise
        except ValueError as error:
            raise PolicyFileError(self.file, at, str(error)) from error

    def limits(self, value: Any) -> Limits:
        table = self.table(value, "limits")
        self.known(table, "limits.", _LIMITS)
        for name, number in table.items():
            whole = name != "bash_seconds"
            right = isinstance(number, int if whole else int | float)
            if not right or isinstance(number, bool) or not 0 < number < float("inf"):
                wanted = f"a {'whole ' if whole else ''}number above 0"
                raise self.wrong(f"limits.{name}", number, wanted)
        return Limits(**table)
