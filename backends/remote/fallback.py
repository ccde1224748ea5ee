"""From an engine to lanes of sh, for a target that turns out to have no Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from operations import BackendUnavailable

if TYPE_CHECKING:
    from backends.remote.lanes import LaneOpener
    from backends.remote.shell_backend import ShellBackend

__all__ = ["OPERATIONS", "lacks_python", "shell_backend"]

#: The methods that a backend has for its tools.
OPERATIONS = (
    "access",
    "detect_image_mime_type",
    "exec",
    "exec_tail",
    "exists",
    "glob",
    "grep",
    "is_directory",
    "list_directory",
    "make_directory",
    "read_file",
    "read_lines",
    "read_versioned",
    "replace_file",
    "write_file",
)
#: What `bootstrap.shell_argv` and the bootstrap itself say on such a target.
_SAYS = ("no python3 here", "exit status 127", "the engine needs Python")
_NOT_CONFINED = (
    "there is no Python, and a shell alone cannot confine file tools to a root folder: links could "
    "be swapped between a look and the use"
)
_SETTINGS = ("grace_s", "keep_background", "keep_output", "kept_cap")


def lacks_python(error: BaseException) -> bool:
    """Return True for the failure to connect that a target without a fitting Python gives."""
    return any(says in str(error) for says in _SAYS)


def shell_backend(
    open_lane: LaneOpener,
    *,
    target: str,
    cwd: str,
    env: Mapping[str, str],
    connect_timeout_s: float,
    lease_s: float | None,
    settings: Mapping[str, Any],
) -> ShellBackend:
    """Return the backend over lanes that takes an engine's place.

    Args:
        open_lane: Opens a channel to a program given by its argv.
        target: As for `RemoteBackend`.
        cwd: As for `RemoteBackend`.
        env: As for `RemoteBackend`.
        connect_timeout_s: As for `RemoteBackend`.
        lease_s: As for `RemoteBackend`.
        settings: Options of the engine's commands; those that lanes have too are heeded.

    Raises:
        BackendUnavailable: They ask for a root folder.
    """
    if "root" in settings:
        raise BackendUnavailable(target, _NOT_CONFINED)
    # Most targets have Python, and need neither this nor the search that goes with it.
    from backends.remote.shell_backend import ShellBackend

    heeded = {name: settings[name] for name in _SETTINGS if name in settings}
    return ShellBackend(
        open_lane,
        target=target,
        cwd=cwd,
        env=env,
        connect_timeout_s=connect_timeout_s,
        lease_s=lease_s,
        **heeded,
    )
