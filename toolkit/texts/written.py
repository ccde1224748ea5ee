"""How a file was written, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from operations import WriteResult

__all__ = ["in_place_note"]

_REASONS = {
    "attributes": "it has attributes that a new file could not be given",
    "folder_not_writable": "its folder takes no new names",
    "hard_links": "it has several names (hard links)",
    "mount_point": "it is a mount point",
    "owner": "its owner could not be given to a new file",
}


def in_place_note(written: WriteResult) -> str:
    """Say that a file was not replaced by one rename, and why."""
    reason = _REASONS.get(written.reason or "", written.reason or "it could not be renamed over")
    return f"Written in place, not replaced at once: {reason}."
