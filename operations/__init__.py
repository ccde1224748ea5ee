"""Promises between tools and the places where they act: Protocols, values, errors. No I/O."""

from __future__ import annotations

from operations.bash import BashOperations, TailBashOperations
from operations.edit import EditOperations, VersionedReadOperations
from operations.errors import (
    BackendUnavailable,
    ConnectionLost,
    FileChanged,
    InvalidPattern,
    NotRegularFile,
    OperationError,
    OperationUnsupported,
    OutsideRoot,
    PathDenied,
    PathError,
    PathExists,
    PathIsDirectory,
    PathNotDirectory,
    PathNotFound,
    SearchTimeout,
    StorageFull,
    TooLarge,
)
from operations.find import FindOperations
from operations.grep import GrepOperations
from operations.ls import LsOperations
from operations.read import ImageDetectingReadOperations, ReadOperations, WindowReadOperations
from operations.target import TargetOperations
from operations.values import (
    DirectoryListing,
    Entry,
    EntryKind,
    ExecResult,
    FileVersion,
    GlobResult,
    GrepContext,
    GrepMatch,
    GrepQuery,
    GrepResult,
    LineWindow,
    OutputSnapshot,
    Progress,
    StopSignal,
    TargetFacts,
    VersionedContent,
    WriteResult,
)
from operations.write import ReplaceOperations, WriteOperations

#: Lets `toolkit` and `backends` tell this package from another project's `operations` folder.
REMOTEHANDS_PACKAGE = "operations"

__all__ = [
    "BackendUnavailable",
    "BashOperations",
    "ConnectionLost",
    "DirectoryListing",
    "EditOperations",
    "Entry",
    "EntryKind",
    "ExecResult",
    "FileChanged",
    "FileVersion",
    "FindOperations",
    "GlobResult",
    "GrepContext",
    "GrepMatch",
    "GrepOperations",
    "GrepQuery",
    "GrepResult",
    "ImageDetectingReadOperations",
    "InvalidPattern",
    "LineWindow",
    "LsOperations",
    "NotRegularFile",
    "OperationError",
    "OperationUnsupported",
    "OutputSnapshot",
    "OutsideRoot",
    "PathDenied",
    "PathError",
    "PathExists",
    "PathIsDirectory",
    "PathNotDirectory",
    "PathNotFound",
    "Progress",
    "ReadOperations",
    "ReplaceOperations",
    "SearchTimeout",
    "StopSignal",
    "StorageFull",
    "TailBashOperations",
    "TargetFacts",
    "TargetOperations",
    "TooLarge",
    "VersionedContent",
    "VersionedReadOperations",
    "WindowReadOperations",
    "WriteOperations",
    "WriteResult",
]
