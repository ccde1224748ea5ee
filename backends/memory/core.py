"""What all operations in memory have in common: the tree, its user, faults, and one way to run."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import anyio.lowlevel

from backends.engine.faults import Fault
from backends.memory.access import TreeAccess, to_bytes
from backends.memory.faults import Call, Faults
from backends.memory.files import Files
from backends.memory.tree import Tree
from backends.remote.arguments import wire_path
from backends.remote.faults import error_from_fault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from backends.memory.clock import Clock
    from backends.memory.faults import FaultRule, Operation
    from backends.memory.nodes import User

__all__ = ["TARGET", "Core"]

TARGET = "memory:"

T = TypeVar("T")


class Core(TreeAccess):
    """A tree, and what it takes to run an operation on it.

    Args:
        cwd: Absolute path of the folder that tools work in.
        home: Absolute path that `~` stands for.
        user: Whom operations act as.
        clock: What times go by.
        roots: What file operations are confined to; see `User.roots`.
    """

    def __init__(
        self, *, cwd: str, home: str, user: User, clock: Clock, roots: tuple[bytes, ...]
    ) -> None:
        super().__init__(Tree(clock.wall_ns, user), cwd=cwd, home=home, user=user)
        self._confined = replace(user, roots=roots)
        self._files = Files(self._tree, self._confined, to_bytes(home))
        self.clock = clock
        self.calls: list[Call] = []
        self.faults = Faults(clock, self._normal, TARGET)

    async def _operate(
        self,
        operation: Operation,
        path: str,
        effect: Callable[[bytes], Awaitable[T]],
        *,
        command: str | None = None,
    ) -> T:
        """Run one operation: recorded, cancellable before its effect, with its faults."""
        call = Call(operation=operation, path=self._normal(path), command=command)
        self.calls.append(call)
        await anyio.lowlevel.checkpoint()
        lost = await self.faults.before(call)
        try:
            answer = await effect(wire_path(path))
        except Fault as fault:
            _lose(lost)
            raise error_from_fault(fault.code, fault.arguments) from None
        _lose(lost)
        return answer

    def _normal(self, path: str) -> str:
        if path == "~" or path.startswith("~/"):
            path = self._home + path[1:]
        return posixpath.normpath(posixpath.join(self.cwd, path))


def _lose(rules: list[FaultRule]) -> None:
    """Raise what stands in for the answer, be it a result or an error, if that is to be lost."""
    for rule in rules:
        raise rule.new_error()
