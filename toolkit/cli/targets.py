"""Our own `backends`, and no other package of that name: what can be named, and what opens it."""

from __future__ import annotations

import backends

__all__ = ["TARGETS", "open_target"]

if getattr(backends, "REMOTEHANDS_PACKAGE", None) != "backends":
    raise ImportError(
        f"the package 'backends' that was imported ({backends.__path__[0]}) is not that of "
        f"remotehands, which stands beside {__file__}; start from another folder or rename it"
    )

from backends.targets import TARGETS, open_target
