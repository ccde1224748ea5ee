"""Text of strangers, made so that nothing in it acts on a terminal or hides what it says."""

from __future__ import annotations

import re
import unicodedata

from rich.text import Text

__all__ = ["more_lines", "visible"]

#: Controls, and format characters: what reverses text, hides it or has no width.
_UNSEEN = re.compile(r"[^\x20-\x7e\u00a0-\u00ac\u00ae-\u05ff]")


def visible(text: str, keep: str = "") -> str:
    r"""Return text whose controls and invisible characters are escaped (`\x1b`, `\u202e`).

    Args:
        text: What somebody else has said.
        keep: Characters that are left alone, such as newlines.
    """

    def escaped(found: re.Match[str]) -> str:
        char = found[0]
        if char in keep or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            return char
        # A zero-width joiner holds many a picture together, and turns nothing round.
        return char if char == "\u200d" else ascii(char)[1:-1]

    return _UNSEEN.sub(escaped, text)


def more_lines(count: int) -> Text:
    """Return what stands for lines that are not shown."""
    return Text(f"... {count} more line{'' if count == 1 else 's'}", "dim italic")
