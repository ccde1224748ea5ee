"""The beats that keep a container of ours alive: as long as we live, and not much longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from backends.docker.daemon import Daemon
from backends.docker.stream import HijackedStream, StreamClosed
from operations import BackendUnavailable

if TYPE_CHECKING:
    from docker import APIClient

__all__ = ["LEASE_SCRIPT", "keep_alive"]

#: A container's first program: it ends when no line has come on its stdin for $1 seconds. POSIX sh
#: cannot read with a limit, so a second shell reads and signals. The end of stdin ends nothing by
#: itself: an engine that restarts, or a lost network, is not our death.
LEASE_SCRIPT = """
trap : USR1; trap 'exit 0' USR2; trap '' TERM INT HUP
exec 3<&0 </dev/null
(while read -r _; do kill -USR1 $$; done <&3) &
exec 3<&-
while sleep "$1" & wait $!; [ $? -gt 128 ]; do kill -9 $!; done
"""
_BEATS_PER_LEASE = 3


async def keep_alive(daemon: Daemon, container: str, lease_s: float, target: str) -> None:
    """Send a beat three times a lease, until cancelled; connect again after a loss.

    Args:
        daemon: Where the container is.
        container: The container's id.
        lease_s: What the container was started with.
        target: The target as the user named it.
    """
    stream: HijackedStream | None = None
    interval_s = lease_s / _BEATS_PER_LEASE
    try:
        while True:
            try:
                if stream is None:
                    stream = await daemon.run(
                        lambda api: _attach(api, container),
                        target,
                        interval_s,
                        discard=lambda _api, attached: attached.close(),
                    )
                with anyio.move_on_after(interval_s):
                    await stream.send(b"\n")
            except BackendUnavailable:
                pass  # operations say so; a container that is gone needs no beat
            except StreamClosed:
                _close(stream)
                stream = None
            await anyio.sleep(interval_s)
    finally:
        _close(stream)


def _close(stream: HijackedStream | None) -> None:
    if stream is not None:
        stream.close()


def _attach(api: APIClient, container: str) -> HijackedStream:
    return HijackedStream(api.attach_socket(container, params={"stdin": 1, "stream": 1}))
