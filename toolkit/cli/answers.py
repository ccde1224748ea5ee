"""Answers of many targets as lines, each of which tells which target it is from."""

from __future__ import annotations

import json
from collections.abc import Iterable

from toolkit import Event, HostMessage, MessageEnd, MessageStart, event_to_dict
from toolkit.cli.call import message_text
from toolkit.cli.hosts import labels
from toolkit.cli.shown import named, shown, styled

__all__ = ["Prefixed", "as_events", "as_json", "event_line"]


class Prefixed:
    """Gives each answer as lines that begin with the host's name; nothing in them acts.

    Args:
        urls: All targets.
    """

    def __init__(self, urls: Iterable[str]) -> None:
        names = labels(list(urls))
        width = max(map(len, names))
        self._names = {url: name.ljust(width) for url, name in zip(urls, names, strict=True)}

    def text(self, answer: HostMessage) -> str:
        """Return the lines of one answer."""
        colour = "red" if answer.message.is_error else "green"
        name = styled(self._names[answer.host], fg=colour)
        lines = message_text(answer.message).rstrip("\n").split("\n")
        return "\n".join(f"{name} | {_plain(line)}".rstrip() for line in lines)


def _plain(line: str) -> str:
    line = line.rstrip("\r").expandtabs()
    return shown(line, len(line))


def as_json(answer: HostMessage) -> str:
    """Return an answer as a JSON object."""
    told = {"target": named(answer.host), "message": answer.message.to_dict()}
    return json.dumps(told, ensure_ascii=False, allow_nan=False)


def as_events(answer: HostMessage) -> str:
    """Return an answer as the events that tell of it, one a line."""
    events = (MessageStart(answer.message), MessageEnd(answer.message))
    return "\n".join(event_line(answer.host, event) for event in events)


def event_line(host: str, event: Event) -> str:
    """Return an event of a host as a JSON object."""
    told = {"target": named(host), "event": event_to_dict(event)}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))
