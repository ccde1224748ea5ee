"""Any machine that a program gives a shell on, through its stdin and stdout."""

from __future__ import annotations

from backends.command.backend import CommandBackend

__all__ = ["CommandBackend"]
