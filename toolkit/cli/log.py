"""`--log FILE`: every event as a line of JSON, for whoever looks later."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from toolkit import Event, event_to_dict
from toolkit.cli.session import EXIT_ERROR, complain

__all__ = ["LOG_VERSION", "EventLog"]

#: Changes when a key changes its meaning or goes; new keys may come with any release.
LOG_VERSION = 1


class EventLog:
    """A file that events are added to, a line each, the first of a run with what it is.

    A line is {"schema": 1, "time": "2026-11-30T12:00:00.000000+00:00", "target": ..., "event":
    {...}}. What cannot be written (a full disk) is told once; calls go on.

    Args:
        file: Its path; it is made with mode 0600, and added to if it is there.
        target: What is worked on, for every line.

    Raises:
        OSError: It cannot be opened.
    """

    def __init__(self, file: str, target: str) -> None:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        # A run whose disk was full has left half a line.
        end = (
            os.lseek(descriptor, 0, os.SEEK_END)
            if stat.S_ISREG(os.fstat(descriptor).st_mode)
            else 0
        )
        torn = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
        self._file = os.fdopen(descriptor, "a", encoding="utf-8")
        self._before = "\n" if torn else ""
        self._name = file
        self._target = target
        self._lost = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._file.close()
        except OSError as failure:
            self._lose(failure)

    def listen(self, event: Event, target: str | None = None) -> None:
        """Add an event."""
        told: dict[str, Any] = {
            "schema": LOG_VERSION,
            "time": datetime.now(UTC).isoformat(timespec="microseconds"),
            "target": target or self._target,
            "event": event_to_dict(event),
        }
        if self._lost:
            return
        try:
            # One write for one line: lines of two processes do not mix.
            line = json.dumps(told, ensure_ascii=True, separators=(",", ":"))
            self._file.write(f"{self._before}{line}\n")
            self._file.flush()
            self._before = ""
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        if not self._lost:
            self._lost = True
            complain(f"--log {self._name}: {error.strerror}; nothing more is logged", EXIT_ERROR)
