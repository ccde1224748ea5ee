"""Policies: what a call may do, who is asked, what is logged, what is hidden.

A policy guards against mistakes; the boundary is the sandbox. Names are loaded when they are first
used, and the parser of commands when the first command is.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.policy.acts import Act, Place
    from toolkit.policy.audit import AuditError, AuditLog, Verified, verify
    from toolkit.policy.commands import ParsedCommand, SimpleCommand, Unknown, parse_command
    from toolkit.policy.decisions import Decision
    from toolkit.policy.hook import Answer, Ask, PolicyHook, Question, place_of
    from toolkit.policy.limits import Limits
    from toolkit.policy.policy_file import (
        PolicyFile,
        PolicyFileError,
        load_policy_file,
        parse_policy_file,
        tightened,
        user_policy_path,
    )
    from toolkit.policy.profiles import PROFILES, profile
    from toolkit.policy.redaction import Redactor
    from toolkit.policy.rules import Policy, Rule

_HOMES = {
    "acts": ("Act", "Place"),
    "audit": ("AuditError", "AuditLog", "Verified", "verify"),
    "commands": ("ParsedCommand", "SimpleCommand", "Unknown", "parse_command"),
    "decisions": ("Decision",),
    "hook": ("Answer", "Ask", "PolicyHook", "Question", "place_of"),
    "limits": ("Limits",),
    "policy_file": (
        "PolicyFile",
        "PolicyFileError",
        "load_policy_file",
        "parse_policy_file",
        "tightened",
        "user_policy_path",
    ),
    "profiles": ("PROFILES", "profile"),
    "redaction": ("Redactor",),
    "rules": ("Policy", "Rule"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "PROFILES",
    "Act",
    "Answer",
    "Ask",
    "AuditError",
    "AuditLog",
    "Decision",
    "Limits",
    "ParsedCommand",
    "Place",
    "Policy",
    "PolicyFile",
    "PolicyFileError",
    "PolicyHook",
    "Question",
    "Redactor",
    "Rule",
    "SimpleCommand",
    "Unknown",
    "Verified",
    "load_policy_file",
    "parse_command",
    "parse_policy_file",
    "place_of",
    "profile",
    "tightened",
    "user_policy_path",
    "verify",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
