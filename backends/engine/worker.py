"""The process that searches run in: it calls one function after another, until it is killed.

A supervisor forks it when the first search comes. Messages to it: jobs, each with the descriptor
for its output. From it, when a call is over and has ended all that it had started: {"status"}.
"""

import gc
import importlib
import os
import signal
import socket
import traceback

from backends.engine import frames, packets
from backends.engine.signals import reset_signals
from backends.engine.tree import MARK

# Python 3.7 and later.
_freeze = getattr(gc, "freeze", None)


class Worker:
    """The supervisor's handle on its worker, which is its child.

    Attributes:
        pid: Its process id; its process group has the same.
        sock: The supervisor's end of the socket between them.
        inbox: What arrives there.
    """

    def __init__(self, pid, sock):
        self.pid = pid
        self.sock = sock
        self.inbox = packets.Inbox(sock)

    def begin(self, job, out_fd):
        """Have it call a job's function."""
        try:
            packets.send(self.sock, job, [out_fd])
        except OSError:
            self.kill()  # if it has not just ended: its end tells all

    def kill(self):
        """End it; the caller reaps it, and has not yet, so that the number is its own."""
        os.kill(self.pid, signal.SIGKILL)


def fork(others):
    """Fork a worker and return its handle; the child never returns from here.

    Args:
        others: Descriptors that the child is to let go of.

    Raises:
        OSError: The system gives no process or descriptor.
    """
    near, far = socket.socketpair()
    try:
        pid = os.fork()
    except OSError:
        near.close()
        far.close()
        raise
    if pid:
        far.close()
        return Worker(pid, near)
    try:
        near.close()
        for fd in others:
            os.close(fd)
        os.setsid()
        reset_signals()
        _serve(far)
    finally:
        os._exit(0)


def _serve(sock):
    """Call one function after the other, until the supervisor lets go."""
    if _freeze is not None:
        _freeze()  # or a collection would copy all that this process shares with the spawner
    gc.enable()
    inbox = packets.Inbox(sock)
    while True:
        jobs = inbox.read(wait=True)
        if jobs is None:
            return
        for job in jobs:
            (out_fd,) = inbox.take_fds(1)
            try:
                status = _call(job, out_fd)
            finally:
                os.close(out_fd)
            packets.send(sock, {"status": status})


def _call(job, out_fd):
    os.environb[MARK] = job["id"]
    try:
        module = importlib.import_module(job["module"])
        return getattr(module, job["function"])(*(job["arguments"] + [out_fd])) or 0
    except Exception:
        told = frames.encode_value(["internal", [traceback.format_exc()[-8000:]]])
        os.write(out_fd, frames.encode_frame(frames.FAULT, 0, told))
        return 1
