"""Remove containers whose owner is gone, where their lease has not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.docker.daemon import acquire, release
from backends.docker.labels import OWNER, abandoned
from backends.docker.sandbox import remove_container

if TYPE_CHECKING:
    from docker import APIClient

__all__ = ["prune"]

_TARGET = "docker prune"


async def prune(engine: str | None = None, *, deadline_s: float = 60.0) -> list[str]:
    """Remove the containers that ended processes of this machine had started; return their names.

    Args:
        engine: The Docker engine's address; None for the one that `docker` would use.
        deadline_s: Seconds until an engine that says nothing counts as not there.

    Raises:
        BackendUnavailable: No engine answers.
    """
    daemon = await acquire(engine, _TARGET, deadline_s)
    try:
        return await daemon.run(_prune, _TARGET, deadline_s)
    finally:
        release(daemon)


def _prune(api: APIClient) -> list[str]:
    removed = []
    for container in api.containers(all=True, filters={"label": OWNER}):
        if abandoned(container["Labels"]):
            remove_container(api, container["Id"])
            names = container["Names"] or [container["Id"][:12]]  # one that is going has none
            removed.append(str(names[0]).lstrip("/"))
    return sorted(removed)
