"""Lanes to one target: opened when there is none free, kept for the next, watched."""

from __future__ import annotations

import contextlib
import itertools
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from backends.remote import shell_script
from backends.remote.channel import Channel
from backends.remote.lane import Lane
from backends.remote.shell_quote import function_call
from operations import BackendUnavailable, OperationError

__all__ = ["LaneOpener", "Lanes"]

#: Opens a channel to a program given by its argv, within limits of its own.
LaneOpener = Callable[[Sequence[str]], Awaitable[Channel]]

_LEASE_S = 30.0
#: Idle lanes that are kept.
_IDLE_LANES = 8


class Lanes:
    """Lanes to one target: opened when there is none free, kept for the next, bounded.

    Args:
        open_channel: Opens a channel to a program given by its argv.
        target: The target as the user named it, for errors.
        connect_timeout_s: Seconds until a shell counts as not answering.
        lease_s: Seconds without a sign of the target after which requests count as lost; None
            for 30.
        files: Most lanes for requests about files at a time.
        commands: Most lanes for commands at a time.
    """

    def __init__(
        self,
        open_channel: LaneOpener,
        *,
        target: str,
        connect_timeout_s: float,
        lease_s: float | None = None,
        files: int = 4,
        commands: int = 64,
    ) -> None:
        self._open_channel = open_channel
        self._target = target
        self._connect_timeout_s = connect_timeout_s
        self._ping_s = (lease_s or _LEASE_S) / 3
        self._limits = {
            "files": anyio.Semaphore(files),
            "commands": anyio.Semaphore(commands),
            # They hold one for as long as a long file takes, which no other file waits for.
            "searches": anyio.Semaphore(2),
            # A kill waits for nobody.
            "kills": anyio.Semaphore(8),
        }
        self._idle: list[Lane] = []
        self._all: set[Lane] = set()
        #: Begins the name of each lane, and the mark of each command.
        self.session = secrets.token_hex(8)
        self._numbers = itertools.count(1)
        self._vanished: list[str] = []
        self._tasks: TaskGroup | None = None
        #: True once the backend closes and ends what runs.
        self.closing = False
        #: What the script of further lanes is told.
        self.settings = ""

    async def enter(self) -> None:
        """Make ready to open lanes."""
        if self._tasks is not None:
            raise BackendUnavailable(self._target, "the backend is in use already")
        tasks = anyio.create_task_group()
        await tasks.__aenter__()
        self._tasks = tasks
        tasks.start_soon(self._watch)

    async def close(self) -> None:
        """Close all lanes, also when the caller is cancelled."""
        tasks, self._tasks = self._tasks, None
        if tasks is None:
            return
        for lane in self._idle:
            lane.dismiss()
        for lane in list(self._all):
            lane.retire("the backend was closed")
        tasks.cancel_scope.cancel()
        await tasks.__aexit__(None, None, None)

    @property
    def tasks(self) -> TaskGroup:
        """The tasks that live as long as the lanes."""
        if self._tasks is None:
            raise BackendUnavailable(
                self._target, "the backend is not open; use it in `async with`"
            )
        return self._tasks

    @asynccontextmanager
    async def lane(self, kind: str) -> AsyncIterator[Lane]:
        """Give a lane to the block: a free one, else a new one.

        Args:
            kind: "files", "searches" or "kills".

        Raises:
            BackendUnavailable: None can be had; nothing was done.
        """
        async with self.turn(kind):
            lane = await self.take(kind)
            try:
                yield lane
            finally:
                self.give_back(lane)

    def turn(self, kind: str) -> anyio.Semaphore:
        """Return what bounds the lanes of one kind (see `_limits`) in use."""
        return self._limits[kind]

    async def take(self, kind: str) -> Lane:
        """Return a free lane, else a new one; the caller gives it back.

        Commands leave one: where opening takes long, a read must not wait behind forty of them.
        """
        while len(self._idle) > (kind == "commands"):
            lane = self._idle.pop()
            if lane.lost is None:
                return lane
        return await self._open()

    def give_back(self, lane: Lane) -> None:
        """Keep a clean lane for the next request."""
        if lane.lost is not None:
            return
        if self._tasks is not None and len(self._idle) < _IDLE_LANES:
            self._idle.append(lane)
        else:
            lane.dismiss()

    async def prepare(self, count: int) -> None:
        """Have that many lanes free, opening what is missing; failures show when one is needed."""
        with contextlib.suppress(BackendUnavailable):
            while len(self._idle) < count and self._tasks is not None:
                self.give_back(await self._open())

    async def _open(self) -> Lane:
        tasks = self.tasks
        try:
            name = f"{self.session}.{next(self._numbers)}"
            channel = await self._open_channel(shell_script.argv(name))
        except OSError as error:
            raise BackendUnavailable(self._target, f"{error}") from error
        lane = Lane(channel, self._target, name)
        self._all.add(lane)
        tasks.start_soon(self._run, lane)
        try:
            with anyio.fail_after(self._connect_timeout_s):
                await lane.load(self.settings)
        except TimeoutError as error:
            lane.retire("it did not start")
            reason = f"no shell answered within {self._connect_timeout_s:g} seconds"
            raise BackendUnavailable(self._target, reason) from error
        except BaseException:
            lane.retire("it did not start")
            raise
        if self._vanished:
            tasks.start_soon(self.bury)
        return lane

    async def bury(self) -> None:
        """End what lanes that vanished have left: not every end of a channel reaches its shell."""
        names, self._vanished = self._vanished, []
        if not names:
            return
        with contextlib.suppress(OperationError):
            async with self.lane("kills") as lane:
                await lane.call(function_call("bury", *names), limit=0)

    async def _watch(self) -> None:
        """Find out when nobody is there: a lane that is silent cannot tell it from a long work."""
        while True:
            await anyio.sleep(self._ping_s)
            began = anyio.current_time()
            if any(lane.waits_since(began - self._ping_s) for lane in self._all):
                await self._ping(began)

    async def _ping(self, began: float) -> None:
        """Ask the target for a sign; without one, no lane that is silent too will give another."""
        try:
            with anyio.fail_after(2 * self._ping_s):
                async with self.lane("kills") as lane:
                    await lane.call(b"true", limit=0)
            return
        except TimeoutError:
            reason = f"nothing heard for {3 * self._ping_s:g} seconds"
        except OperationError as error:
            reason = getattr(error, "reason", f"{error}")
        for lane in list(self._all):
            if lane.heard_at < began:
                lane.retire(f"the target does not answer: {reason}")

    async def _run(self, lane: Lane) -> None:
        # Shielded: a caller that is being cancelled needs lanes to end its command.
        with anyio.CancelScope(shield=True):
            await lane.run()
        self._all.discard(lane)
        if lane.vanished:
            self._vanished.append(lane.name)
        if lane in self._idle:
            self._idle.remove(lane)
