"""What `toolkit check` has found out about a target, and the same as JSON."""

from __future__ import annotations

import dataclasses
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.cli.weaker import Weakness, kill_promise, kind_of, weaknesses

if TYPE_CHECKING:
    from operations import TargetFacts
    from toolkit.cli.survey import Survey

__all__ = ["Report", "as_json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that was found out about a target.

    Attributes:
        target: As the user named it, less the values of environment variables.
        cwd: The folder that tools work in.
        facts: What connecting told; None if nothing did.
        found: What the target said of itself; None for memory, and if it said nothing.
        unasked: Why it could not be asked, or None.
        about: What its backend knows of it, by topic and name.
        connect_ms: Milliseconds until it was open.
        pings_ms: Milliseconds that each of some round trips took.
    """

    target: str
    cwd: str
    facts: TargetFacts | None
    found: Survey | None
    unasked: str | None
    about: dict[str, dict[str, Any]]
    connect_ms: float
    pings_ms: list[float]

    @property
    def round_trip_ms(self) -> float | None:
        """The median round trip."""
        return statistics.median(self.pings_ms) if self.pings_ms else None

    @property
    def weaker(self) -> list[Weakness]:
        """What is weaker there."""
        return [] if self.facts is None else weaknesses(self.facts, self.found, self.cwd)


def as_json(report: Report) -> dict[str, Any]:
    """Return a report with keys that stay; null is "not told", text is as the target said it."""
    facts, found = report.facts, report.found
    return {
        "target": report.target,
        "reachable": True,
        "kind": facts and kind_of(facts),
        "kill_promise": facts and kill_promise(facts),
        "python": {
            "version": found and found.python,
            "path": found and found.python_path,
            "ctypes": found and found.ctypes,
        },
        "shell": facts and facts.shell,
        "sh": found and found.sh,
        "programs": found.versions if found else {},
        "user": {
            "uid": found and found.uid,
            "name": found and found.user,
            "home": facts and facts.home,
            "umask": facts and f"{facts.umask:04o}",
        },
        "folder": {"path": report.cwd, "state": found and found.cwd},
        "temporary": {
            "path": found and found.temp,
            "writable": found and found.temp_writable,
            "free_bytes": found and found.temp_free,
        },
        "system": {
            "platform": facts and facts.platform,
            "kernel": found and found.kernel,
            "machine": found and found.machine,
            "machine_id": facts and facts.machine_id,
            "openat2": found and found.openat2,
        },
        "capabilities": sorted(facts.capabilities) if facts else [],
        "kept": dataclasses.asdict(found.kept) if found else None,
        "latency": {
            "connect_ms": round(report.connect_ms, 3),
            "round_trip_ms": report.round_trip_ms and round(report.round_trip_ms, 3),
            "round_trips": len(report.pings_ms),
        },
        "about": report.about,
        "answered_whole": bool(found and found.whole),
        "unasked": report.unasked,
        "weaker": [dataclasses.asdict(weakness) for weakness in report.weaker],
    }
