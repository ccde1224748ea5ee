"""A link with a delay: a TCP proxy in a process of its own (`python -m benchmarks.link PORT S`).

Half of the delay is put on either way. What waits holds up nothing behind it, and there is no limit
to what may be under way, so that a delay is all that the link adds: threads sleep to a tenth of a
millisecond where an event loop's timers are a whole one late.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

__all__ = ["link"]

_PIECE = 1 << 18
_BUFFER = 4 << 20


@contextlib.contextmanager
def link(port: int, round_trip_s: float) -> Iterator[int]:
    """Lead a new port of this machine to another one, that many seconds away; give the new one."""
    argv = [sys.executable, "-m", __spec__.name, str(port), str(round_trip_s)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def _serve(port: int, one_way_s: float) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    print(server.getsockname()[1], flush=True)
    while True:
        near, _ = server.accept()
        far = socket.create_connection(("127.0.0.1", port))
        for source, sink in ((near, far), (far, near)):
            # Without Nagle's wait for an acknowledgement, which belongs to the ends.
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            source.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
            pieces: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
            for run, end in ((_take, source), (_give, sink)):
                threading.Thread(target=run, args=(end, pieces, one_way_s), daemon=True).start()


def _take(
    source: socket.socket, pieces: queue.SimpleQueue[tuple[float, bytes]], one_way_s: float
) -> None:
    data = b"more"
    while data:
        try:
            data = source.recv(_PIECE)
        except OSError:
            data = b""
        pieces.put((time.perf_counter() + one_way_s, data))


def _give(sink: socket.socket, pieces: queue.SimpleQueue[tuple[float, bytes]], _: float) -> None:
    with contextlib.suppress(OSError):
        while True:
            due, data = pieces.get()
            time.sleep(max(0.0, due - time.perf_counter()))
            if not data:
                sink.shutdown(socket.SHUT_WR)
                return
            sink.sendall(data)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), float(sys.argv[2]) / 2)
