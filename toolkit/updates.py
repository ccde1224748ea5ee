"""The way of a running tool's updates: open while it runs, shut the moment that it settles."""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from toolkit.failures import error_text, pass_interrupt
from toolkit.results import checked_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.tool import AgentToolResult
    from toolkit.wakeups import Post

__all__ = ["Updates"]

_log = logging.getLogger(__name__)


class Updates:
    """The `on_update` of one call.

    Args:
        tool_name: For the log.
        deliver: Gets each update, on the event loop's thread and in order.
        post: Reaches the event loop from other threads.
    """

    __slots__ = ("_deliver", "_open", "_pending", "_post", "_thread", "_tool_name", "last")

    def __init__(
        self, tool_name: str, deliver: Callable[[AgentToolResult], None], post: Post
    ) -> None:
        self._tool_name = tool_name
        self._deliver = deliver
        self._post = post
        self._thread = threading.get_ident()
        self._pending: deque[Any] = deque()
        self._open = True
        #: The update delivered last: what the call had, should it have to be given up.
        self.last: AgentToolResult | None = None

    def __call__(self, partial_result: AgentToolResult) -> None:
        """Take an update, from any thread; one that comes after the end is dropped."""
        if not self._open:
            return
        self._pending.append(partial_result)
        if threading.get_ident() == self._thread:
            self._drain()
        else:
            self._post(self._drain)

    def close(self) -> None:
        """Deliver what is pending and drop all that comes later."""
        self._drain()
        self._open = False

    def _drain(self) -> None:
        while self._open and self._pending:
            try:
                self.last = checked_result(self._pending.popleft(), self._tool_name)
            except BaseException as error:  # on the loop, where nobody could catch it
                pass_interrupt(error)
                _log.warning("%s: update dropped: %s", self._tool_name, error_text(error))
            else:
                self._deliver(self.last)
