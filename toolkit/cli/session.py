"""What every subcommand shares: an event loop, an open target, an interrupt that aborts."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVarTuple

import anyio

import backends
from operations import BackendUnavailable
from toolkit import AbortController

if TYPE_CHECKING:
    from backends.targets import Backend

__all__ = ["abort_on_interrupt", "run_async", "run_session"]

if getattr(backends, "REMOTEHANDS_PACKAGE", None) != "backends":
    raise ImportError(
        f"the package 'backends' that was imported ({backends.__path__[0]}) is not that of "
        f"remotehands, which stands beside {__file__}; start from another folder or rename it"
    )

EXIT_USAGE, EXIT_UNREACHABLE = 2, 3

Arguments = TypeVarTuple("Arguments")


def run_async(main: Callable[[*Arguments], Awaitable[int]], *args: *Arguments) -> int:
    """Run `main(*args)` to its exit code."""
    return anyio.run(main, *args)


def run_session(
    main: Callable[..., Awaitable[int]],
    target: str,
    cwd: str | None,
    *args: Any,
    keep_output: bool = False,
) -> int:
    """Run `main(backend, *args)` on an open target.

    Args:
        main: What to run.
        target: A target's URL.
        cwd: Working folder on the target; None for the target's own.
        args: What else `main` gets.
        keep_output: See `backends.targets.open_target`.

    Returns:
        The exit code of `main`, 2 for a target that is malformed, 3 for one that is unreachable.
    """
    from backends.targets import open_target

    async def session() -> int:
        async with AsyncExitStack() as stack:
            try:
                opened = open_target(target, cwd=cwd, keep_output=keep_output)
                backend: Backend = await stack.enter_async_context(opened)
            except ValueError as error:
                return _complain(str(error), EXIT_USAGE)
            except BackendUnavailable as error:
                return _complain(str(error), EXIT_UNREACHABLE)
            return await main(backend, *args)

    return run_async(session)


@asynccontextmanager
async def abort_on_interrupt() -> AsyncIterator[AbortController]:
    """Give a controller that SIGINT and SIGTERM set off, for as long as the block runs."""
    controller = AbortController()

    async def watch(task_status: anyio.abc.TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for _ in signals:
                controller.abort("interrupted")

    async with anyio.create_task_group() as tasks:
        await tasks.start(watch)
        yield controller
        tasks.cancel_scope.cancel()


def _complain(text: str, code: int) -> int:
    print(f"toolkit: {text}", file=sys.stderr)
    return code
