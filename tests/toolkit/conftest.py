"""Settings of the toolkit's tests."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is no fault of the code; what must be fast says so in its own test.
settings.register_profile("toolkit", deadline=None)
settings.load_profile("toolkit")
