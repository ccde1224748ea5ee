"""How far a folder has come."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["FolderProgress", "OnProgress", "Reporter"]

_EVERY_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderProgress:
    """How far a folder has come.

    Attributes:
        bytes_done: Bytes of files so far.
        files_done: Files so far.
    """

    bytes_done: int
    files_done: int


OnProgress = Callable[[FolderProgress], None]


class Reporter:
    """Tells a listener, at most every 100 ms and once at the end.

    Args:
        on_progress: The listener, or None.
    """

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._tell = on_progress
        self._next = time.monotonic() + _EVERY_S

    def at(self, bytes_done: int, files_done: int, *, last: bool = False) -> None:
        """Say how far it is."""
        now = time.monotonic()
        if self._tell is not None and (last or now >= self._next):
            self._next = now + _EVERY_S
            self._tell(FolderProgress(bytes_done=bytes_done, files_done=files_done))
