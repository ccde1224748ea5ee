"""What a Docker engine tells of a container: what it is, and how little it may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docker import APIClient

__all__ = ["describe_container"]


def describe_container(api: APIClient, container: str) -> dict[str, dict[str, Any]]:
    """Return plain facts about a container and its Docker engine, by topic and name.

    None is what the engine has not told, or "no limit". Sizes are bytes.

    Args:
        api: The SDK's client; this asks the Docker engine twice, so in a thread.
        container: The container's id.
    """
    found = api.inspect_container(container)
    version = api.version()
    config, host = found.get("Config") or {}, found.get("HostConfig") or {}
    memory, swap = host.get("Memory") or None, host.get("MemorySwap") or None
    return {
        "container": {
            "id": found.get("Id"),
            "name": str(found.get("Name") or "").lstrip("/"),
            "image": config.get("Image"),
            "runtime": host.get("Runtime"),
            "user": config.get("User") or "root",
            "network": host.get("NetworkMode"),
            "read_only": bool(host.get("ReadonlyRootfs")),
            "privileged": bool(host.get("Privileged")),
            "capabilities_dropped": list(host.get("CapDrop") or ()),
            "capabilities_added": list(host.get("CapAdd") or ()),
            "security_options": list(host.get("SecurityOpt") or ()),
            "init": bool(host.get("Init")),
            "memory": memory,
            "swap": swap - memory if memory and swap and swap >= memory else None,
            "cpus": (host.get("NanoCpus") or 0) / 1e9 or None,
            "pids": _limit(host.get("PidsLimit")),
        },
        "docker": {
            "engine": version.get("Version"),
            "api": api.api_version,
            "system": f"{version.get('Os')}/{version.get('Arch')}",
        },
    }


def _limit(value: int | None) -> int | None:
    """Return a limit; Docker says 0 or -1 where there is none."""
    return value if value and value > 0 else None
