"""What every subcommand shares: an event loop, an open target, an interrupt that aborts."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVarTuple

import anyio

from operations import BackendUnavailable
from toolkit import AbortController
from toolkit.cli.config import url_of
from toolkit.cli.shown import shown
from toolkit.cli.targets import open_target

if TYPE_CHECKING:
    from backends.targets import Backend

__all__ = [
    "EXIT_ERROR",
    "EXIT_INTERRUPTED",
    "EXIT_UNREACHABLE",
    "EXIT_USAGE",
    "TargetFailed",
    "Where",
    "abort_on_interrupt",
    "complain",
    "leave_threads",
    "open_session",
    "run_async",
    "run_session",
    "run_until_interrupted",
]

EXIT_ERROR, EXIT_USAGE, EXIT_UNREACHABLE, EXIT_INTERRUPTED = 1, 2, 3, 130
#: How much of a reason is told; the far end may have had a say in it.
_REASON_CHARS = 2000
_THREADS_S = 10.0

Arguments = TypeVarTuple("Arguments")


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """How a target is opened, whichever it is.

    Attributes:
        cwd: Working folder on the target; None for the target's own.
        root: The folder that file tools are confined to, or None.
        unconfined_commands: Run commands in spite of a root.
    """

    cwd: str | None = None
    root: str | None = None
    unconfined_commands: bool = False

    def options(self) -> dict[str, Any]:
        """Return what `open_target` takes."""
        if self.root is None:
            return {"cwd": self.cwd}
        return {
            "cwd": self.cwd,
            "root": self.root,
            "unconfined_commands": self.unconfined_commands,
        }


def run_async(main: Callable[[*Arguments], Awaitable[int]], *args: *Arguments) -> int:
    """Run `main(*args)` to its exit code."""
    return anyio.run(main, *args)


def run_session(
    main: Callable[..., Awaitable[int]],
    target: str,
    where: Where,
    *args: Any,
    keep_output: bool = False,
) -> int:
    """Run `main(backend, *args)` on an open target.

    Args:
        main: What to run.
        target: A target's URL.
        where: How it is opened.
        args: What else `main` gets.
        keep_output: See `backends.targets.open_target`.

    Returns:
        The exit code of `main`, 2 for a target that is malformed, 3 for one that is unreachable.
    """

    async def session() -> int:
        try:
            async with open_session(target, where, keep_output=keep_output) as backend:
                return await main(backend, *args)
        except TargetFailed as error:
            return complain(str(error), error.exit_code)

    return run_async(session)


class TargetFailed(Exception):
    """A target could not be opened.

    Attributes:
        exit_code: What the command ends with.
    """

    def __init__(self, reason: str, exit_code: int) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


@asynccontextmanager
async def open_session(
    target: str, where: Where, *, keep_output: bool = False
) -> AsyncIterator[Backend]:
    """Give the backend of an open target.

    Args:
        target: A target's URL, or its name.
        where: How it is opened.
        keep_output: See `backends.targets.open_target`.

    Raises:
        TargetFailed: It is malformed or unreachable.
    """
    async with AsyncExitStack() as stack:
        try:
            opened = open_target(url_of(target), keep_output=keep_output, **where.options())
            backend: Backend = await stack.enter_async_context(opened)
        except ValueError as error:
            raise TargetFailed(str(error), EXIT_USAGE) from error
        except BackendUnavailable as error:
            raise TargetFailed(str(error), EXIT_UNREACHABLE) from error
        yield backend


def run_until_interrupted(main: Callable[[*Arguments], Awaitable[int]], *args: *Arguments) -> int:
    """Run `main(*args)`; SIGINT and SIGTERM cancel it, and whatever it had opened is closed.

    Returns:
        The exit code of `main`, 130 if it was cancelled.
    """

    async def watched() -> int:
        code = EXIT_INTERRUPTED
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with anyio.create_task_group() as tasks:

                async def watch() -> None:
                    async for _ in signals:
                        tasks.cancel_scope.cancel()

                tasks.start_soon(watch)
                code = await main(*args)
                tasks.cancel_scope.cancel()
        return code

    code = run_async(watched)
    if code == EXIT_INTERRUPTED:
        leave_threads(code)
    return code


def leave_threads(code: int, wait_s: float = _THREADS_S) -> None:
    """End the process if threads go on, since it would wait for them when it ends.

    A thread that waits for somebody who says nothing cannot be interrupted. Others may have
    something in hand that is to be put right, so each gets a while.
    """
    end = time.monotonic() + wait_s
    main = threading.main_thread()
    # No end of a process waits for daemons.
    others = [each for each in threading.enumerate() if each is not main and not each.daemon]
    for thread in others:
        thread.join(max(0.0, end - time.monotonic()))
    if any(thread.is_alive() for thread in others):
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, AttributeError, ValueError):
                stream.flush()
        os._exit(code)


@asynccontextmanager
async def abort_on_interrupt(
    *, again: Callable[[], object] = lambda: None
) -> AsyncIterator[AbortController]:
    """Give a controller that SIGINT and SIGTERM set off, for as long as the block runs.

    Args:
        again: Called for each further signal.
    """
    controller = AbortController()

    async def watch(task_status: anyio.abc.TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for _ in signals:
                if controller.signal.is_set():
                    again()
                controller.abort("interrupted")

    async with anyio.create_task_group() as tasks:
        await tasks.start(watch)
        yield controller
        tasks.cancel_scope.cancel()


def complain(text: str, code: int) -> int:
    """Tell on standard error what is wrong; return the exit code."""
    print(f"toolkit: {shown(text, _REASON_CHARS)}", file=sys.stderr)
    return code
