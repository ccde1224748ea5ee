"""Ask Docker about a container that says nothing: it knows at once when one is paused or gone."""

from __future__ import annotations

import contextlib
import weakref

import anyio

from backends.docker.channel import ExecChannel
from backends.docker.daemon import Daemon
from backends.docker.state import state_listed
from operations import BackendUnavailable

__all__ = ["SilenceWatch"]

#: How long a container may say nothing to what it was sent before Docker is asked.
_SILENT_S = 3.0
_LOOK_EVERY_S = 1.0
_ASK_S = 10.0


class SilenceWatch:
    """Break off the channels into a container that cannot answer.

    Without it a paused container is found out by the pings that nobody answers, which has to be
    patient with a busy machine.

    Args:
        daemon: Where the container is.
        target: The target as the user named it, for errors.
    """

    def __init__(self, daemon: Daemon, target: str) -> None:
        self._daemon = daemon
        self._target = target
        self._channels: weakref.WeakSet[ExecChannel] = weakref.WeakSet()

    def add(self, channel: ExecChannel) -> None:
        """Watch a channel for as long as somebody holds it."""
        self._channels.add(channel)

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            await anyio.sleep(_LOOK_EVERY_S)
            silent = [channel for channel in self._channels if channel.silent_s > _SILENT_S]
            for container in {channel.container for channel in silent}:
                await self._ask(container)

    async def _ask(self, container: str) -> None:
        state = None
        with contextlib.suppress(BackendUnavailable):  # then nobody knows, and the pings decide
            state = await self._daemon.run(
                lambda api: state_listed(api, container), self._target, _ASK_S
            )
        for channel in list(self._channels):
            if channel.container == container:
                channel.vouch() if state is None else channel.break_off(state)
