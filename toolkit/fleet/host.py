"""One host on its way from waiting to its final state, and what of it is shown."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from toolkit.calls import TextContent
from toolkit.events import Event, ToolExecutionUpdate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    import anyio

    from toolkit.calls import Content, ErrorKind, ToolResultMessage
    from toolkit.toolset import CodingPlace

__all__ = ["Host", "HostState", "HostStatus"]

#: The last four are final.
HostState = Literal["waiting", "connecting", "running", "done", "failed", "unreachable", "stopped"]

_LINE_CHARS = 200
#: How far from the end of a long text its last line is looked for.
_TAIL_CHARS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStatus:
    """How things are on one host at one moment.

    Attributes:
        host: The host's name in the fleet.
        state: "done" when no call was an error; "failed" when one was; "unreachable" when the host
            could not be opened, or was gone for a call before it began; "stopped" when an abort
            came before all calls had ended.
        elapsed_s: Seconds since the fleet began to connect to it, until its last answer.
        answered: How many of its calls have their message.
        last_line: The last line of what was printed or answered last, at most 200 characters of
            it; the target has chosen them, control characters and all.
        trouble: What went wrong after the last answer, when the host was closed; else None.
    """

    host: str
    state: HostState
    elapsed_s: float
    answered: int
    last_line: str
    trouble: str | None


class Host:
    """One host of a fleet; only what is shown of its answers is kept.

    Attributes:
        place: What gives the place when it is entered; None once that was taken.
        scope: Ends the visit.
        begun: How many calls were given to the runner.
        answered: How many calls have their message.
        is_gone: Whether a call found the host gone.
        rest: What calls are told that get no result of their own, and the kind of that.
        ended: When the last call was answered, by the monotonic clock.
    """

    __slots__ = (
        "_began",
        "_kinds",
        "_last_line",
        "answered",
        "begun",
        "ended",
        "is_gone",
        "name",
        "place",
        "rest",
        "scope",
        "state",
        "trouble",
    )

    def __init__(self, name: str, place: AbstractAsyncContextManager[CodingPlace]) -> None:
        self.name = name
        self.place: AbstractAsyncContextManager[CodingPlace] | None = place
        self.state: HostState = "waiting"
        self.scope: anyio.CancelScope | None = None
        self.begun = self.answered = 0
        self.is_gone = False
        self.rest: tuple[str, ErrorKind] | None = None
        self.trouble: str | None = None
        self.ended: float | None = None
        self._began: float | None = None
        self._kinds: set[ErrorKind | None] = set()
        self._last_line = ""

    def status(self) -> HostStatus:
        """Return how things are."""
        began, until = self._began, self.ended or time.monotonic()
        return HostStatus(
            host=self.name,
            state=self.state,
            elapsed_s=0.0 if began is None else until - began,
            answered=self.answered,
            last_line=self._last_line,
            trouble=self.trouble,
        )

    def connect(self) -> AbstractAsyncContextManager[CodingPlace]:
        """Take the place, which is entered once only."""
        place, self.place = self.place, None
        assert place is not None
        self.state, self._began = "connecting", time.monotonic()
        return place

    def listen(self, event: Event) -> None:
        """Show what a running call has printed."""
        if isinstance(event, ToolExecutionUpdate):
            self._show(event.partial_result.content)

    def count(self, message: ToolResultMessage) -> None:
        """Note that a call is answered."""
        self.answered += 1
        self._kinds.add(message.error_kind)
        self.is_gone = self.is_gone or message.error_kind == "unavailable"
        self._show(message.content)

    def end(self, *, stopped: bool) -> None:
        """Come to a final state.

        Args:
            stopped: Whether an abort was asked for.
        """
        self.ended = time.monotonic()
        if self.is_gone:
            self.state = "unreachable"
        elif stopped and self._kinds & {"aborted", "not_started"}:
            self.state = "stopped"
        else:
            self.state = "failed" if self._kinds - {None} else "done"

    def _show(self, content: Sequence[Content]) -> None:
        for block in reversed(content):
            if isinstance(block, TextContent):
                lines = block.text[-_TAIL_CHARS:].rstrip().splitlines()
                if lines:
                    self._last_line = lines[-1][:_LINE_CHARS]
                    return
