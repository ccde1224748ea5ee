"""The same calls on many hosts at once."""

from __future__ import annotations

from toolkit.fleet.fleet import Fleet, HostMessage, MakeRunner
from toolkit.fleet.host import HostState, HostStatus

__all__ = ["Fleet", "HostMessage", "HostState", "HostStatus", "MakeRunner"]
