"""The life of a backend's connection: opened at need, opened again after a loss, closed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
from anyio.abc import TaskGroup

from backends.remote import convert
from backends.remote.channel import OpenChannel
from backends.remote.client import EngineClient, StartFailed
from backends.remote.convert import MalformedReply
from operations import BackendUnavailable, TargetFacts

__all__ = ["Connection"]

#: A channel's own limits are shorter; this only makes sure that nothing waits for ever.
_CLOSE_S = 15.0
_ABANDON_S = 1.0


class Connection:
    """Hold at most one client; after a loss the next operation connects once more.

    Nothing is ever sent again: a request belongs to the connection it was made on.

    Args:
        open_channel: Opens a channel to a program that waits for the engine.
        target: The target as the user named it, for errors.
        lease_s: Seconds without a sign of us after which the engine kills what it started and
            ends; None for never.
        connect_timeout_s: Seconds until a hello counts as not coming; an attribute too, which
            opening a channel may set for what it leads to.
        settings: What the engine's `main` takes besides.
    """

    def __init__(
        self,
        open_channel: OpenChannel,
        *,
        target: str,
        lease_s: float | None,
        connect_timeout_s: float,
        settings: Mapping[str, Any],
    ) -> None:
        self._open_channel = open_channel
        self._target = target
        self._settings = {**settings, "lease_s": lease_s}
        self._ping_s = 10.0 if lease_s is None else lease_s / 3
        self.connect_timeout_s = connect_timeout_s
        self._client: EngineClient | None = None
        self._starting: EngineClient | None = None
        self._connecting = anyio.Lock()
        self._failure: BackendUnavailable | None = None
        self._tasks: TaskGroup | None = None
        #: What the hello told; None before the first.
        self.facts: TargetFacts | None = None

    async def enter(self) -> None:
        """Make ready to connect."""
        if self._tasks is not None:
            raise BackendUnavailable(self._target, "the backend is in use already")
        tasks = anyio.create_task_group()
        await tasks.__aenter__()
        self._tasks = tasks

    async def close(self) -> None:
        """End the engine and everything that it started, also when the caller is cancelled."""
        tasks, self._tasks = self._tasks, None
        if tasks is None:
            return
        for client in (self._client, self._starting):
            if client is not None:
                with anyio.CancelScope(shield=True):
                    await client.close(_CLOSE_S)
        # No exception is handed in: the task group would wrap it, and it is not its own.
        await tasks.__aexit__(None, None, None)

    async def client(self) -> EngineClient:
        """Return the live client, connecting if there is none.

        Raises:
            BackendUnavailable: It cannot be had, or an attempt that was under way has failed;
                nothing was done.
        """
        client = self._client
        if client is not None and client.lost is None:
            return client
        before = self._failure
        async with self._connecting:
            client = self._client
            if client is None or client.lost is not None:
                if self._failure is not None and self._failure is not before:
                    # Of fifty that waited for one attempt, the last would wait for fifty more.
                    raise BackendUnavailable(*self._failure.args)
                try:
                    client = self._client = await self._connect()
                except BackendUnavailable as error:
                    self._failure = error
                    raise
            return client

    async def _connect(self) -> EngineClient:
        if self._tasks is None:
            raise BackendUnavailable(
                self._target, "the backend is not open; use it in `async with`"
            )
        try:
            channel = await self._open_channel()
        except OSError as error:
            raise BackendUnavailable(self._target, f"{error}") from error
        client = EngineClient(channel, target=self._target, ping_s=self._ping_s)
        try:
            self.facts = await self._start(client)
            await self._run(client)
        except BaseException:
            # Nothing runs there yet that would need time to end.
            with anyio.move_on_after(_ABANDON_S, shield=True):
                await client.abandon()
            raise
        return client

    async def _run(self, client: EngineClient) -> None:
        if self._tasks is None:
            raise BackendUnavailable(self._target, "the backend was closed meanwhile")
        self._starting = client
        try:
            # On asyncio a cancelled start waits for its task to end, which is shielded from that.
            with anyio.CancelScope(shield=True):
                await self._tasks.start(client.run)
        finally:
            self._starting = None

    async def _start(self, client: EngineClient) -> TargetFacts:
        try:
            with anyio.fail_after(self.connect_timeout_s):
                return convert.target_facts(await client.start(self._settings))
        except StartFailed as error:
            raise BackendUnavailable(self._target, str(error)) from error
        except MalformedReply as error:
            raise BackendUnavailable(self._target, f"no engine answers there: {error}") from error
        except TimeoutError as error:
            reason = f"the engine did not answer within {self.connect_timeout_s:g} seconds"
            raise BackendUnavailable(self._target, reason) from error
