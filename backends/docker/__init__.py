"""Containers of a Docker engine as places to act."""

from __future__ import annotations

from backends.docker.backend import DockerBackend
from backends.docker.prune import prune

__all__ = ["DockerBackend", "prune"]
