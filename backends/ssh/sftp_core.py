"""What all operations over SFTP share: connecting, paths, settling, what a loss has left."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import anyio

from backends.engine.faults import Fault
from backends.remote.shell_faults import error_of
from backends.remote.shell_quote import expanded
from backends.ssh.sftp_faults import fault_about
from backends.ssh.sftp_session import SftpSession
from operations import ConnectionLost, OperationError, TargetFacts

__all__ = ["SftpCore"]

T = TypeVar("T")

#: How long a cancelled caller waits for what must be settled.
_SETTLE_S = 5.0


class SftpCore:
    """Sessions to one server, one at a time, and what was found out about it.

    Args:
        open_session: Opens a session.
        target: The target as the user named it, for errors.
    """

    def __init__(self, open_session: Callable[[], Awaitable[SftpSession]], *, target: str) -> None:
        self._open_session = open_session
        self._target = target
        self._session: SftpSession | None = None
        self._connecting = anyio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        #: Temporary files that could not be removed when their session was lost.
        self.left: set[bytes] = set()
        self.facts: TargetFacts | None = None

    async def session(self) -> SftpSession:
        """Return a session that is alive, opening one where there is none.

        Raises:
            BackendUnavailable: None can be had; nothing was done.
        """
        async with self._connecting:
            if self._session is None or self._session.lost is not None:
                session = await self._open_session()
                if self.facts is None:
                    try:
                        self.facts = await self._find_facts(session)
                    except BaseException:
                        session.close()
                        raise
                self._session = session
                if self.left:
                    self._start(self._remove_left(session))
            return self._session

    async def _find_facts(self, session: SftpSession) -> TargetFacts:
        try:
            home = await session.realpath(b".")
        except OSError:
            home = b"/"
        machine = hashlib.sha256(session.identity.encode()).hexdigest()[:32]
        return TargetFacts(
            home=home.decode("utf-8", "surrogateescape"),
            machine_id=machine,
            platform="unknown",
            shell=None,
            capabilities=frozenset({"sftp_only"}),
        )

    async def _remove_left(self, session: SftpSession) -> None:
        for path in list(self.left):
            try:
                await session.remove(path)
            except ConnectionLost:
                return
            except OSError:
                pass  # it is gone, or nothing can be done about it
            self.left.discard(path)

    async def close(self) -> None:
        """End the session, once what must be settled is."""
        with anyio.move_on_after(_SETTLE_S, shield=True):
            while self._tasks:
                await asyncio.wait(set(self._tasks))
        for task in self._tasks:
            task.cancel()
        if self._session is not None:
            self._session.close()
            self._session = None

    async def absolute(self, path: str) -> bytes:
        """Return a path as it goes to the server, "~" replaced.

        Raises:
            PathError: It can be no path.
        """
        await self.session()
        assert self.facts is not None
        try:
            return expanded(path, self.facts.home)
        except Fault as fault:
            raise error_of(fault) from None

    @asynccontextmanager
    async def errors_about(self, path: str) -> AsyncIterator[SftpSession]:
        """Give a session; an OSError or Fault in the block becomes the error about `path`.

        Args:
            path: As the operation received it.
        """
        session = await self.session()
        try:
            yield session
        except Fault as fault:
            raise error_of(fault) from None
        except OperationError:
            raise
        except OSError as error:
            assert self.facts is not None
            raise error_of(await fault_about(session, path, self.facts.home, error)) from None

    async def settled(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do some work; when the caller is cancelled, wait at most 5 s for its end."""
        task = self._start(work())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise ConnectionLost(self._target, "the backend was closed") from None
            with anyio.move_on_after(_SETTLE_S, shield=True):
                await asyncio.wait([task])
            task.cancel()
            raise

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(_retrieve)
        return task


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Look at a task's error: nobody may be left who does."""
    with suppress(asyncio.CancelledError):
        task.exception()
