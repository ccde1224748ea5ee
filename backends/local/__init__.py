"""This machine as a place to act."""

from __future__ import annotations

from backends.local.backend import LocalBackend
from backends.local.engine_target import EngineBackend

__all__ = ["EngineBackend", "LocalBackend"]
