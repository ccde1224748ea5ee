"""Under which key writers of one file wait for each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.paths import path_key

if TYPE_CHECKING:
    from operations import TargetFacts

__all__ = ["mutation_key"]


def mutation_key(operations: object, facts: TargetFacts | None, path: str) -> tuple[str, str]:
    """Return (machine, lexically normal path): equal for two ways to write one path.

    Args:
        operations: Stands for the machine where nothing is known about it.
        facts: What is known about the target.
        path: A resolved path.
    """
    if facts is None:
        return f"object {id(operations)}", path_key(path)
    if path == "~" or path.startswith("~/"):
        path = facts.home.rstrip("/") + path[1:]
    return facts.machine_id, path_key(path)
