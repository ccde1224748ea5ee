"""An exec that does not open: what the container is, is asked of Docker's list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from backends.docker import backend as backend_module
from backends.docker.backend import DockerBackend
from operations import BackendUnavailable

pytestmark = pytest.mark.anyio


class Frozen(Exception):
    """What a request about a frozen container gets: no answer."""


class Engine:
    """As the SDK's client of an engine whose container is frozen while an exec opens."""

    def containers(self, **_: Any) -> list[dict[str, str]]:
        return [{"State": "paused"}]

    def inspect_container(self, _: str) -> None:
        raise Frozen


class Daemon:
    """Runs work on it; what gets no answer waits for ever."""

    async def run(self, work: Callable[[Any], Any], *_: Any, **__: Any) -> Any:
        try:
            return work(Engine())
        except Frozen:
            await anyio.sleep_forever()


async def test_a_container_that_is_frozen_meanwhile_is_named_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backend_module, "SILENT_S", 0.05)
    backend = DockerBackend.attach("box")
    backend._daemon = Daemon()  # type: ignore[assignment]
    backend._container_id = "1" * 64
    with anyio.fail_after(10), pytest.raises(BackendUnavailable, match="paused"):
        await backend.open_program(["sh"])
