"""Budgets: how many calls a minute, how many seconds of bash, how many bytes written."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.hooks import AfterToolCall, BeforeToolCall

__all__ = ["Budget", "Limits"]

_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a run may use; None for no limit.

    Attributes:
        calls_per_minute: Calls that may run in any 60 seconds; 1 or more.
        bash_seconds: Seconds that bash may take in all, by its time limits until a call has
            ended, by what it took from then on.
        bytes_written: Bytes of UTF-8 that write and edit may be given in all. What commands write
            is not counted.
        default_timeout_s: The time limit, in seconds, of a bash call that names none; it should
            be that of the tool.

    Raises:
        ValueError: A limit is not above 0 and finite.
    """

    calls_per_minute: int | None = None
    bash_seconds: float | None = None
    bytes_written: int | None = None
    default_timeout_s: float = 120.0

    def __post_init__(self) -> None:
        for name in ("calls_per_minute", "bash_seconds", "bytes_written", "default_timeout_s"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{name}: {value!r} is not above 0 and finite")

    def tightened_by(self, other: Limits) -> Limits:
        """Return the smaller of each limit."""

        def least(name: str) -> float | None:
            both = [getattr(each, name) for each in (self, other)]
            return min((value for value in both if value is not None), default=None)

        calls, size = least("calls_per_minute"), least("bytes_written")
        return Limits(
            calls_per_minute=None if calls is None else int(calls),
            bash_seconds=least("bash_seconds"),
            bytes_written=None if size is None else int(size),
            default_timeout_s=self.default_timeout_s,
        )


@dataclass(slots=True)
class Budget:
    """What of its limits a run has used.

    Attributes:
        limits: The limits.
        clock: A monotonic clock, in seconds.
    """

    limits: Limits
    clock: Callable[[], float] = time.monotonic
    _calls: deque[float] = field(default_factory=deque)
    _bash_s: float = 0.0
    _bytes: int = 0
    _reserved: dict[int, tuple[float, float, BeforeToolCall]] = field(default_factory=dict)

    def refusal(self, context: BeforeToolCall) -> str | None:
        """Return why a call would go beyond a limit, or None."""
        limits = self.limits
        if limits.calls_per_minute is not None:
            now = self.clock()
            while self._calls and self._calls[0] <= now - _MINUTE_S:
                self._calls.popleft()
            if len(self._calls) >= limits.calls_per_minute:
                wait = self._calls[0] + _MINUTE_S - now
                return (
                    f"the limit of {limits.calls_per_minute} calls a minute is reached; "
                    f"the next one may run in {math.ceil(wait)} s"
                )
        if limits.bash_seconds is not None and context.tool.name == "bash":
            wanted, left = self._wanted_s(context), self._left_s()
            if wanted > left:
                return (
                    f"commands may take {limits.bash_seconds:g} s in all, {max(left, 0):g} s are "
                    f"left and this one may take {wanted:g} s; "
                    + ("give it a shorter timeout" if left > 0 else "no more commands can run")
                )
        size = _size(context)
        if limits.bytes_written is not None and size > limits.bytes_written - self._bytes:
            return (
                f"write and edit may write {limits.bytes_written} bytes in all, "
                f"{limits.bytes_written - self._bytes} are left and this call has {size}"
            )
        return None

    def take(self, context: BeforeToolCall) -> None:
        """Count a call that is about to run."""
        if self.limits.calls_per_minute is not None:
            self._calls.append(self.clock())
        if self.limits.bash_seconds is not None and context.tool.name == "bash":
            key = id(context.params)
            self._reserved[key] = (self.clock(), self._wanted_s(context), context)
        self._bytes += _size(context)

    def settle(self, context: AfterToolCall) -> None:
        """Count what a call has really taken."""
        reserved = self._reserved.pop(id(context.params), None)
        if context.tool.name != "bash" or self.limits.bash_seconds is None:
            return
        took = (context.result.details or {}).get("duration_ms")
        if isinstance(took, int | float):
            self._bash_s += took / 1000
        elif reserved is not None:
            self._bash_s += min(self.clock() - reserved[0], reserved[1])

    def _wanted_s(self, context: BeforeToolCall) -> float:
        given = getattr(context.params, "timeout", None)
        return given if isinstance(given, int | float) else self.limits.default_timeout_s

    def _left_s(self) -> float:
        # A batch that was aborted never starts some of its calls, and nothing tells of those.
        for key, (_, _, context) in tuple(self._reserved.items()):
            if context.signal.is_set():
                del self._reserved[key]
        reserved = sum(wanted for _, wanted, _ in self._reserved.values())
        return (self.limits.bash_seconds or 0.0) - self._bash_s - reserved


def _size(context: BeforeToolCall) -> int:
    params = context.params
    if context.tool.name == "write":
        texts = [getattr(params, "content", "")]
    elif context.tool.name == "edit":
        texts = [getattr(edit, "new_text", "") for edit in getattr(params, "edits", ())]
    else:
        return 0
    return sum(len(text.encode("utf-8", "replace")) for text in texts if isinstance(text, str))
