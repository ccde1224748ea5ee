"""The places where tools can act; import the one you need (`backends.local`, `backends.memory`)."""

from __future__ import annotations

#: Lets `toolkit` tell this package from another project's `backends` folder.
REMOTEHANDS_PACKAGE = "backends"
