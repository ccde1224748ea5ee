"""Containers of our own: how little they may do, and how they are made."""

from __future__ import annotations

import io
import secrets
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backends.docker.labels import OWNER, abandoned, labels
from backends.docker.lease import LEASE_SCRIPT
from backends.docker.options import check_sandbox
from operations import BackendUnavailable

if TYPE_CHECKING:
    from docker import APIClient

__all__ = ["Sandbox", "image_candidates", "make_container", "remove_container"]

#: Where tools work when the image names no folder.
_WORKSPACE = "/workspace"
#: Ends the lease; TERM it ignores, since a model's `pkill sh` sends that.
_STOP_SIGNAL = "SIGUSR2"
#: How long docker may take to remove a container that it is removing already.
_GONE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What a container of ours may do; the defaults are the least, each is one option to relax.

    Attributes:
        user: Whom commands run as, "uid:gid" or a name that the image has; "0:0" for root.
        network: Docker's network mode; "bridge" for docker's own way out.
        memory: Most memory, without swap, as docker writes it ("2g").
        cpus: Most processor time, in processors.
        pids: Most processes and threads; -1 for no limit.
        read_only: The root is read-only; /tmp, /run and the workspace can be written.
        tmp_size: Size of the tmpfs on /tmp, of `memory`.
        capabilities: Kernel capabilities to leave in, as ("CHOWN",); all others are dropped.
        new_privileges: Programs with the setuid bit may use it.
        init: A small init reaps orphans; without it they stay zombies.
        seccomp: A profile, as text, or "unconfined"; None for docker's default.
        runtime: The OCI runtime, as "runsc"; None for docker's default.
        mount: A folder of the engine's machine that becomes the workspace; None for a volume of
            its own, which goes with the container.

    Raises:
        ValueError: A field cannot have that value; the text says which and what it can have.
    """

    user: str = "1000:1000"
    network: str = "none"
    memory: str = "2g"
    cpus: float = 1.0
    pids: int = 512
    read_only: bool = True
    tmp_size: str = "512m"
    capabilities: tuple[str, ...] = ()
    new_privileges: bool = False
    init: bool = True
    seccomp: str | None = None
    runtime: str | None = None
    mount: str | None = None

    def __post_init__(self) -> None:
        check_sandbox(self)


def image_candidates(text: str) -> list[tuple[str, str | None]]:
    """Return what "IMAGE" or "IMAGE/dir" may mean, best first: pairs of image and folder.

    Both may hold slashes, so the longest image that exists is meant; "IMAGE//dir" leaves no doubt.
    """
    image, separator, folder = text.partition("//")
    if separator:
        return [(image, "/" + folder.lstrip("/"))]
    parts = text.split("/")
    return [(text, None)] + [
        ("/".join(parts[:count]), "/" + "/".join(parts[count:]))
        for count in range(len(parts) - 1, 0, -1)
    ]


def make_container(
    api: APIClient,
    text: str,
    sandbox: Sandbox,
    *,
    workspace: str | None,
    env: Mapping[str, str],
    lease_s: float,
    target: str,
) -> tuple[str, str]:
    """Start a container that waits; return its id and its workspace.

    Args:
        api: The SDK's client; this asks the Docker engine, so in a thread.
        text: See `image_candidates`.
        sandbox: What it may do.
        workspace: The folder that tools work in; None for what `text` or the image says.
        env: Variables of the container.
        lease_s: Seconds without a beat after which it ends by itself.
        target: The target as the user named it, for errors.

    Raises:
        BackendUnavailable: There is no such image here; none is ever downloaded.
    """
    from docker.types import Mount

    image, folder, config = _find_image(api, text, target)
    own = str(config.get("WorkingDir") or "")
    workspace = workspace or folder or (own if own.strip("/") else _WORKSPACE)
    volumes: dict[str, Any] = {}
    holder = None
    if sandbox.mount is None:
        holder = _make_volume(api, image, workspace, sandbox.user)
        volumes["volumes_from"] = [holder]
    else:
        volumes["mounts"] = [Mount(workspace, sandbox.mount, type="bind")]
    made = None
    try:
        made = api.create_container(
            image,
            name=f"remotehands-{secrets.token_hex(6)}",
            entrypoint=["/bin/sh", "-c", LEASE_SCRIPT, "remotehands-lease"],
            command=[f"{lease_s:g}"],
            stdin_open=True,
            user=sandbox.user,
            # A user that the image does not know has "/" for home, where nothing can be written.
            environment={**({"HOME": "/tmp"} if sandbox.read_only else {}), **env},  # noqa: S108
            working_dir=workspace,
            labels=labels(),
            stop_signal=_STOP_SIGNAL,
            healthcheck={"test": ["NONE"]},
            host_config=api.create_host_config(
                **_limits(sandbox, podman=_is_podman(api)), **volumes
            ),
        )
        api.start(made["Id"])
    except BaseException:
        if made is not None:
            remove_container(api, str(made["Id"]))
        raise
    finally:
        if holder is not None:
            # Not before: docker forgets the volume of a container that does not start. One that
            # the new container uses stays.
            remove_container(api, holder)
    return str(made["Id"]), workspace


def remove_container(api: APIClient, container: str) -> None:
    """Kill and remove a container and its own volumes; fine when it is gone or going."""
    from docker.errors import APIError

    end = time.monotonic() + _GONE_S
    while True:
        try:
            api.remove_container(container, force=True, v=True)
        except APIError as error:
            if error.status_code == 404:
                return
            if error.status_code != 409 or time.monotonic() > end:
                raise
            time.sleep(0.02)  # docker's own auto-removal is at it


def _find_image(api: APIClient, text: str, target: str) -> tuple[str, str | None, dict[str, Any]]:
    from docker.errors import APIError

    for image, folder in image_candidates(text):
        try:
            found = api.inspect_image(image)
        except APIError as error:
            if error.status_code not in (400, 404):
                raise
        else:
            return str(found["Id"]), folder, dict(found.get("Config") or {})
    raise BackendUnavailable(target, f"the engine has no image {text!r}; `docker pull` brings one")


def _limits(sandbox: Sandbox, *, podman: bool) -> dict[str, Any]:
    access = _access_to_mount(sandbox.user, podman=podman)
    options = [] if sandbox.new_privileges else ["no-new-privileges"]
    if sandbox.seccomp is not None:
        options.append(f"seccomp={sandbox.seccomp}")
    return {
        "auto_remove": True,
        "cap_drop": ["ALL"],
        "cap_add": list(sandbox.capabilities),
        "security_opt": options,
        "read_only": sandbox.read_only,
        # Programs are built and run in /tmp; what may be run at all is not decided there.
        "tmpfs": {
            "/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={sandbox.tmp_size}",  # noqa: S108
            "/run": f"rw,noexec,nosuid,nodev,size=16m,{access}",
        },
        "network_mode": sandbox.network,
        "mem_limit": sandbox.memory,
        "memswap_limit": sandbox.memory,
        "nano_cpus": int(sandbox.cpus * 1e9),
        "pids_limit": sandbox.pids,
        "init": sandbox.init,
        "runtime": sandbox.runtime,
    }


def _is_podman(api: APIClient) -> bool:
    """Tell Podman's Docker-compatible service from Docker."""
    components = api.version().get("Components") or ()
    return any("podman" in str(component.get("Name")).lower() for component in components)


def _access_to_mount(user: str, *, podman: bool) -> str:
    """Return options that let a user write to a tmpfs; runc gives it the mode of what it covers."""
    uid, _, gid = user.partition(":")
    if podman:  # which takes no owner
        return "mode=1777"
    return (
        f"mode=755,uid={uid},gid={gid if gid.isdigit() else uid}" if uid.isdigit() else "mode=755"
    )


def _make_volume(api: APIClient, image: str, workspace: str, user: str) -> str:
    """Make a workspace that is the user's; return the id of a container that holds it.

    A new volume is root's, root without capabilities could not give it away, and a container with
    a read-only root takes no archive above a volume. So this one is made, and never started.
    """
    from docker.types import Mount

    # One whose maker was killed in this moment has no lease: it was never started.
    for left in api.containers(all=True, filters={"label": OWNER, "status": "created"}):
        if abandoned(left["Labels"]):
            remove_container(api, left["Id"])
    made = api.create_container(
        image,
        ["true"],
        name=f"remotehands-{secrets.token_hex(6)}-workspace",
        labels=labels(),
        host_config=api.create_host_config(
            mounts=[Mount(workspace, None, type="volume")], network_mode="none"
        ),
    )
    holder = str(made["Id"])
    try:
        api.put_archive(holder, "/", _folder_of(user, workspace))
    except BaseException:
        remove_container(api, holder)
        raise
    return holder


def _folder_of(user: str, folder: str) -> bytes:
    """Return a tar of one folder, a user's.

    Who a name is can only be looked up inside; then it is everybody's, of whom there is one.
    """
    uid, _, gid = user.partition(":")
    entry = tarfile.TarInfo(folder.strip("/") + "/")
    entry.type = tarfile.DIRTYPE
    entry.mtime = time.time()
    entry.mode = 0o755 if uid.isdigit() else 0o1777
    entry.uid = int(uid) if uid.isdigit() else 0
    entry.gid = int(gid) if gid.isdigit() else entry.uid
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        tar.addfile(entry)
    return data.getvalue()
