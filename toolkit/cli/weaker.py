"""Which promises are weaker on a target, why, and what would mend each."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from operations import TargetFacts
    from toolkit.cli.survey import Survey

__all__ = ["Weakness", "kill_promise", "kind_of", "weaknesses"]

_LITTLE_SPACE = 64 << 20
_FOLDER_STATES = {
    "missing": "there is no such folder",
    "file": "it is not a folder",
    "closed": "it may not be entered",
    "read-only": "nothing can be written there",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakness:
    """One promise that a target keeps less of.

    Attributes:
        promise: A stable word for it.
        reason: What is missing there and what follows, as a sentence part.
        remedy: What would mend it, as a sentence part.
    """

    promise: str
    reason: str
    remedy: str


_SHELL = "let this user log in with a shell"
_ONLY_FILES = (
    Weakness(
        promise="commands",
        reason="this login gives only SFTP: files can be handled, but bash is refused",
        remedy=_SHELL,
    ),
    Weakness(
        promise="search",
        reason="grep and find fetch what they search, at most 256 MiB and 500,000 names",
        remedy=_SHELL,
    ),
    Weakness(
        promise="versions",
        reason="SFTP tells no inode, so a file that was replaced by its equal counts as the same",
        remedy=_SHELL,
    ),
)


def kind_of(facts: TargetFacts) -> str:
    """Return what does the work there: "memory", "sftp", "shell" (lanes of sh) or "engine"."""
    if facts.platform == "memory":
        return "memory"
    if "sftp_only" in facts.capabilities:
        return "sftp"
    return "shell" if "shell_fallback" in facts.capabilities else "engine"


def kill_promise(facts: TargetFacts) -> str:
    """Return how well a command can be ended there: "complete", "weaker" or "none" to end."""
    if kind_of(facts) in ("memory", "sftp"):
        return "none"
    whole = {"engine": "subreaper" in facts.capabilities}.get(kind_of(facts), False)
    return "complete" if whole else "weaker"


def weaknesses(facts: TargetFacts, found: Survey | None, cwd: str) -> list[Weakness]:
    """Return what is weaker on a target, the worst first.

    Args:
        facts: What connecting told.
        found: What the target said of itself; None if it could not be asked.
        cwd: The folder that tools work in.
    """
    if facts.platform == "memory":
        reason = "commands are scripted; no program ever runs"
        return [Weakness(promise="commands", reason=reason, remedy="take any other target")]
    if kind_of(facts) == "sftp":
        return list(_ONLY_FILES)
    found_weak = [*_commands(facts, found), *_searches(facts)]
    if found is None or not found.whole:
        reason = "the target did not say all of what it has, so more may be weaker"
        found_weak.append(
            Weakness(promise="survey", reason=reason, remedy="see that commands run there at all")
        )
    if found is not None:
        found_weak += _folders(found, cwd)
    return found_weak


def _commands(facts: TargetFacts, found: Survey | None) -> Iterator[Weakness]:
    if facts.shell is None:
        yield Weakness(
            promise="commands", reason="there is no shell; bash is refused", remedy="install bash"
        )
        return
    if "shell_fallback" in facts.capabilities:
        yield Weakness(
            promise="kill",
            reason="no Python, so a process that does setsid and scrubs its environment may "
            "survive a kill, and one whose connection is cut unnoticed goes on",
            remedy="install python3 (3.6 or newer)",
        )
        if "kept_output" not in facts.capabilities:
            yield Weakness(
                promise="kept output",
                reason="no tee, so only the end of a long output can be seen",
                remedy="install coreutils",
            )
    elif "subreaper" not in facts.capabilities:
        yield Weakness(promise="kill", **_no_subreaper(facts, found))
    if facts.shell != "bash":
        name = posixpath.basename((found and found.sh) or "") or facts.shell
        what = "sh" if name == "sh" else f"sh, which is {name}"
        yield Weakness(
            promise="shell",
            reason=f"no bash, so commands run in {what}: arrays, [[ ]] and pipefail may be missing",
            remedy="install bash",
        )


def _no_subreaper(facts: TargetFacts, found: Survey | None) -> dict[str, str]:
    survives = "a process that does setsid and scrubs its environment may survive a kill"
    if not facts.platform.startswith("linux"):
        return {
            "reason": f"{facts.platform} has no subreaper, so {survives}",
            "remedy": "use a target with Linux",
        }
    if found is not None and found.ctypes is False:
        return {
            "reason": f"Python there has no ctypes, so {survives}",
            "remedy": "install python3 whole (python3-minimal is not)",
        }
    return {
        "reason": f"the kernel did not grant a subreaper, so {survives}",
        "remedy": "allow prctl(PR_SET_CHILD_SUBREAPER) there",
    }


def _searches(facts: TargetFacts) -> Iterator[Weakness]:
    if "shell_fallback" in facts.capabilities:
        yield Weakness(
            promise="search",
            reason="no Python, so grep fetches what it searches, and leaves out files over 16 MiB",
            remedy="install python3 (3.6 or newer)",
        )
    elif "rg" not in facts.capabilities:
        yield Weakness(
            promise="search speed",
            reason="no rg, so grep and find walk in Python: the same answers, later",
            remedy="install ripgrep",
        )


def _folders(found: Survey, cwd: str) -> Iterator[Weakness]:
    if found.cwd in _FOLDER_STATES:
        yield Weakness(
            promise="working folder",
            reason=f"{cwd}: {_FOLDER_STATES[found.cwd]}",
            remedy="name another folder with --cwd, or make that one writable",
        )
    if found.temp_writable is False:
        yield Weakness(
            promise="kept output",
            reason=f"nothing can be written to {found.temp}, so long output may not be kept",
            remedy="set TMPDIR to a folder that can be written",
        )
    elif found.temp_free is not None and found.temp_free < _LITTLE_SPACE:
        yield Weakness(
            promise="kept output",
            reason=f"{found.temp} has {found.temp_free >> 20} MiB left, so long output may not "
            "be kept whole",
            remedy="make room there, or set TMPDIR to another folder",
        )
