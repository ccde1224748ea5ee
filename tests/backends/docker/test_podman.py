"""Podman's Docker-compatible service takes what the Docker backend asks for."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import docker
import pytest

from backends.docker import DockerBackend

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
IMAGE = "remotehands-test/busybox"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def podman(api: Any) -> Iterator[str]:
    """Give the address of a Podman service that has an image of the tests."""
    if shutil.which("podman") is None:
        pytest.skip("podman is not installed")
    if os.geteuid() != 0:
        pytest.skip("needs root to run podman's service here")
    with tempfile.TemporaryDirectory(prefix="rh-podman-") as folder:
        # Where limits may not be raised, podman's own defaults start no container.
        limits = '[containers]\ndefault_ulimits=["nofile=1024:1024","nproc=4096:4096"]\n'
        (Path(folder) / "containers.conf").write_text(limits)
        url = f"unix://{folder}/s"
        service = subprocess.Popen(
            ["podman", "system", "service", "--time=0", url],
            env={**os.environ, "CONTAINERS_CONF": f"{folder}/containers.conf"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            client = _client(url)
            with contextlib.closing(client):
                for _ in client.load_image(api.get_image(IMAGE)):
                    pass
            yield url
        finally:
            service.terminate()
            service.wait(30)


def _client(url: str) -> Any:
    until = time.monotonic() + 30
    while True:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(url.removeprefix("unix://"))
            return docker.APIClient(base_url=url, version="1.41", timeout=60)
        if time.monotonic() > until:
            pytest.skip("podman's service does not start here")
        time.sleep(0.05)


async def test_a_hardened_container_of_our_own_works_and_is_gone_after_it(podman: str) -> None:
    async with DockerBackend.run(IMAGE, engine=podman) as backend:
        path = f"{backend.cwd}/file"
        await backend.write_file(path, b"content\n")
        assert await backend.read_file(path) == b"content\n"
        output: list[bytes] = []
        result = await backend.exec("id -u", cwd=backend.cwd, on_data=output.append)
        assert (result.exit_code, b"".join(output)) == (0, b"1000\n")
        name = backend.container_id
    client = _client(podman)
    with contextlib.closing(client):
        found = await anyio.to_thread.run_sync(lambda: client.containers(all=True))
        assert name not in [container["Id"] for container in found]
