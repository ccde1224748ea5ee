"""What stands above one command or search: starts it, tells how it ended, leaves nothing of it.

A supervisor is a forked copy of the spawner with one job at a time. It is single-threaded, adopts
whatever the job orphans (where the kernel allows it), and holds one socket to the engine: end of
file on that means that the engine is gone, and the tree is killed at once. When nothing of a job
is left it may get another, which spares a fork (1 ms, and as much again in page faults).

A search is a call of a function in a fork, its worker, that stays for the next one unless it was
killed: a new fork would first have to copy every page that it touches.

Messages to it: the job, {"kill": grace_s}, {"count": True}, {"stay": "pipe" or "silent"}. From it,
"event": "refused" (part, errno, detail), "exited" (code or signal, left), "count" (left), "killed"
(confirmed, survivors), and last "empty", unless "exited" has told that nothing is left.
"""

import errno
import os
import select
import signal
import time
from collections import deque

from backends.engine import packets, worker
from backends.engine.shell import COMMAND_FD
from backends.engine.signals import watch_children
from backends.engine.tree import Tree

#: Seconds for the rounds of KILL before what is left is reported.
KILL_S = 1.5
#: Seconds for which a supervisor without an engine tries to end what does not die.
_ORPHANED_KILL_S = 60.0
_DRAIN_BYTES = 1 << 20
_POLL_S = 0.25
# Python 3.8 and later.
_posix_spawn_call = getattr(os, "posix_spawn", None)
_DUP2 = getattr(os, "POSIX_SPAWN_DUP2", None)


def serve(sock, subreaper, environment):
    """Wait for a job on `sock` and see it to its end; never returns.

    Args:
        sock: The supervisor's end of its socket to the engine.
        subreaper: Whether orphans of the job become children of this process.
        environment: What a program gets, before the job's own variables.
    """
    status = 1
    try:
        status = _Supervisor(sock, subreaper, environment).run()
    finally:
        os._exit(status)


class _Supervisor:
    def __init__(self, sock, subreaper, environment):
        self._environment = environment
        self._sock = sock
        self._inbox = packets.Inbox(sock)
        self._subreaper = subreaper
        self._tree = Tree(os.getpid())
        self._child_ended = watch_children()
        self._messages = deque()
        self._engine = True
        self._worker = None
        self._begin_afresh()

    def _begin_afresh(self):
        self._main = None
        self._ended = None
        self._stays = False
        self._pipe = None
        self._hunts = False
        #: True when the worker is done with the job and waits for the next.
        self._rests = False

    def run(self):
        """Serve one job after the other until the engine lets go; return the exit status."""
        while self._engine:
            job = self._receive_job()
            if job is not None:
                self._serve(job)
        self._end_worker()
        return 0

    def _receive_job(self):
        while self._messages:
            message = self._messages.popleft()
            # What was meant for a job that had just ended means nothing any more.
            if "kind" in message:
                return message
        messages = self._inbox.read(wait=True)
        if messages is None:
            self._engine = False
        else:
            self._messages.extend(messages)
        return None

    def _serve(self, job):
        self._begin_afresh()
        if not self._subreaper:
            self._tree = Tree(os.getpid(), mark=job["id"])
        if not self._start(job, self._inbox.take_fds(job["fds"])):
            return
        while not self._reap():
            self._report_end(left=self._count())
            if self._messages:
                self._obey(self._messages.popleft())
            else:
                self._wait()
        if not self._report_end(left=0):
            self._tell({"event": "empty"})

    # Starting ---------------------------------------------------------------------------

    def _start(self, job, fds):
        start = self._call if job["kind"] == "call" else self._spawn
        try:
            self._main = start(job, fds)
        except _Refused as refused:
            self._tell(
                {
                    "event": "refused",
                    "part": refused.part,
                    "errno": refused.errno,
                    "detail": refused.detail,
                }
            )
            return False
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def _spawn(self, job, fds):
        """Start a program; the folder is changed here, so that its fault is told from others."""
        environment = dict(self._environment)
        environment.update(job["env"])
        try:
            os.chdir(job["cwd"])
        except (OSError, ValueError) as error:
            raise _Refused("cwd", error)
        try:
            program = job["program"] or _find_program(job["argv"][0], environment)
            return _exec(program, job["argv"], environment, fds)
        except (OSError, ValueError) as error:
            raise _Refused("program", error)
        finally:
            os.chdir("/")  # or it would keep the folder's file system busy

    def _call(self, job, fds):
        """Have the worker call a function; it needs no other start of Python."""
        self._reap()  # somebody may have killed it
        if self._worker is None:
            try:
                self._worker = worker.fork([self._sock.fileno(), self._child_ended])
            except OSError as error:
                raise _Refused("program", error)
        self._worker.begin(job, fds[-1])
        return self._worker.pid

    def _end_worker(self):
        if self._worker is not None:
            self._worker.kill()
            os.waitpid(self._worker.pid, 0)
            self._forget_worker()

    def _forget_worker(self):
        self._worker.sock.close()
        self._worker = None
        self._rests = False

    # Watching ---------------------------------------------------------------------------

    def _wait(self):
        watched = [self._child_ended]
        if self._engine:
            watched.append(self._sock)
        if self._pipe is not None:
            watched.append(self._pipe)
        if self._worker is not None:
            watched.append(self._worker.sock)
        # Without a subreaper nothing tells that an orphan has ended: look now and then.
        polls = self._hunts or (self._ended is not None and not self._subreaper)
        ready = select.select(watched, [], [], _POLL_S if polls else None)[0]
        self._forget_wakeups()
        if self._engine and self._sock in ready:
            self._read()
        if self._pipe in ready:
            self._drain()
        if self._worker is not None and self._worker.sock in ready:
            self._hear_worker()
        if self._hunts and not ready:
            self._kill_now(0)

    def _forget_wakeups(self):
        try:
            while len(os.read(self._child_ended, 4096)) == 4096:
                pass
        except BlockingIOError:
            pass

    def _reap(self):
        """Collect what has ended; return True when nothing of the job can be left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return self._subreaper or not self._tree.find()
            if not pid:
                return self._rests
            if pid == self._main and self._ended is None:
                self._ended = status
            if self._worker is not None and pid == self._worker.pid:
                self._forget_worker()

    def _hear_worker(self):
        """Take its word that it is done, and has ended all that it had started."""
        said = self._worker.inbox.read()
        if said:
            self._ended = said[-1]["status"] << 8  # as the system would tell it
            self._rests = True
        elif said is None:
            # It is ending, and SIGCHLD tells when; its socket would be readable until then.
            select.select([self._child_ended], [], [], _POLL_S)

    def _count(self):
        """Return how many processes are left; one at least, since not all was reaped."""
        return max(1, len(self._tree.find()))  # which finds none where there is no /proc

    def _report_end(self, left=None):
        """Tell once how the job's own process ended; return True when that was told now."""
        status = self._ended
        if status is None or self._main is None:
            return False
        self._main = None
        event = {"event": "exited", "code": None, "signal": None}
        if os.WIFSIGNALED(status):
            event["signal"] = os.WTERMSIG(status)
        else:
            event["code"] = os.WEXITSTATUS(status)
        event["left"] = len(self._tree.find()) if left is None else left
        self._tell(event)
        return True

    def _read(self):
        messages = self._inbox.read()
        if messages is None:
            self._lose_engine()
        else:
            self._messages.extend(messages)

    def _obey(self, message):
        if "kill" in message:
            self._kill(message["kill"])
        elif "count" in message:
            self._tell({"event": "count", "left": self._count()})
        elif "stay" in message:
            self._stays = message["stay"]

    def _tell(self, value):
        try:
            packets.send(self._sock, value)
        except OSError:
            pass  # the next read finds that out

    # Ending -----------------------------------------------------------------------------

    def _kill(self, grace_s):
        """TERM, a grace, then KILL in rounds; report what is left."""
        survivors = []
        if grace_s <= 0 or not self._ends_by_term(grace_s):
            survivors = self._kill_now(KILL_S)
        self._report_end()
        self._tell(
            {
                "event": "killed",
                "confirmed": not survivors,
                "survivors": [process.name for process in survivors[:20]],
            }
        )

    def _ends_by_term(self, grace_s):
        self._tree.signal(signal.SIGTERM)
        until = time.monotonic() + grace_s
        while not self._reap():
            rest = until - time.monotonic()
            if rest <= 0:
                return False
            select.select([self._child_ended], [], [], rest)
            self._forget_wakeups()
        return True

    def _kill_now(self, within_s):
        _hurry()
        if self._main is not None and self._ended is None:
            # Not reaped, so the number is still its own; all that kept to its group ends at once.
            try:
                os.killpg(self._main, signal.SIGKILL)
            except OSError:
                pass
        survivors = self._tree.kill(self._reap, time.monotonic() + within_s)
        self._hunts = bool(survivors)
        return survivors

    def _lose_engine(self):
        self._engine = False
        if self._stays:
            self._pipe = self._inbox.take_fds(1)[0] if self._stays == "pipe" else None
        elif self._kill_now(_ORPHANED_KILL_S):
            os._exit(0)  # what does not die for so long, and cannot be told to anybody

    def _drain(self):
        """Keep reading what a process that stays prints, or SIGPIPE would end it."""
        if not os.read(self._pipe, _DRAIN_BYTES):
            os.close(self._pipe)
            self._pipe = None


def _hurry():
    """Run before what has to be killed, where that is allowed: it may be forking at full speed."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    except OSError:
        pass


def _find_program(name, environment):
    """Return the path of a program by the command's own PATH."""
    if b"/" in name:
        return name
    denied = False
    for folder in environment.get(b"PATH", os.defpath.encode()).split(b":"):
        path = os.path.join(folder or b".", name)
        if os.path.isfile(path):
            if os.access(path, os.X_OK):
                return path
            denied = True
    number = errno.EACCES if denied else errno.ENOENT
    raise OSError(number, os.strerror(number))


def _exec(program, argv, environment, fds):
    """Start a program in a session of its own; return its pid."""
    if _posix_spawn_call is not None:
        try:
            return _posix_spawn(program, argv, environment, fds)
        except NotImplementedError:
            pass  # a C library without sessions in posix_spawn
    return _popen(program, argv, environment, fds)


def _posix_spawn(program, argv, environment, fds):
    """Start it by the call that costs least: 1.6 ms to the end of `true`; Popen 2.0, fork 2.7."""
    actions = [(_DUP2, fds[0], 0), (_DUP2, fds[1], 1), (_DUP2, fds[1], 2)]
    if len(fds) > 2:
        actions.append((_DUP2, fds[2], COMMAND_FD))
    return _posix_spawn_call(
        program,
        argv,
        environment,
        file_actions=actions,
        setsid=True,
        setsigmask=[],
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # which Python ignores
    )


def _popen(program, argv, environment, fds):
    import subprocess

    if len(fds) > 2:
        os.dup2(fds[2], COMMAND_FD)
    process = subprocess.Popen(
        argv,
        executable=program,
        stdin=fds[0],
        stdout=fds[1],
        stderr=fds[1],
        env=environment,
        pass_fds=[COMMAND_FD] if len(fds) > 2 else (),
        start_new_session=True,
    )
    process.returncode = 0  # this process reaps by itself
    return process.pid


class _Refused(Exception):
    """The job could not be started."""

    def __init__(self, part, error):
        super().__init__(part)
        self.part = part
        # A ValueError (a NUL byte where none can be) has neither.
        self.errno = getattr(error, "errno", None) or 0
        self.detail = getattr(error, "strerror", None) or str(error)
