"""A Docker engine of the tests' own, which they may kill: nothing of it is the machine's."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

_START_S = 60.0


class SecondEngine:
    """A dockerd with a socket, a data folder and a containerd of its own.

    Args:
        live_restore: Whether containers go on while no dockerd runs, and after it.
    """

    def __init__(self, *, live_restore: bool = False) -> None:
        # A socket's address has room for 107 bytes, which pytest's own folders may not leave.
        self._folder = Path(tempfile.mkdtemp(prefix="rh-dockerd-"))
        self._options = ["--live-restore"] if live_restore else []
        self._process: subprocess.Popen[bytes] | None = None
        self._containerd: set[int] = set()
        self.url = f"unix://{self._folder}/s"

    def start(self) -> Any:
        """Start it and return a client to it; skip where it does not run."""
        at = self._folder
        # Its containerd has died with it, but may be a zombie, which counts as running.
        for stale in (at / "pid", at / "exec/containerd/containerd.pid"):
            stale.unlink(missing_ok=True)
        with (at / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    # Without a bridge of its own it would remove the machine's, docker0.
                    *("unshare", "--net", "dockerd", f"--host={self.url}"),
                    *("--bridge=none", "--iptables=false"),
                    *(f"--data-root={at}/data", f"--exec-root={at}/exec", f"--pidfile={at}/pid"),
                    *self._options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        api = self.client()
        self._containerd.add(int((at / "exec/containerd/containerd.pid").read_text()))
        return api

    def _remove_containers(self) -> None:
        """Remove what would live on without it."""
        with contextlib.closing(self.client()) as api:
            for container in api.containers(all=True):
                api.remove_container(container["Id"], force=True, v=True)

    def _end(self, pid: int) -> None:
        """End a process that still is what it was, and wait for that."""
        with contextlib.suppress(OSError):
            while str(self._folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
                time.sleep(0.01)

    def client(self) -> Any:
        """Return a client, once it answers."""
        import docker

        assert self._process is not None
        until = time.monotonic() + _START_S
        while True:
            try:
                with socket.socket(socket.AF_UNIX) as probe:  # the SDK would leave it open
                    probe.connect(self.url.removeprefix("unix://"))
                return docker.APIClient(base_url=self.url, version="auto", timeout=60)
            except (OSError, docker.errors.DockerException) as error:
                if self._process.poll() is not None or time.monotonic() > until:
                    log = (self._folder / "log").read_text(errors="replace")
                    self.close()
                    pytest.skip(f"no second Docker engine here: {error}: {log[-300:]}")
            time.sleep(0.05)

    def load(self, image: Iterable[bytes]) -> None:
        """Take in an image that another engine has saved."""
        api = self.client()
        for _ in api.load_image(image):
            pass
        api.close()

    def kill(self) -> None:
        """End it by SIGKILL, and its containerd, to which it has tied its life."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        for pid in self._containerd:
            self._end(pid)
        self._containerd.clear()

    def close(self) -> None:
        """End it with all that it has started, and remove its folder."""
        if self._process is not None:
            if self._process.poll() is None:
                self._remove_containers()
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(30)
            self.kill()
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            if (place := line.split()[1]).startswith(f"{self._folder}/"):
                subprocess.run(["umount", "-l", place], check=False, capture_output=True)
        shutil.rmtree(self._folder, ignore_errors=True)
