"""What a container is at the moment, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from operations import BackendUnavailable

if TYPE_CHECKING:
    from docker import APIClient

__all__ = ["find_container", "state_listed", "state_of"]

_SERVICE = "com.docker.compose.service"
#: Characters of an id that docker shows.
_SHORT_ID = 12


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
    found = _find_exactly(api, name)
    if found is None:
        found = api.inspect_container(_find_elsewhere(api, name, target))
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


def state_listed(api: APIClient, container: str) -> str | None:
    """Return the same from Docker's list, which waits for no container.

    Docker 20.10 does not answer about one container while it waits for a frozen process of its.
    """
    found = api.containers(all=True, filters={"id": container})
    if not found:
        return "the container was removed"
    state = str(found[0]["State"])
    return "the container has stopped" if state == "exited" else _in_words({"Status": state})


def _find_exactly(api: APIClient, name: str) -> dict[str, Any] | None:
    """Return the container with a name or an id.

    The Docker engine takes the beginning of an id too, but the name of a service may look like one
    ("db", "cafe"): what is shorter than it shows ids itself counts only where nothing else does.
    """
    from docker.errors import NotFound

    if "/" in name.lstrip("/") or not name.strip("./"):
        return None  # no name, but a meaning in a path
    try:
        found = api.inspect_container(name)
    except NotFound:
        return None
    named = found["Name"].lstrip("/") == name.lstrip("/")
    return found if named or len(name) >= _SHORT_ID else None


def _find_elsewhere(api: APIClient, name: str, target: str) -> str:
    """Return the id of the one container of a compose service, or with the beginning of an id."""
    found = api.containers(all=True, filters={"label": f"{_SERVICE}={name}"})
    running = [container for container in found if container["State"] == "running"] or found
    if not running:
        running = [each for each in api.containers(all=True) if each["Id"].startswith(name)]
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
