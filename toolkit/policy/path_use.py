"""What a command does to a path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from toolkit.policy.words import Word, literal

__all__ = ["GLOBBED", "HERE", "UNCLEAR", "Access", "Found", "PathUse"]

Access = Literal["read", "write", "delete"]


@dataclass(frozen=True, slots=True)
class PathUse:
    """What a command does to a path.

    Attributes:
        access: What is done.
        word: The path as the command has it.
        tree: True when all that is beneath it is meant too.
    """

    access: Access
    word: Word
    tree: bool = False


#: A path that is used, or why nobody can say which are.
Found = Iterator[PathUse | str]

#: The working folder.
HERE = literal(".")
#: Why not all paths are known.
UNCLEAR = "its arguments are known only when it runs"
GLOBBED = "a wildcard may find a file that is named like an option; write ./* for it"
