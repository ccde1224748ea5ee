"""What a place can tell about itself."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from operations.values import TargetFacts

__all__ = ["TargetOperations"]


@runtime_checkable
class TargetOperations(Protocol):
    """Describe the target; a mock may leave this out."""

    @property
    def facts(self) -> TargetFacts | None:
        """What connecting told about the target; None before the first connection."""
        ...
