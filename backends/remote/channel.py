"""What a transport hands to `remote`: a byte channel to a running program, and how it ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

__all__ = ["Channel", "ChannelClosed", "OpenChannel"]


class ChannelClosed(Exception):
    """The channel takes or gives no more bytes; the text says what was seen."""


class Channel(Protocol):
    """The stdin and stdout of a program that runs somewhere, as two streams of bytes."""

    def send_nowait(self, data: bytes | memoryview) -> int:
        """Send as much of `data` as goes without waiting and return how many bytes that was.

        A channel that cannot tell returns 0. Never called while `send` is running.

        Raises:
            ChannelClosed: Nothing can be sent any more.
        """
        ...

    async def send(self, data: bytes | memoryview) -> None:
        """Send all of `data`; only one task sends at a time.

        Raises:
            ChannelClosed: Nothing can be sent any more.
        """
        ...

    async def receive(self) -> bytes:
        """Return the next bytes of the program's stdout, at most 1 MiB; b"" at its end.

        Raises:
            ChannelClosed: The channel was closed or lost.
        """
        ...

    async def close(self) -> None:
        """Close both streams, end the program if it goes on, and free everything; bounded.

        Fine when called twice. Called under a shield, with a time limit of the caller's too.
        """
        ...

    async def exit_report(self) -> str:
        """Return how the program ended, as a sentence part with the last of its stderr.

        ("the engine ended with exit status 1: ImportError: ...".) Waits for the end for at most
        2 s and then says that it goes on.
        """
        ...


#: Opens a channel to a program that becomes the engine once the bootstrap's payload is sent.
OpenChannel = Callable[[], Awaitable[Channel]]
