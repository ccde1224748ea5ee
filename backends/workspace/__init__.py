"""Folders between this machine and a target: put in, taken out, or taken out as a patch."""

from __future__ import annotations

from backends.workspace.archive import Limits, NotAnArchive, TooManyEntries
from backends.workspace.baseline import Baseline
from backends.workspace.folders import Taken, put_folder, take_folder, take_patch
from backends.workspace.progress import FolderProgress

__all__ = [
    "Baseline",
    "FolderProgress",
    "Limits",
    "NotAnArchive",
    "Taken",
    "TooManyEntries",
    "put_folder",
    "take_folder",
    "take_patch",
]
