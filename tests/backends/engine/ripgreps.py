"""The ripgreps of this machine, for tests that compare them with our own engine."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def programs() -> list[str]:
    """Return the path of each ripgrep there is: the tests' own, and the system's."""
    beside = Path(sys.executable).parent / "rg"
    found = [beside, Path("/usr/bin/rg"), Path(shutil.which("rg") or "/nowhere/rg")]
    return sorted({os.path.realpath(path) for path in found if path.exists()})
