"""What the command prints: lines of text or JSON, for as long as somebody takes them."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Output"]


class Output:
    """Writes lines to standard output; once that fails it is lost, and nothing more is tried.

    Args:
        utf8: Write UTF-8, which JSON is, whatever the terminal is set to.
        on_lost: Called once when standard output is closed, full or read by nobody any more.

    Attributes:
        lost: Why, or None.
    """

    def __init__(self, *, utf8: bool, on_lost: Callable[[], None] = lambda: None) -> None:
        self.lost: OSError | None = None
        self._on_lost = on_lost
        if sys.stdout is None:  # closed from the start
            self._lose(OSError(errno.EBADF, os.strerror(errno.EBADF)))
        elif isinstance(sys.stdout, io.TextIOWrapper):
            encoding = "utf-8" if utf8 else None
            sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")

    def line(self, text: str) -> None:
        """Write one line at once."""
        if self.lost is not None:
            return
        try:
            print(text, flush=True)
        except OSError as error:
            self._lose(error)

    def exit_code(self, code: int) -> int:
        """Return the exit code of a command that would end with `code`; tell what went wrong.

        Nothing is wrong when the reader of a pipe has seen enough.
        """
        if self.lost is None or isinstance(self.lost, BrokenPipeError):
            return code
        print(f"toolkit: standard output: {self.lost.strerror}", file=sys.stderr)
        return code or 1

    def _lose(self, error: OSError) -> None:
        self.lost = error
        _discard()
        self._on_lost()


def _discard() -> None:
    """Have what is still buffered go nowhere, or Python would complain when it ends."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
