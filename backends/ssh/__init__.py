"""Hosts that are reached over SSH as places to act."""

from __future__ import annotations

from backends.ssh.backend import SshBackend

__all__ = ["SshBackend"]
