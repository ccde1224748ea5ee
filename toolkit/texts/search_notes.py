"""What a search says besides its results: what was left out, and why. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.paths import join_given
from toolkit.texts.text import escape_name

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["rooted_notes", "unreadable_note"]


def rooted_notes(glob: str | None) -> list[str]:
    """Explain why a glob that is written as a whole path fits nothing; no note for any other."""
    if glob is None or not glob.startswith(("/", "~")):
        return []
    return [f"{glob} is looked for below path, not from the root; give the folder as path."]


def unreadable_note(folder: str | None, paths: Sequence[str], total: int) -> str:
    """Name what could not be read.

    Args:
        folder: The folder that was searched, as the model gave it.
        paths: Some of the paths, relative to it.
        total: How many there were.
    """
    named = ", ".join(escape_name(join_given(folder, path)) for path in paths)
    more = f" and {total - len(paths)} more" if total > len(paths) else ""
    return f"Could not be read: {named}{more}."
