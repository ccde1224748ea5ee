"""Lines of a file with their numbers, in the colours of its language."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from toolkit.rendering.plain import more_lines

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["code_view"]

#: Over this, colours cost more than they are worth.
_MOST_COLOURED = 200_000
_TAB = 4


def code_view(
    lines: Sequence[str],
    language: str | None,
    *,
    first: int = 1,
    sign: str = "",
    max_lines: int | None = None,
) -> RenderableType:
    """Return lines with numbers beside them.

    Args:
        lines: Without their ends, and with nothing in them that acts on a terminal.
        language: Its name as `language_of` gives it, or None.
        first: The number of the first line.
        sign: Stands between number and line, as "+" for what is new.
        max_lines: Show at most so many; None for all.
    """
    # A table measures its columns before a terminal makes tabs wider.
    shown = [line.expandtabs(_TAB) for line in lines[:max_lines]]
    code = "\n".join(shown)
    coloured = _coloured(code, language) if len(code) <= _MOST_COLOURED else Text(code)
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(justify="right", style="dim", no_wrap=True)
    if sign:
        table.add_column(style="green", no_wrap=True)
    table.add_column(overflow="fold")
    for number, line in enumerate(coloured.split("\n", allow_blank=True), first):
        table.add_row(str(number), *([sign] if sign else []), line)
    if len(shown) == len(lines):
        return table
    return Group(table, more_lines(len(lines) - len(shown)))


def _coloured(code: str, language: str | None) -> Text:
    if language is None:
        return Text(code)
    syntax = Syntax("", language, theme=_theme(), tab_size=_TAB)
    if syntax.lexer is None:
        return Text(code)
    text = syntax.highlight(code)
    # It ends every text with a newline, and paints over the terminal's own background.
    if len(text.plain) > len(code):
        text.right_crop(len(text.plain) - len(code))
    text.style = ""
    return text


def _theme() -> str:
    """Return the colours that go with the terminal; what it says of itself is "fg;bg"."""
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return "ansi_light" if background in ("7", "15") else "ansi_dark"
