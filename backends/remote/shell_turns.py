"""Turns: many at the same time, or one alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

__all__ = ["Turns"]


class Turns:
    """Writes that expect a version of a file run alone, all others together, first come first."""

    def __init__(self) -> None:
        self._door = anyio.Lock()
        self._inside = 0
        self._empty = anyio.Event()

    @asynccontextmanager
    async def together(self) -> AsyncIterator[None]:
        """Run the block unless one runs alone."""
        async with self._door:
            self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._empty.set()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Run the block while no other runs."""
        async with self._door:
            while self._inside:
                self._empty = anyio.Event()
                await self._empty.wait()
            yield
