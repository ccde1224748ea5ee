"""The one process that forks: it keeps a spare supervisor ready and cleans up after killed ones.

It is forked from the engine while that has one thread. Messages to it: {"fork": how many},
{"sweep": supervisor, "mark": command id}, {"stays": supervisor}, {"folder": path or None} and
{"preload": value, "generation": number}. From it, "event": "ready" (subreaper), "supervisor" (pid,
generation, with the engine's end of its socket), "no_supervisor" (detail) and "swept" (pid,
confirmed, survivors).

It ends with the engine, whatever way that ends, after everything that was started.
"""

import fcntl
import gc
import importlib
import os
import select
import signal
import socket
import time

from backends.engine import kept, packets, signals, supervisor
from backends.engine.shell import COMMAND_FD, QUIET
from backends.engine.tree import Tree

_NAME = b"remotehands"
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
#: Seconds for ending the tree of a supervisor that was killed.
_SWEEP_S = 1.5


class Spawner:
    """The engine's handle on its spawner process.

    Attributes:
        pid: Process id of the spawner, a child of the engine.
        socket: The engine's end of the socket between them.
        inbox: What arrives there.
    """

    def __init__(self, pid, sock):
        self.pid = pid
        self.socket = sock
        self.inbox = packets.Inbox(sock)
        self._ready = None
        self._unread = []

    def ready(self, timeout_s=5.0):
        """Wait until the spawner has reported what it can do; return {"subreaper": bool}."""
        until = time.monotonic() + timeout_s
        while self._ready is None and time.monotonic() < until:
            select.select([self.socket], [], [], max(0.0, until - time.monotonic()))
            values = self.read()
            if values is None:
                break
            self._unread += values
        return self._ready or {"subreaper": False}

    def wake(self):
        """Have it go on if somebody has stopped it; it is reaped by nobody else."""
        try:
            os.kill(self.pid, signal.SIGCONT)
        except OSError:
            pass  # it was reaped

    def read(self):
        """Return what it has told since the last call, or None when it has died."""
        values = self.inbox.read()
        if values is None:
            return None
        values = self._unread + values
        self._unread = []
        for value in values:
            if value["event"] == "ready":
                self._ready = {"subreaper": value["subreaper"]}
        return [value for value in values if value["event"] != "ready"]


def start(preload=None):
    """Fork the spawner; to be called once, before the process has a second thread.

    Args:
        preload: Called in the spawner with each value given to `Commands.preload`; None imports
            the modules that the value names.

    Returns:
        The Spawner handle. The forked child never returns from this function.
    """
    near, far = socket.socketpair()
    pid = os.fork()
    if pid:
        far.close()
        return Spawner(pid, near)
    try:
        # A finalizer of the engine's must not close a descriptor that has a new use here.
        gc.disable()
        _Spawner(_isolate(far), preload or _import_all).run()
    finally:
        os._exit(1)


def _import_all(names):
    for name in names:
        importlib.import_module(name)


def _isolate(sock):
    """Let go of all that the engine has; return the one socket that stays, out of the way."""
    os.setsid()
    os.chdir("/")
    signal.set_wakeup_fd(-1)
    signals.reset_signals()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signals.ignore_signals()
    fd = fcntl.fcntl(sock.fileno(), fcntl.F_DUPFD_CLOEXEC, COMMAND_FD + 1)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    _close_others(fd)
    # Later descriptors come after COMMAND_FD, so that a supervisor can put a command there.
    while os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC) < COMMAND_FD:
        pass
    try:
        with open("/proc/self/comm", "wb") as file:
            file.write(_NAME)
    except OSError:
        pass
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=fd)


def _close_others(kept_fd):
    try:
        fds = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        fds = range(3, 4096)
    for fd in fds:
        if fd > 2 and fd != kept_fd:
            try:
                os.close(fd)
            except OSError:
                pass


def _find_prctl():
    """Return the C function, or None where ctypes is missing, broken, or has no such function."""
    try:
        import ctypes

        return ctypes.CDLL(None).prctl
    except Exception:
        return None


def _become_subreaper(prctl):
    """Adopt what descendants orphan; return False where that cannot be had."""
    return prctl is not None and prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def _wake_when_parent_dies(prctl):
    """Have a process that somebody has stopped see that what it waits for has ended.

    The signal comes when the thread ends that forked it: the engine's loop runs in its main
    thread, which ends with it, and a spawner has no other.
    """
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)


class _Spawner:
    def __init__(self, sock, preload):
        self._sock = sock
        self._inbox = packets.Inbox(sock)
        self._preload = preload
        self._supervisors = set()
        self._staying = set()
        self._folder = None
        self._generation = 0
        self._environment = dict(os.environb)
        self._environment.update(QUIET)
        self._prctl = _find_prctl()
        _wake_when_parent_dies(self._prctl)
        self._subreaper = _become_subreaper(self._prctl)
        self._child_ended = signals.watch_children()

    def run(self):
        """Fork when asked to, until the engine is gone; then see that nothing is left."""
        self._tell({"event": "ready", "subreaper": self._subreaper})
        self._fork()
        while True:
            select.select([self._sock, self._child_ended], [], [])
            self._forget_wakeups()
            if self._reap():
                self._sweep(None)
            values = self._inbox.read()
            if values is None:
                break
            for value in values:
                self._handle(value)
        self._end()

    def _handle(self, value):
        if "fork" in value:
            for _ in range(value["fork"]):
                self._fork()
        elif "sweep" in value:
            self._sweep(value["mark"], value["sweep"])
        elif "stays" in value:
            self._staying.add(value["stays"])
        elif "folder" in value:
            self._folder = value["folder"]
        elif "preload" in value:
            self._generation = value["generation"]
            try:
                self._preload(value["preload"])
            except Exception:
                pass  # whoever needs it loads it again, and can tell what is wrong

    # Supervisors ------------------------------------------------------------------------

    def _fork(self):
        try:
            near, far = socket.socketpair()
        except OSError as error:
            self._tell({"event": "no_supervisor", "detail": error.strerror})
            return
        try:
            pid = os.fork()
        except OSError as error:
            near.close()
            far.close()
            self._tell({"event": "no_supervisor", "detail": error.strerror})
            return
        if not pid:
            near.close()
            self._sock.close()
            os.close(self._child_ended)
            _wake_when_parent_dies(self._prctl)
            # A subreaper's children are not subreapers.
            supervisor.serve(far, _become_subreaper(self._prctl), self._environment)
        far.close()
        self._supervisors.add(pid)
        told = {"event": "supervisor", "pid": pid, "generation": self._generation}
        if not self._tell(told, [near.fileno()]):
            self._tell({"event": "no_supervisor", "detail": "its socket cannot be handed over"})
        near.close()

    def _reap(self):
        """Collect what has ended; return True when a supervisor was killed."""
        killed = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return killed
            if not pid:
                return killed
            if pid in self._supervisors:
                self._supervisors.discard(pid)
                self._staying.discard(pid)
                killed = killed or status != 0

    def _sweep(self, mark, pid=None):
        """End what a killed supervisor has left; one that does not answer is killed first."""
        if pid in self._supervisors:
            # This process is its parent and has not reaped it: the pid is still its own.
            os.kill(pid, signal.SIGKILL)
            while pid in self._supervisors:
                self._reap()
                time.sleep(0.001)
        tree = Tree(os.getpid(), skip=self._supervisors, mark=mark)

        def gone():
            self._reap()
            return not tree.find()

        survivors = tree.kill(gone, time.monotonic() + _SWEEP_S)
        if pid is not None:
            names = [process.name for process in survivors[:20]]
            told = {"event": "swept", "pid": pid, "confirmed": not survivors, "survivors": names}
            self._tell(told)

    def _tell(self, value, fds=()):
        """Send a message; return False if it cannot be: the next read tells if all is over."""
        try:
            packets.send(self._sock, value, fds)
        except OSError:
            return False
        return True

    def _forget_wakeups(self):
        try:
            while len(os.read(self._child_ended, 4096)) == 4096:
                pass
        except BlockingIOError:
            pass

    # Ending -----------------------------------------------------------------------------

    def _end(self):
        """Wait for the supervisors, which kill what is theirs; then end what is nobody's."""
        while self._supervisors - self._staying:
            for pid in self._supervisors - self._staying:
                os.kill(pid, signal.SIGCONT)  # one that was stopped does not see its own end
            select.select([self._child_ended], [], [], 0.25)
            self._forget_wakeups()
            if self._reap():
                self._sweep(None)
        self._sweep(None)
        if self._folder is not None:
            kept.remove(self._folder)
        os._exit(0)
