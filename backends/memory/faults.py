"""Faults on demand: operations of a backend in memory that fail, stall, or lose their answer."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, Self, get_args

import anyio

from operations import ConnectionLost

if TYPE_CHECKING:
    from types import TracebackType

    from backends.memory.clock import Clock

__all__ = ["Call", "Event", "FaultRule", "Faults", "Operation"]

Operation = Literal[
    "access",
    "detect_image_mime_type",
    "exec",
    "exec_tail",
    "exists",
    "glob",
    "grep",
    "is_directory",
    "list_directory",
    "make_directory",
    "read_file",
    "read_lines",
    "read_versioned",
    "replace_file",
    "write_file",
]
AnyOperation = Operation | Literal["*"]
Error = BaseException | Callable[[], BaseException]


class Event(Protocol):
    """What a stall can wait for, such as `anyio.Event`."""

    async def wait(self) -> object:
        """Return once it has happened."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of an operation.

    Attributes:
        operation: Its name.
        path: The path that it was given (a command's cwd), absolute and lexically normal.
        command: The text of a command, else None.
    """

    operation: Operation
    path: str
    command: str | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class FaultRule:
    """One fault that was asked for; used as a context manager it ends with the block.

    Attributes:
        kind: What happens.
        operation: The operation that it is for; "*" is every one.
        path: The path that it is for; None is any.
        command: The command that it is for; None is any.
        times: How many calls it acts on; None is every one.
        after: How many calls that fit pass untouched first.
        seen: How many calls fitted so far.
        hits: How many of them it acted on.
        removed: True once it acts no more, whatever `times` is.
    """

    kind: Literal["fail", "stall", "drop before", "drop after"]
    operation: AnyOperation
    path: str | None
    command: str | None
    times: int | None
    after: int
    error: Error | None = None
    seconds: float | None = None
    until: Event | None = None
    seen: int = 0
    hits: int = 0
    removed: bool = False

    @property
    def active(self) -> bool:
        """True while it may still act."""
        return not self.removed and (self.times is None or self.hits < self.times)

    def remove(self) -> None:
        """End it; a call that it is stalling goes on stalling."""
        self.removed = True

    def take(self, call: Call) -> bool:
        """Count a call and tell whether to act on it."""
        fits = (
            self.active
            and self.operation in ("*", call.operation)
            and self.path in (None, call.path)
            and self.command in (None, call.command)
        )
        if not fits:
            return False
        self.seen += 1
        acts = self.seen > self.after
        self.hits += acts
        return acts

    def new_error(self) -> BaseException:
        """Return an error to raise: one for each call, so that tracebacks do not mix."""
        assert self.error is not None
        return copy.copy(self.error) if isinstance(self.error, BaseException) else self.error()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()


class Faults:
    """Faults to inject into a `MemoryBackend`, as `backend.faults`.

    Every method returns the rule that it made. A rule counts what it saw and did, can be removed,
    and can be the head of a `with` block that ends it::

        backend.faults.fail("read_file", PathDenied("/workspace/a.txt"), path="a.txt")
        with backend.faults.drop("replace_file", when="after") as rule:
            ...
        assert rule.hits == 1

    All rules that fit a call act on it, in the order they were made: first a stall, then a
    failure, if both were asked for. Paths are compared as text, absolute and lexically normal:
    a rule for a symlink does not hold for the file that it points to. Only calls of the backend's
    operations meet faults; the test's own (`backend.write` ...) never do. Stopping and timeouts
    of a command count from its start, so a stall before it is ended by cancellation only.

    Args:
        clock: What stalls go by.
        absolute: Turns a path as tests write it into an absolute normal one.
        target: What `ConnectionLost` names.
    """

    def __init__(self, clock: Clock, absolute: Callable[[str], str], target: str) -> None:
        self._clock = clock
        self._absolute = absolute
        self._target = target
        self._rules: list[FaultRule] = []

    @property
    def rules(self) -> tuple[FaultRule, ...]:
        """Every rule that was made, also those that are over."""
        return tuple(self._rules)

    def clear(self) -> None:
        """Remove every rule."""
        for rule in self._rules:
            rule.remove()
        self._rules.clear()

    def fail(
        self,
        operation: AnyOperation,
        error: Error,
        *,
        path: str | None = None,
        command: str | None = None,
        times: int | None = 1,
        after: int = 0,
    ) -> FaultRule:
        """Raise an error instead of doing the operation.

        Args:
            operation: Name of the operation; "*" for every one.
            error: The error (each call gets a copy), or what makes one, such as its class.
            path: Only calls with this path (for commands: this cwd); None for any.
            command: Only commands with exactly this text; None for any call.
            times: How many calls fail, 1 or more; None for all.
            after: How many calls that fit are let through first.

        Raises:
            ValueError: There is no such operation, or a number is out of range.
        """
        return self._add(
            FaultRule(
                kind="fail",
                operation=operation,
                path=path,
                command=command,
                times=times,
                after=after,
                error=error,
            )
        )

    def stall(
        self,
        operation: AnyOperation,
        seconds: float | None = None,
        *,
        until: Event | None = None,
        path: str | None = None,
        command: str | None = None,
        times: int | None = 1,
        after: int = 0,
    ) -> FaultRule:
        """Hold the operation up before it does anything, then let it go on.

        Args:
            operation: As for `fail`.
            seconds: How long, by the backend's clock.
            until: What to wait for. With neither, the call stalls until it is cancelled; with
                both, until the first of them.
            path: As for `fail`.
            command: As for `fail`.
            times: As for `fail`.
            after: As for `fail`.

        Raises:
            ValueError: As `fail`.
        """
        return self._add(
            FaultRule(
                kind="stall",
                operation=operation,
                path=path,
                command=command,
                times=times,
                after=after,
                seconds=seconds,
                until=until,
            )
        )

    def drop(
        self,
        operation: AnyOperation,
        *,
        when: Literal["before", "after"] = "after",
        path: str | None = None,
        command: str | None = None,
        times: int | None = 1,
        after: int = 0,
    ) -> FaultRule:
        """Raise `ConnectionLost`, as when the wire is cut.

        Args:
            operation: As for `fail`.
            when: "before": nothing was done; "after": the operation has happened, and only its
                answer is lost. The caller cannot tell which, as in life.
            path: As for `fail`.
            command: As for `fail`.
            times: As for `fail`.
            after: As for `fail`.

        Raises:
            ValueError: As `fail`.
        """
        return self._add(
            FaultRule(
                kind="drop before" if when == "before" else "drop after",
                operation=operation,
                path=path,
                command=command,
                times=times,
                after=after,
                error=ConnectionLost(self._target, "a fault was injected"),
            )
        )

    async def before(self, call: Call) -> list[FaultRule]:
        """Let every rule that fits act on a call; return those that act after its effect."""
        later = []
        for rule in [rule for rule in self._rules if rule.take(call)]:
            if rule.kind == "stall":
                await self._stall(rule)
            elif rule.kind == "drop after":
                later.append(rule)
            else:
                raise rule.new_error()
        return later

    def _add(self, rule: FaultRule) -> FaultRule:
        known = get_args(Operation)
        if rule.operation != "*" and rule.operation not in known:
            raise ValueError(f"no operation {rule.operation!r}; there are {', '.join(known)}, '*'")
        if (rule.times is not None and rule.times < 1) or rule.after < 0:
            raise ValueError("times has to be 1 or more, and after 0 or more")
        if rule.path is not None:
            rule.path = self._absolute(rule.path)
        self._rules.append(rule)
        return rule

    async def _stall(self, rule: FaultRule) -> None:
        async with anyio.create_task_group() as waits:

            async def wait(what: Callable[[], Awaitable[object]]) -> None:
                await what()
                waits.cancel_scope.cancel()

            if rule.seconds is None and rule.until is None:
                await anyio.sleep_forever()
            if rule.seconds is not None:
                waits.start_soon(wait, lambda: self._clock.sleep(rule.seconds or 0.0))
            if rule.until is not None:
                waits.start_soon(wait, rule.until.wait)
