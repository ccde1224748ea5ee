"""A secret that somebody types on the terminal: not shown, and an interrupt ends the question."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
from collections.abc import Iterator

import anyio

__all__ = ["ask_secret"]

#: kqueue refuses /dev/tty, and a thread that reads there could not be interrupted.
_LOOK_S = 0.05
_LOCAL_FLAGS = 3


async def ask_secret(prompt: str) -> str:
    """Return a line that is typed on the terminal; "" at the end of its input.

    Its echo is off meanwhile, and restored however this ends, by cancellation too.

    Args:
        prompt: What to show first.
    """
    typed = b""
    with contextlib.suppress(OSError, termios.error), _quiet_terminal() as terminal:
        os.write(terminal, prompt.encode(errors="backslashreplace"))
        while not typed.endswith(b"\n"):
            if not select.select([terminal], [], [], 0)[0]:
                await anyio.sleep(_LOOK_S)
            elif piece := os.read(terminal, 1 << 12):
                typed += piece
            else:
                break
    return typed.decode(errors="replace").rstrip("\r\n")


@contextlib.contextmanager
def _quiet_terminal() -> Iterator[int]:
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:  # it is there, but not ours to control
        terminal = os.dup(sys.stdin.fileno())
    try:
        before = termios.tcgetattr(terminal)
        quiet = before[:]
        quiet[_LOCAL_FLAGS] &= ~termios.ECHO
        # What was typed before the question is no answer to it.
        termios.tcsetattr(terminal, termios.TCSAFLUSH, quiet)
        try:
            yield terminal
        finally:
            with contextlib.suppress(OSError, termios.error):  # it is gone
                termios.tcsetattr(terminal, termios.TCSANOW, before)
                os.write(terminal, b"\n")  # the one that was typed was not shown
    finally:
        os.close(terminal)
