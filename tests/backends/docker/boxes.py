"""Containers that tests break, and all tools in them."""

from __future__ import annotations

import time
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from backends.docker import DockerBackend
from tests.backends.docker.fault_rounds import Hands
from toolkit.runner import ToolRunner
from toolkit.toolset import coding_tools

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LABEL = {"remotehands-test": "docker"}
#: So short that a silent target is found out soon.
LEASE_S = 3.0
#: A lease, a look at the state, and patience for a machine that does much else.
LIMIT_S = 25.0
#: What the command that goes on leaves if it is not ended.
SLEEPER = "sleep 987"


@dataclass
class Box:
    """A container whose workspace outlives it, and the power to break it.

    Args:
        api: The SDK's client.
        image: What it is made of.
        options: Of its host configuration.
    """

    api: Any
    image: str
    options: dict[str, Any]

    def __post_init__(self) -> None:
        self.name = f"remotehands-test-{uuid.uuid4().hex[:12]}"
        self.since = int(time.time()) - 1

    def make(self) -> None:
        options = {"network_mode": "none", "init": True, **self.options}
        if "tmpfs" not in options:
            options["binds"] = [f"{self.name}:/work", *options.get("binds", ())]
        self.api.create_container(
            self.image,
            ["sleep", "600"],
            name=self.name,
            labels=LABEL,
            working_dir="/work",
            host_config=self.api.create_host_config(**options),
        )
        self.start()

    def start(self) -> None:
        """Start it, if it does not run."""
        self.api.start(self.name)

    def remove(self) -> None:
        self.api.remove_container(self.name, force=True)

    def shut(self) -> None:
        """Remove it with its workspace, whatever became of it."""
        import docker.errors

        for remove in (self.remove, lambda: self.api.remove_volume(self.name, force=True)):
            try:
                remove()
            except docker.errors.NotFound:
                continue

    def commands(self) -> list[str]:
        """Return the command lines of all that lives in it, as the Docker engine sees them."""
        rows = self.api.top(self.name, "-eo pid,stat,args")["Processes"]
        return [row[2] for row in rows if row[1][0] != "Z"]

    def programs_started(self) -> int:
        """Return how many programs were ever started in it: one for each connection."""
        events = self.api.events(
            since=self.since,
            until=int(time.time()) + 1,
            filters={"container": self.name, "event": "exec_create"},
            decode=True,
        )
        return len(list(events))

    def run(self, script: str) -> None:
        """Run something in it that has nothing to do with us."""
        made = self.api.exec_create(self.name, ["sh", "-c", script], user="0")
        self.api.exec_start(made["Id"])


@asynccontextmanager
async def hands_in(box: Box, **options: Any) -> AsyncIterator[Hands]:
    """Give all tools in a box."""
    backend = DockerBackend.attach(box.name, lease_s=LEASE_S, **options)
    async with backend, ToolRunner(coding_tools(backend)) as runner:
        yield Hands(runner, backend)


def kinds(answers: dict[str, Any]) -> set[str | None]:
    return {message.error_kind for message in answers.values()}


async def nothing_left(box: Box) -> None:
    """Wait until no command of ours lives in a box."""
    with anyio.fail_after(LIMIT_S):
        while any(SLEEPER in line for line in await anyio.to_thread.run_sync(box.commands)):
            await anyio.sleep(0.1)
