"""How text that a target has said gets to a terminal: bounded, and nothing in it acts there."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

__all__ = ["named", "shown", "styled"]

_ENV = re.compile(r"([?&]env=[^=&]*=)[^&]*")


def named(target: str) -> str:
    """Return a target's URL without the values of environment variables, which may be secrets."""
    return _ENV.sub(r"\1...", target)


def shown(text: str, most_chars: int = 200) -> str:
    r"""Return text for one place in a line; what is not plainly printable is escaped (`\x1b`).

    Args:
        text: What somebody else has said.
        most_chars: What is longer is cut, and ends with "...".
    """
    cut = text if len(text) <= most_chars else text[: most_chars - 3] + "..."
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut)


def styled(text: str, **style: Any) -> str:
    """Return text in a style of `typer.style`, or as it is where nobody would see one.

    That is where standard output is no terminal, and where NO_COLOR is set (no-color.org).
    """
    out = sys.stdout
    if out is None or not out.isatty() or os.environ.get("NO_COLOR"):
        return text
    import typer

    return typer.style(text, **style)
