"""The engine's main: one channel in, one out, until the near end goes away."""

import os
import signal
import sys

from backends.engine import facts, frames, shell, spawner
from backends.engine.beneath import open_place
from backends.engine.commands import Commands
from backends.engine.loop import Loop
from backends.engine.service import Service
from backends.engine.session import FarSession
from backends.engine.wire import Wire

#: What `ps` and `pkill` see instead of "python3".
PROCESS_NAME = b"remotehands"
#: How long worker threads may take to settle their files once the engine has to end.
_SETTLE_S = 3.0


def main(settings):
    """Serve the channel on descriptors 0 and 1; never returns.

    Args:
        settings: Map of "lease_s" (seconds, or None for no lease) and of what Commands takes.
    """
    try:
        place = open_place(settings.get("root"), settings.get("unconfined_commands", False))
    except OSError as error:
        # The near end shows the last line that it gets before any frame.
        sys.stderr.write(
            "the root folder %s: %s\n" % (os.fsdecode(settings["root"]), error.strerror)
        )
        sys.exit(1)
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    rename_process()
    # The one fork, while there is one thread; the child lets go of 0 and 1 by itself.
    started = spawner.start()
    _allow_descriptors()
    in_fd, out_fd = _take_channel()
    Engine(settings, place, started, in_fd, out_fd).run()
    # Not sys.exit: a worker thread that hangs in a dead network mount must not hold up the end.
    os._exit(0)


def rename_process():
    """Change this process's name, so that a model's `pkill python` misses it."""
    try:
        with open("/proc/self/comm", "wb") as file:
            file.write(PROCESS_NAME)
    except OSError:
        pass


def _allow_descriptors():
    """Use what this user may have: each command takes two. What commands get is as it was."""
    try:
        import resource

        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ImportError, OSError, ValueError):
        pass  # a minimal Python; or more than the kernel knows how to give


def _take_channel():
    """Move the channel off 0 and 1, where a stray print or a child could get at it."""
    in_fd, out_fd = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    return in_fd, out_fd


class Engine:
    """Tie the wire, the service and the commands to one loop, and see to a clean end.

    Args:
        settings: See `main`.
        place: The Place of file operations.
        started: The spawner's handle.
        in_fd: Where frames come from.
        out_fd: Where frames go to.
    """

    def __init__(self, settings, place, started, in_fd, out_fd):
        settings = dict(settings)
        self._lease_s = settings.pop("lease_s", None)
        self._loop = Loop()
        self._session = FarSession()
        self._place = place
        self._wire = Wire(self._loop, self._session, in_fd, out_fd)
        self._commands = Commands(
            self._loop, started, on_lost=lambda: self._end("the spawner has died"), **settings
        )
        self._service = Service(self._wire, self._commands, self._place)
        self._wire.on_event = self._handle
        self._wire.on_room = self._service.more_room
        self._wire.on_end = self._end
        self._started = started
        self._ending = False
        self._commands_ended = False

    def run(self):
        """Say hello and serve until the end."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        self._wire.send(self._session.hello, self._facts())
        self._wire.start()
        if self._lease_s is not None:
            self._check_lease()
        self._loop.run()

    def _handle(self, kind, request_id, value):
        if kind == frames.BYE:
            self._end(None)
        elif not self._ending:
            self._service.handle(kind, request_id, value)

    def _facts(self):
        found = self._commands.shell
        capabilities = [name for name, has in self._started.ready().items() if has]
        if shell.which(b"rg"):
            capabilities.append("rg")
        return facts.collect(self._place, found and found[1], capabilities)

    def _on_signal(self, number, _frame):
        self._loop.call_from_signal(lambda: self._end("signal %d" % number))

    def _check_lease(self):
        silent_s = self._loop.time() - self._wire.heard_at
        if silent_s >= self._lease_s:
            self._end("nothing heard for %g seconds" % self._lease_s)
        else:
            self._loop.call_later(self._lease_s - silent_s, self._check_lease)

    def _end(self, reason):
        """Kill what was started, let files settle, then stop; `reason` None is a wished end."""
        if self._ending:
            return
        self._ending = True
        self._service.abort()
        if reason is not None:
            self._wire.send(self._session.bye, reason)
        # What is killed now is not answered: "stopped" would say that the near end had asked.
        self._wire.close()
        self._commands.close(self._on_commands_ended)
        self._settle(self._loop.time() + _SETTLE_S)

    def _on_commands_ended(self):
        self._commands_ended = True

    def _settle(self, deadline):
        settled = not self._service.busy or self._loop.time() >= deadline
        if settled and self._commands_ended:
            self._loop.stop()
        else:
            self._loop.call_later(0.005, lambda: self._settle(deadline))
