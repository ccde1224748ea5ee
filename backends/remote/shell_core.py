"""What all operations over lanes share: connecting, requests about a path, settling."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from backends.engine.faults import Fault
from backends.remote.arguments import wire_path
from backends.remote.lane import Reply
from backends.remote.lanes import LaneOpener, Lanes
from backends.remote.shell_faults import error_of, refusal
from backends.remote.shell_marks import Garbage
from backends.remote.shell_quote import expanded
from backends.remote.shell_target import Target, target_of
from operations import BackendUnavailable, ConnectionLost, OperationUnsupported, TargetFacts

__all__ = ["ShellCore"]

T = TypeVar("T")

#: How long a cancelled caller waits for what must be settled.
SETTLE_S = 5.0
_PROBE_BYTES = 1 << 16
#: Lanes that wait for requests once connected: for a command, a file, and what comes meanwhile.
_FREE_LANES = 3
#: Most bytes of an answer that is not a file's content.
TOLD_BYTES = 8 << 20


class ShellCore:
    """Lanes to a target, and what was found out about it.

    Args:
        open_channel: Opens a channel to a program given by its argv.
        target: The target as the user named it, for errors.
        connect_timeout_s: Seconds until a lane counts as not coming.
        lease_s: See `Lanes`.
        kept_cap: Most bytes of one command's kept output.
    """

    def __init__(
        self,
        open_channel: LaneOpener,
        *,
        target: str,
        connect_timeout_s: float,
        lease_s: float | None,
        kept_cap: int,
    ) -> None:
        self.target = target
        self.lanes = Lanes(
            open_channel, target=target, connect_timeout_s=connect_timeout_s, lease_s=lease_s
        )
        self._kept_cap = kept_cap
        self._connecting = anyio.Lock()
        self._known: Target | None = None

    @property
    def facts(self) -> TargetFacts | None:
        """What connecting told; None before."""
        return None if self._known is None else self._known.facts

    async def connect(self) -> Target:
        """Return what the target is, asking it once.

        Raises:
            BackendUnavailable: It cannot be reached, or cannot be worked on.
        """
        if self._known is not None:
            return self._known
        async with self._connecting:
            if self._known is None:
                self._known = await self._probe()
            return self._known

    async def _probe(self) -> Target:
        async with self.lanes.lane("files") as lane:
            try:
                reply = await lane.call(b"probe", limit=_PROBE_BYTES)
                known = target_of(reply.data, self._kept_cap)
            except ConnectionLost as error:
                raise BackendUnavailable(self.target, error.reason) from error
            except (Garbage, OperationUnsupported) as error:
                lane.retire()
                raise BackendUnavailable(self.target, f"{error}") from error
            self.lanes.settings = known.settings
            await lane.call(known.settings.encode(), limit=0)
        self.lanes.tasks.start_soon(self.lanes.prepare, _FREE_LANES)
        return known

    async def absolute(self, path: str) -> bytes:
        """Return a path as the script's functions take it.

        Raises:
            PathError: It can be no path.
        """
        known = await self.connect()
        try:
            return expanded(path, known.facts.home)
        except Fault as fault:
            raise error_of(fault) from None

    async def ask(
        self,
        path: str,
        request: bytes,
        *,
        limit: int = TOLD_BYTES,
        body: bytes | None = None,
        fine: tuple[int, ...] = (0,),
    ) -> Reply:
        """Make a request about a path on a lane of its own.

        Args:
            path: As the operation received it, for errors.
            request: Shell text.
            limit: Most bytes of the answer.
            body: See `Lane.call`.
            fine: Exit statuses that are no refusal.

        Raises:
            OperationError: What the function refused, as an engine would; ConnectionLost.
        """
        async with self.lanes.lane("files") as lane:
            reply = await lane.call(request, limit=limit, body=body)
        self.check(path, reply, fine)
        return reply

    def check(self, path: str, reply: Reply, fine: tuple[int, ...] = (0,)) -> None:
        """Raise what a function refused."""
        if reply.status not in fine:
            told = reply.reason if reply.failed_midway else reply.data
            raise refusal(wire_path(path), reply.status, told)

    def garbled(self, error: Garbage) -> ConnectionLost:
        """Return the error for an answer that makes no sense."""
        return ConnectionLost(self.target, f"the far end broke the protocol: {error}")

    async def settled(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do some work; when the caller is cancelled, wait at most SETTLE_S for its end."""
        done = anyio.Event()
        scope = anyio.CancelScope()
        results: list[T] = []
        errors: list[BaseException] = []

        async def run() -> None:
            with scope:
                try:
                    results.append(await work())
                except Exception as error:
                    errors.append(error)
            done.set()

        self.lanes.tasks.start_soon(run)
        try:
            await done.wait()
        finally:
            if not done.is_set():
                with anyio.move_on_after(SETTLE_S, shield=True):
                    await done.wait()
                scope.cancel()
        if errors:
            raise errors[0]
        if not results:
            raise ConnectionLost(self.target, "the backend was closed")
        return results[0]
