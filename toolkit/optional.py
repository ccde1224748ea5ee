"""Which optional operations an object has: looked at once, when a tool is created."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from operations import (
        ImageDetectingReadOperations,
        ReplaceOperations,
        TailBashOperations,
        TargetFacts,
        TargetOperations,
        VersionedReadOperations,
        WindowReadOperations,
    )

__all__ = ["OptionalOperations", "optional_operations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionalOperations:
    """The optional roles of one object; None for each that it lacks."""

    window: WindowReadOperations | None
    images: ImageDetectingReadOperations | None
    replace: ReplaceOperations | None
    versioned: VersionedReadOperations | None
    tail: TailBashOperations | None
    target: TargetOperations | None

    def facts(self) -> TargetFacts | None:
        """Return what is known of the target by now."""
        return None if self.target is None else self.target.facts


def optional_operations(operations: object, *needed: str) -> OptionalOperations:
    """Look at an operations object.

    Args:
        operations: What a tool was given.
        needed: Names of the methods that the tool cannot do without.

    Raises:
        TypeError: One of them is missing, or the object is a bare mock, which seems to have every
            method there is.
    """
    _refuse_bare_mock(operations)
    missing = [name for name in needed if not _has(operations, name)]
    if missing:
        raise TypeError(
            f"operations lacks {', '.join(f'{name}()' for name in missing)}: "
            f"{type(operations).__name__} is not enough for this tool"
        )

    def role(name: str) -> Any:
        return operations if _has(operations, name) else None

    return OptionalOperations(
        window=role("read_lines"),
        images=role("detect_image_mime_type"),
        replace=role("replace_file"),
        versioned=role("read_versioned"),
        tail=role("exec_tail"),
        # Not looked at by value: it may be a property that is None before the first connection.
        target=cast("TargetOperations", operations) if hasattr(operations, "facts") else None,
    )


def _has(operations: object, name: str) -> bool:
    return callable(getattr(operations, name, None))


def _refuse_bare_mock(operations: object) -> None:
    # Whoever made a mock has imported this; nobody else should have to.
    mocks = sys.modules.get("unittest.mock")
    if mocks is None or not isinstance(operations, mocks.NonCallableMock):
        return
    if operations._mock_methods is None:  # noqa: SLF001 - the only place where a spec shows
        raise TypeError(
            "operations is a mock without a spec, which seems to have every method; give it one "
            "(Mock(spec=ReadOperations)) or use a class with the methods that the tool needs"
        )
