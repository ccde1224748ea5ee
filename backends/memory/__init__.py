"""A place in memory: the double to test agents with, and a machine where nothing can break."""

from __future__ import annotations

from backends.memory.access import TreeAccess
from backends.memory.backend import MemoryBackend
from backends.memory.clock import Clock, LoopClock, ManualClock
from backends.memory.commands import (
    CommandOutput,
    CommandRun,
    Handler,
    Matcher,
    RecordedCommand,
)
from backends.memory.faults import Call, FaultRule, Faults
from backends.memory.nodes import Stat
from backends.memory.seed import Directory, File, Special, Symlink

__all__ = [
    "Call",
    "Clock",
    "CommandOutput",
    "CommandRun",
    "Directory",
    "FaultRule",
    "Faults",
    "File",
    "Handler",
    "LoopClock",
    "ManualClock",
    "Matcher",
    "MemoryBackend",
    "RecordedCommand",
    "Special",
    "Stat",
    "Symlink",
    "TreeAccess",
]
