"""Requests to a Docker engine: in threads, within deadlines, and with its errors as ours."""

from __future__ import annotations

import contextlib
import math
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from backends.docker.address import Address, find_address
from backends.docker.threads import run_apart
from operations import BackendUnavailable

if TYPE_CHECKING:
    from docker import APIClient

__all__ = ["Daemon", "acquire", "release"]

T = TypeVar("T")

#: The SDK's limit for one read or write; ours are shorter, this ends the thread we left behind.
_SDK_TIMEOUT_S = 30
#: Requests to one engine at a time; more only wait inside of it.
_THREADS = 8
#: Containers made at a time: behind two hundred, no beat of a lease and no command may wait.
_MAKERS = 4
_OLDEST_API = (1, 41)
_REASON_CHARS = 1000
#: What looking for something in an answer raises that is made otherwise.
_SENSELESS = (LookupError, TypeError, AttributeError, ValueError, RecursionError)

_shared: RunVar[_Shared] = RunVar("remotehands_docker_daemons")


async def acquire(url: str | None, target: str, deadline_s: float) -> Daemon:
    """Return the connection to an engine that all backends of this event loop share.

    Args:
        url: The engine's address; None for what DOCKER_HOST, DOCKER_CONTEXT or docker's own
            configuration says.
        target: The target as the user named it, for errors.
        deadline_s: Seconds until an engine that says nothing counts as not there.

    Raises:
        BackendUnavailable: No engine answers there, or one that is not supported.
    """
    shared = _shared.get(None)
    if shared is None:
        shared = _Shared()
        _shared.set(shared)
    address = await anyio.to_thread.run_sync(
        find_address, url, dict(os.environ), target, limiter=shared.readers
    )
    daemon = shared.daemons.get(address.key)
    if daemon is None:
        daemon = shared.daemons[address.key] = Daemon(address)
    daemon.users += 1
    try:
        await daemon.run(lambda _api: None, target, deadline_s)
    except BaseException:
        release(daemon)
        raise
    return daemon


def release(daemon: Daemon) -> None:
    """Give an engine back; the last one closes its connections."""
    daemon.users -= 1
    if not daemon.users:
        if shared := _shared.get(None):
            shared.daemons.pop(daemon.address.key, None)
        daemon.close()


class _Shared:
    """What the backends of one event loop have in common."""

    def __init__(self) -> None:
        self.daemons: dict[str, Daemon] = {}
        # Two hundred backends that open at once need no thread each to read one configuration.
        self.readers = anyio.CapacityLimiter(1)


class Daemon:
    """A Docker engine at an address.

    Args:
        address: Where it is.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.users = 0
        self._api: APIClient | None = None
        self._lock = threading.Lock()
        self._turns = anyio.Semaphore(_THREADS)
        self._makers = anyio.Semaphore(_MAKERS)
        self._queue: dict[anyio.CancelScope, float] = {}

    async def run(
        self,
        function: Callable[[APIClient], T],
        target: str,
        deadline_s: float = math.inf,
        *,
        discard: Callable[[APIClient, T], object] | None = None,
        makes: bool = False,
    ) -> T:
        """Return what `function` returns; it asks the engine, in a thread.

        Args:
            function: Uses the SDK's client.
            target: The target as the user named it, for errors.
            deadline_s: Seconds after which the thread is left to itself. While requests of others
                come first they count from the engine's last answer: a long queue is no silence.
            discard: Takes a result that nobody is there for any more.
            makes: Whether it makes a container, which takes long.

        Raises:
            BackendUnavailable: The engine refused, or it does not answer.
        """

        def throw_away(result: T) -> None:
            if discard is not None:
                with contextlib.suppress(BackendUnavailable):
                    self._ask(lambda api: discard(api, result), target)

        handover = _Handover(throw_away)

        def work() -> T:
            return handover.give(self._ask(function, target))

        try:
            with anyio.fail_after(deadline_s) as scope:
                async with self._turn(scope, deadline_s, makes=makes):
                    result = await run_apart(work, finishes=discard is not None)
                    self._heard()
                handover.taken = True
                return result
        except TimeoutError as error:
            reason = f"{self.address} did not answer within {deadline_s:g} seconds"
            raise BackendUnavailable(target, reason) from error
        except BackendUnavailable:
            self._heard()
            raise
        finally:
            handover.leave()

    @asynccontextmanager
    async def _turn(
        self, scope: anyio.CancelScope, deadline_s: float, *, makes: bool
    ) -> AsyncIterator[None]:
        """Run the block as one of the few, and start its deadline then."""
        async with AsyncExitStack() as turns:
            self._queue[scope] = deadline_s
            try:
                if makes:
                    await turns.enter_async_context(self._makers)
                await turns.enter_async_context(self._turns)
            finally:
                del self._queue[scope]
            scope.deadline = anyio.current_time() + deadline_s
            yield

    def _heard(self) -> None:
        """Note that the engine answers: who waits for a turn may wait on."""
        now = anyio.current_time()
        for scope, deadline_s in self._queue.items():
            scope.deadline = now + deadline_s

    def close(self) -> None:
        """Close idle connections."""
        if self._api is not None:
            self._api.close()

    def _ask(self, function: Callable[[APIClient], T], target: str) -> T:
        import requests
        from docker.errors import APIError, DockerException

        # The one table from the SDK's errors to ours; the most special comes first.
        reasons: dict[type[Exception], str] = {
            APIError: "the Docker engine refused: {error.explanation}",
            requests.exceptions.Timeout: "{address} did not answer in time",
            requests.exceptions.ConnectionError: "{address} cannot be reached: {cause}",
            DockerException: "{address}: {error}",
            requests.exceptions.RequestException: "{address}: {error}",
            OSError: "{address} cannot be reached: {error.strerror}",
            # What answers there may be another server, or say what the SDK and we do not expect.
            **dict.fromkeys(
                _SENSELESS, "{address} does not answer as Docker's API does: {error!r}"
            ),
        }
        try:
            _probe(self.address)
            return function(self._client())
        except tuple(reasons) as error:
            reason = next(text for kind, text in reasons.items() if isinstance(error, kind))
            reason = reason.format(error=error, address=self.address, cause=_innermost(error))
            raise BackendUnavailable(target, _harmless(reason)) from error
        finally:
            # A thread that was left to itself may end after the last user.
            if not self.users:
                self.close()

    def _client(self) -> APIClient:
        with self._lock:
            if self._api is None:
                self._api = _connect(self.address)
            return self._api


def _probe(address: Address) -> None:
    """Raise OSError where nobody listens: the SDK leaves a socket open that does not connect."""
    if address.url.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_SDK_TIMEOUT_S)
            probe.connect("/" + address.url.removeprefix("unix://").lstrip("/"))


def _connect(address: Address) -> APIClient:
    """Return a client that speaks the engine's newest API."""
    from docker.errors import DockerException

    first = _client(address, ".".join(map(str, _OLDEST_API)))
    try:
        newest = str(first.version(api_version=False).get("ApiVersion", "0"))
    finally:
        first.close()
    if tuple(int(part) for part in newest.split(".") if part.isdigit()) < _OLDEST_API:
        raise DockerException(f"API {newest} is older than 1.41 and not supported")
    return _client(address, newest)


def _client(address: Address, version: str) -> APIClient:
    from docker import APIClient

    made = APIClient(
        base_url=address.url, tls=address.tls or False, version=version, timeout=_SDK_TIMEOUT_S
    )
    # REQUESTS_CA_BUNDLE would count more than the certificates of the engine's own authority.
    made.trust_env = False
    # An engine has nothing to say about other addresses.
    made.max_redirects = 0
    return made


def _harmless(reason: str) -> str:
    """Return what an engine may have had a say in, short and without what moves a cursor."""
    return "".join(c if c.isprintable() else "\ufffd" for c in reason[:_REASON_CHARS])


def _innermost(error: BaseException) -> BaseException:
    """Return what the operating system said, which the HTTP clients wrap in each other's errors."""
    for argument in (*error.args, getattr(error, "reason", None)):
        if isinstance(argument, Exception):
            return _innermost(argument)
    return error


class _Handover(Generic[T]):
    """Who comes second, the thread or the caller that left, throws the result away."""

    def __init__(self, throw_away: Callable[[T], None]) -> None:
        self._throw_away = throw_away
        self._lock = threading.Lock()
        self._left = False
        self._results: list[T] = []
        self.taken = False

    def give(self, result: T) -> T:
        """Take the thread's result."""
        with self._lock:
            self._results.append(result)
            left = self._left
        if left:
            self._throw_away(result)
        return result

    def leave(self) -> None:
        """Note that the caller takes nothing any more."""
        with self._lock:
            self._left = True
            results = () if self.taken else tuple(self._results)
        for result in results:
            # That may mean to ask the engine again, for which the event loop cannot wait.
            threading.Thread(target=self._throw_away, args=(result,), daemon=True).start()
