"""Folders into containers, however little those allow, and out of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from backends.docker import DockerBackend
from backends.workspace import put_folder, take_folder, take_patch
from operations import PathDenied, StorageFull
from tests.backends.workspace.trees import tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

PYTHON = "remotehands-test/python"
BUSYBOX = "remotehands-test/busybox"
MINIMAL = "remotehands-test/minimal"


@pytest.fixture
def anyio_backend() -> str:
    """Channels are tested under both event loops elsewhere; a container takes a second."""
    return "asyncio"


async def said(backend: Any, command: str) -> str:
    """Return what a command prints."""
    output: list[bytes] = []
    await backend.exec(command, cwd="/", on_data=output.append)
    return b"".join(output).decode(errors="surrogateescape").strip()


async def there_and_back(backend: Any, source: Path, far: str, out: Path, owner: str) -> None:
    """Put a folder in, see whose it is, take it out, and take a patch of one change."""
    with await put_folder(backend, str(source), far) as baseline:
        owners = await said(backend, f"cd '{far}' && find . ! -name . -exec stat -c %u:%g {{}} +")
        assert set(owners.split()) == {owner}
        await take_folder(backend, far, str(out))
        assert tree(out) == tree(source)
        await backend.write_file(f"{far}/a.txt", b"one\nthree\n")
        patch = await take_patch(backend, baseline)
        assert b"\n one\n-two\n+three\n" in patch
        assert patch.count(b"diff --git") == 1


@pytest.mark.parametrize("image", [PYTHON, MINIMAL, BUSYBOX])
@pytest.mark.parametrize("user", ["1000:1000", "0:0"])
async def test_a_hardened_container(
    api: Any, image: str, user: str, source: Path, tmp_path: Path
) -> None:
    async with DockerBackend.run(image, user=user) as backend:
        await there_and_back(backend, source, backend.cwd, tmp_path / "out", user)


@pytest.mark.parametrize("service", ["locked", "busybox"])
async def test_a_container_of_somebody_else(
    compose_containers: Any, service: str, source: Path, tmp_path: Path
) -> None:
    """One has a read-only root and nothing but tmpfs to write to, the other no python."""
    owner = "1000:1000" if service == "locked" else "0:0"
    async with DockerBackend.attach(compose_containers[service]) as backend:
        far = f"/work/{os.urandom(6).hex()}"
        await there_and_back(backend, source, far, tmp_path / "out", owner)
        if service == "locked":
            with pytest.raises(PathDenied):
                await put_folder(backend, str(source), "/etc/new")


@pytest.mark.parametrize("image", [PYTHON, BUSYBOX])
async def test_a_full_disk_is_said_to_be_full(api: Any, image: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(20):
        (source / f"{number:02}").write_bytes(bytes(1 << 20))
    async with DockerBackend.run(image, tmp_size="2m") as backend:
        with pytest.raises(StorageFull, match=r"^/tmp/new.*: no space left"):
            await put_folder(backend, str(source), "/tmp/new")
        assert await said(backend, "echo alive") == "alive"
