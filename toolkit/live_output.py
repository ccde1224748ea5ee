"""Show a command's output while it runs: at once, then at most every 100 ms."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

__all__ = ["INTERVAL_S", "LiveOutput"]

INTERVAL_S = 0.1


class LiveOutput:
    """Calls `show` soon after there is something new, never more often than every 100 ms.

    Args:
        show: Shows everything that there is so far.
    """

    __slots__ = ("_changed", "_news", "_show", "_shown_at")

    def __init__(self, show: Callable[[], None]) -> None:
        self._show = show
        self._shown_at = float("-inf")
        self._news = False
        self._changed = anyio.Event()

    def changed(self) -> None:
        """Tell that there is more; shows it now, or leaves it to `running`."""
        if anyio.current_time() - self._shown_at >= INTERVAL_S:
            self._show_now()
        elif not self._news:
            self._news = True
            self._changed.set()

    def finish(self) -> None:
        """Show what has not been shown yet."""
        if self._news:
            self._show_now()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Show in time what `changed` could not show at once, for as long as the block runs."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow)
            yield
            tasks.cancel_scope.cancel()

    def _show_now(self) -> None:
        self._news = False
        self._shown_at = anyio.current_time()
        self._show()

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            # `changed` may have shown what there was meanwhile, and begun a new interval.
            while (due := self._shown_at + INTERVAL_S) > anyio.current_time():  # noqa: ASYNC110 - time has no event
                await anyio.sleep_until(due)
            self.finish()
