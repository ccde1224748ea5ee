"""What a container is at the moment, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from operations import BackendUnavailable

if TYPE_CHECKING:
    from docker import APIClient

__all__ = ["find_container", "state_of"]

_SERVICE = "com.docker.compose.service"


def find_container(api: APIClient, name: str, target: str) -> dict[str, Any]:
    """Return what the Docker engine knows of a running container.

    Args:
        api: The SDK's client; this asks the Docker engine, so in a thread.
        name: Its name, its id or the beginning of that, or the name of a compose service that is
            one container.
        target: The target as the user named it, for errors.

    Raises:
        BackendUnavailable: There is none, or it cannot run anything now; its state is named.
    """
    from docker.errors import NotFound

    try:
        found = api.inspect_container(name)
    except NotFound:
        found = api.inspect_container(_find_service(api, name, target))
    if state := _in_words(found["State"]):
        raise BackendUnavailable(target, state)
    return dict(found)


def state_of(api: APIClient, container: str) -> str | None:
    """Return what a container is, as a sentence part, or None if it runs."""
    from docker.errors import NotFound

    try:
        return _in_words(api.inspect_container(container)["State"])
    except NotFound:
        return "the container was removed"


def _find_service(api: APIClient, name: str, target: str) -> str:
    """Return the id of the one container of a compose service."""
    found = api.containers(all=True, filters={"label": f"{_SERVICE}={name}"})
    running = [container for container in found if container["State"] == "running"] or found
    if not running:
        raise BackendUnavailable(target, f"there is no container and no compose service {name!r}")
    if len(running) > 1:
        names = ", ".join(sorted(container["Names"][0].lstrip("/") for container in running))
        raise BackendUnavailable(target, f"{name!r} is {len(running)} containers: {names}")
    return str(running[0]["Id"])


def _in_words(state: dict[str, Any]) -> str | None:
    status = state.get("Status")
    if status == "running":
        return None
    if status == "exited":
        killed = ", out of memory" if state.get("OOMKilled") else ""
        return f"the container has stopped (exit status {state.get('ExitCode')}{killed})"
    words = {
        "created": "the container was not started",
        "paused": "the container is paused",
        "restarting": "the container is restarting",
        "removing": "the container is being removed",
    }
    return words.get(str(status), f"the container is {status}")
