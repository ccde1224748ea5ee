"""The end of a search, the rhythm of its news, and the size of its parts."""

import time

from backends.engine import frames
from backends.engine.faults import Fault

_NEWS_S = 0.1
#: One part stays well below what a frame may hold.
_PART_BYTES = 256 << 10


class Clock:
    """The time limit of a search, and when it tells how far it is.

    Args:
        timeout_s: Seconds until `check` raises, or None.
        cancelled: Function that returns true when nobody wants the result any more, or None.
    """

    def __init__(self, timeout_s, cancelled):
        self._timeout_s = timeout_s
        self._cancelled = cancelled
        self._due = None if timeout_s is None else time.monotonic() + timeout_s
        self._last_news = None

    def check(self):
        """Raise a Fault when the time is over or nobody waits."""
        if self._due is not None and time.monotonic() > self._due:
            raise Fault("search_timeout", float(self._timeout_s))
        if self._cancelled is not None and self._cancelled():
            raise Fault("cancelled")

    def news(self):
        """Return True when the next progress is due."""
        now = time.monotonic()
        if self._last_news is not None and now < self._last_news + _NEWS_S:
            return False
        self._last_news = now
        return True


def in_parts(items, size_of=None):
    """Yield lists of the items, in order, each list small enough for one frame.

    Args:
        items: Values that can cross.
        size_of: Function of an item that gives about its size in bytes; None encodes it to see.
    """
    part, size = [], 0
    for item in items:
        item_size = size_of(item) if size_of else len(frames.encode_value(item))
        if part and size + item_size > _PART_BYTES:
            yield part
            part, size = [], 0
        part.append(item)
        size += item_size
    if part:
        yield part
