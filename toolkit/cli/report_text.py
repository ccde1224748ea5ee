"""A report of `toolkit check` for people."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any

from toolkit.cli.shown import shown, styled
from toolkit.cli.weaker import kill_promise, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from operations import TargetFacts
    from toolkit.cli.report import Report
    from toolkit.cli.survey import Survey

__all__ = ["as_text"]

_LABEL = 11
_WIDTH = 84
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")


def as_text(report: Report) -> Iterator[str]:
    """Give the lines of a report; nothing that the target has said can act on a terminal."""
    yield styled(shown(report.target), bold=True)
    yield ""
    rows = [("engine", _engine(report)), *_rows(report), *_latency(report)]
    for topic, facts in report.about.items():
        rows += [("", ""), *_topic(topic, facts)]
    for label, value in rows:
        if value or not label:
            yield f"  {styled(label.ljust(_LABEL), dim=True)} {value}".rstrip()
    if report.unasked is not None:
        yield f"\n  {shown(report.unasked)}"
    yield ""
    weaker = report.weaker
    yield styled("Weaker here:" if weaker else "Nothing is weaker here.", bold=True)
    for weakness in weaker:
        yield f"  - {shown(weakness.reason, 400)}."
        yield styled(f"    To mend it: {shown(weakness.remedy)}.", dim=True)


def _engine(report: Report) -> str:
    facts, found = report.facts, report.found
    if facts is None:
        return "not known"
    kind = kind_of(facts)
    if kind == "memory":
        return "a tree in memory"
    if kind == "sftp":
        return "none; SFTP, since nothing can be run there: only files can be handled"
    if kind == "shell":
        return "none; lanes of sh, since no Python 3.6 or newer is there"
    if found is None or found.python is None:
        return "in Python"
    where = f" ({shown(found.python_path)})" if found.python_path else ""
    ctypes = "" if found.ctypes is None else f", {'with' if found.ctypes else 'without'} ctypes"
    return f"in Python {shown(found.python)}{where}{ctypes}"


def _rows(report: Report) -> list[tuple[str, str]]:
    facts, found = report.facts, report.found
    if facts is None:
        return []
    kill = {
        "complete": "complete: nothing that a command starts is lost sight of",
        "weaker": "weaker, see below",
        "none": "",
    }[kill_promise(facts)]
    if found is None:
        return [("kill", kill), ("home", shown(facts.home)), ("folder", shown(report.cwd))]
    programs = ", ".join(
        f"{name} {found.versions[name] or 'of unknown version'}"
        if name in found.versions
        else f"no {name}"
        for name in ("rg", "git", "tar")
    )
    name = f" ({shown(found.user)})" if found.user else ""
    user = f"{'not known' if found.uid is None else found.uid}{name}, home {shown(facts.home)}"
    return [
        ("kill", kill),
        ("shell", _shell(facts, found)),
        ("programs", programs),
        ("user", f"{user}, umask {facts.umask:04o}"),
        ("folder", f"{shown(report.cwd)}, {found.cwd or 'not known'}"),
        ("temporary", _temporary(found)),
        ("system", _system(found)),
        ("kept", _kept(found)),
    ]


def _shell(facts: TargetFacts, found: Survey) -> str:
    name = facts.shell or "none"
    parts = [f"{shown(name)} {found.versions.get(name, '')}".rstrip()]
    if found.sh:
        parts.append(f"sh is {shown(posixpath.basename(found.sh))}")
    return ", ".join(parts)


def _temporary(found: Survey) -> str:
    if not found.temp:
        return ""
    if found.temp_writable is False:
        return f"{shown(found.temp)}, nothing can be written there"
    free = "" if found.temp_free is None else f", {_size(found.temp_free)} free"
    return shown(found.temp) + free


def _system(found: Survey) -> str:
    said = " ".join(shown(part) for part in (found.system, found.kernel, found.machine) if part)
    if found.openat2 is None:
        return said
    return f"{said}, {'with' if found.openat2 else 'without'} openat2"


def _kept(found: Survey) -> str:
    kept = found.kept
    told = "no output of commands"
    if kept.files:
        many = "1 output of a command" if kept.files == 1 else f"{kept.files} outputs of commands"
        told = f"{many} ({_size(kept.bytes)}) in {', '.join(map(shown, kept.folders))}"
    if kept.removed:
        return f"{told}; {kept.removed} removed"
    return f"{told}; --remove-kept removes what nobody holds" if kept.files else told


def _latency(report: Report) -> list[tuple[str, str]]:
    if report.round_trip_ms is None:
        trip = "no round trip came back"
    else:
        trip = f"{report.round_trip_ms:.2f} ms a round trip"
        trip += f" (median of {len(report.pings_ms)}, slowest {max(report.pings_ms):.2f})"
    return [("latency", f"{trip}, {report.connect_ms:.0f} ms to connect")]


def _topic(topic: str, facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a backend knows, as few lines of which `topic` labels the first."""
    lines: list[str] = []
    for name, value in facts.items():
        told = f"{shown(name.replace('_', ' '))} {shown(_SHA256.sub(_short, _plain(name, value)))}"
        if lines and len(lines[-1]) + len(told) < _WIDTH:
            lines[-1] += f", {told}"
        else:
            lines.append(told)
    return [(topic if number == 0 else "", line) for number, line in enumerate(lines)]


def _plain(name: str, value: Any) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(map(str, value))
    if name in ("memory", "swap") and isinstance(value, int):
        return _size(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _short(digest: re.Match[str]) -> str:
    return digest[0][:12]


def _size(count: int) -> str:
    size, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
