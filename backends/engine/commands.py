"""Commands and searches that run in processes of their own, seen from the engine's loop."""

import errno
import os
import time
from collections import deque

from backends.engine import outputs, packets
from backends.engine.beneath import NO_COMMANDS
from backends.engine.faults import Fault
from backends.engine.jobs import Job, Link
from backends.engine.kept import KeptOutput
from backends.engine.place import Place
from backends.engine.shell import descriptor_with, environment, find_shell
from backends.engine.tail import Tail
from backends.engine.tree import MARK, Tree, look

MAX_TEXT_BYTES = 10 << 20
#: How much later than a search itself this end stops it.
_SEARCH_SLACK_S = 0.5
_CLOSE_S = 5.0
_POLL_S = 0.005
#: Idle supervisors that are kept, and jobs after which one has gathered enough garbage.
_SPARES = 4
#: As many more stay for a while: where many commands ran at once, many more are about to.
_BUSY_SPARES = 32
_CALM_S = 5.0
#: Idle ones with a worker for searches, which is a process more.
_SEARCHERS = 2
_JOBS_PER_SUPERVISOR = 500
_SEARCH = "backends.engine.search"


class Commands:
    """Start jobs under supervisors and answer their requests; everything runs on the loop thread.

    A job's tree dies at its time limit, when its request is cancelled, in `close`, and whenever
    this process, its supervisor or the spawner dies.

    Attributes:
        loop: The engine's Loop.
        shell: (path, name) of the shell that runs commands, or None.
        keep_background: Whether background processes live on after the engine.

    Args:
        loop: The engine's Loop.
        spawner: What `spawner.start()` gave.
        shell: Path (bytes) of the shell to use; None finds bash, else sh, on PATH.
        grace_s: Seconds between TERM and KILL.
        keep_background: Let background processes live on after `close`.
        keep_output: Leave kept output for 24 hours instead of removing it on `close`.
        kept_cap: Most bytes of one command's kept output.
        ripgrep: Search with `rg` where it is found; False always searches by the engine itself.
        root: Bytes path of the folder that file operations are confined to, or None.
        unconfined_commands: Run commands in spite of a root, which does not hold them.
        on_lost: Called when the spawner has died and everything was killed and answered.
    """

    def __init__(
        self,
        loop,
        spawner,
        shell=None,
        grace_s=0.5,
        keep_background=False,
        keep_output=False,
        kept_cap=1 << 30,
        ripgrep=True,
        root=None,
        unconfined_commands=False,
        on_lost=None,
    ):
        self.loop = loop
        self.keep_background = keep_background
        self._spawner = spawner
        self._shell = find_shell(shell)
        self.shell = self._shell and (self._shell.path, self._shell.name)
        self._grace_s = grace_s
        self._kept = KeptOutput(keep_output, None if keep_output else self._tell_folder)
        self._kept_cap = kept_cap
        self._search_options = {
            "rg": ripgrep,
            "root": root,
            "with_kept": unconfined_commands,
        }
        self._refused = root is not None and not unconfined_commands
        self._on_lost = on_lost
        self._place = Place()
        self._jobs = []
        self._waiting = deque()
        self._spares = deque()
        self._searchers = deque()
        self._trimming = False
        self._fewest = 0
        self._requested = 1  # the spawner begins with one
        self._generation = 0
        self._searched = False
        self._lost = False
        self._closing = False
        self._ended = False
        self._when_closed = []
        loop.add_reader(spawner.socket.fileno(), self._on_spawner)
        self._on_spawner()

    @property
    def running(self):
        """Number of jobs of which something may live."""
        return len(self._jobs)

    def start(self, request):
        """Run the command of an "exec" or "exec_tail" request; it answers the request later.

        Args:
            request: Its args hold "command" (bytes) or "argv", "stdin" (bytes), "cwd", "env"
                (pairs or a map), "timeout_s"; for "exec_tail" also "tail_bytes",
                "keep_over_bytes" and "keep_over_lines".

        Raises:
            Fault: "bad_request", "too_large", "unsupported", "unavailable" or "path"; nothing ran.
        """
        args = request.args
        _check(args)
        if self._refused:
            raise Fault("unsupported", "bash", NO_COMMANDS)
        if self._shell is None and not args.get("argv"):
            raise Fault("unsupported", request.op, "the target has no shell")
        mark = os.urandom(8).hex().encode("ascii")
        cwd = self._place.expand(args["cwd"])
        variables = environment(args.get("env") or (), cwd, (MARK, mark))
        _check_variables(variables)
        message = {"kind": "exec", "id": mark, "cwd": cwd, "env": variables}
        fds = self._input(request, message)
        job = Job(self, message, fds, self._output(request), args.get("timeout_s"), self._grace_s)
        self._launch(job, request)

    def start_search(self, request, kind):
        """Run `search.worker_main(kind, request.args, out_fd)` in a fork and relay its frames."""
        if not self._searched:
            self._searched = True
            self.preload([_SEARCH])
        message = {
            "kind": "call",
            "id": os.urandom(8).hex().encode("ascii"),
            "module": _SEARCH,
            "function": "worker_main",
            "arguments": [kind, dict(request.args, **self._search_options)],
        }
        timeout_s = request.args.get("timeout_s")
        if timeout_s is not None:
            timeout_s += _SEARCH_SLACK_S
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        job = Job(self, message, [null], outputs.Frames(request), timeout_s, 0.0)
        self._launch(job, request)

    def preload(self, value):
        """Hand `value` to the spawner's `preload`, so that later forks have what it loads."""
        self._generation += 1
        self._drop_spares()
        self._tell({"preload": value, "generation": self._generation})
        self._ask_for_supervisors()

    def close(self, done=None):
        """Kill everything, remove the kept output, end the spawner; then call `done()`.

        That takes 5 s at most; running requests are answered with "stopped".
        """
        if done is not None:
            self._when_closed.append(done)
        if self._ended:
            self._tell_closed()
        if self._closing:
            return
        self._closing = True
        until = self.loop.time() + _CLOSE_S
        for job in list(self._jobs):
            if not job.stays:
                job.stop("stopped")
        self._close_when_ended(until)

    # What jobs need -------------------------------------------------------------------------

    def forget(self, job):
        """Drop a job of which nothing is left."""
        if job in self._jobs:
            self._jobs.remove(job)

    def withdraw(self, job):
        """Take back a job that waits for a supervisor."""
        if job in self._waiting:
            self._waiting.remove(job)

    def sweep(self, job):
        """Have the spawner kill a job's supervisor, if it lives, and what that has left."""
        self._tell({"sweep": job.link.pid, "mark": job.id})

    def let_stay(self, job):
        """Tell the spawner not to wait for this job's end."""
        self._tell({"stays": job.link.pid})

    def take_back(self, link):
        """Use a supervisor again of whose job nothing is left."""
        link.jobs += 1
        room = _SEARCHERS if link.has_worker else _BUSY_SPARES
        is_full = len(self._idle(link)) >= room
        if link.used_up or link.jobs >= _JOBS_PER_SUPERVISOR or is_full:
            link.sock.close()
        else:
            self._add_spare(link)

    # Starting -----------------------------------------------------------------------------

    def _input(self, request, message):
        """Complete the message; return the descriptors that go with it."""
        args = request.args
        fds = []
        try:
            stdin = args.get("stdin")
            if stdin:
                fds.append(descriptor_with(stdin))
            else:
                fds.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            if args.get("argv"):
                message["argv"] = list(args["argv"])
                message["program"] = None
            else:
                message["argv"] = self._shell.argv()
                message["program"] = self._shell.path
                fds.append(descriptor_with(self._shell.text(args["command"])))
        except OSError as error:
            for fd in fds:
                os.close(fd)
            raise Fault("unavailable", "no place for its input: %s" % error.strerror)
        return fds

    def _output(self, request):
        args = request.args
        name = "" if args.get("argv") else self._shell.name
        if request.op != "exec_tail":
            return outputs.Stream(request, self._place, name)
        tail = Tail(
            args["tail_bytes"],
            args["keep_over_bytes"],
            args["keep_over_lines"],
            self._kept,
            self._kept_cap,
        )
        return outputs.Snapshots(request, self._place, name, self.loop, tail)

    def _launch(self, job, request):
        request.on_cancel = job.cancel
        request.on_credit = job.resume
        self._jobs.append(job)
        if request.cancelled:
            job.stop("stopped")
        elif self._lost or self._closing:
            job.refuse(OSError(errno.ESRCH, "the engine is about to end"))
        else:
            self._waiting.append(job)
            self._begin_waiting()

    def _begin_waiting(self):
        while self._waiting:
            job = self._waiting[0]
            idle = self._searchers if job.is_search and self._searchers else self._spares
            if not idle:
                break
            self._waiting.popleft().begin(idle.pop())  # the last one used, whose pages are warm
            self._fewest = min(self._fewest, len(self._spares))
        self._ask_for_supervisors()

    def _idle(self, link):
        """Return the idle supervisors of a supervisor's kind."""
        return self._searchers if link.has_worker else self._spares

    def _add_spare(self, link):
        if link.generation < self._generation or self._lost or self._closing:
            link.sock.close()
        else:
            self._idle(link).append(link)
            self.loop.add_reader(link.sock.fileno(), lambda: self._drop_spare(link))
            self._expect_calm()
        self._begin_waiting()

    def _trim_spares(self):
        """Let go of those that a burst of commands has left and that nobody needed since."""
        self._trimming = False
        for _ in range(min(self._fewest, len(self._spares)) - _SPARES):
            self._let_go(self._spares.popleft())
        self._expect_calm()

    def _expect_calm(self):
        if len(self._spares) > _SPARES and not self._trimming:
            self._trimming = True
            self._fewest = len(self._spares)
            self.loop.call_later(_CALM_S, self._trim_spares)

    def _let_go(self, link):
        self.loop.remove_reader(link.sock.fileno())
        link.sock.close()

    def _drop_spare(self, link):
        """Forget a supervisor that somebody has killed while it had nothing to do."""
        if link in self._idle(link):
            self._idle(link).remove(link)
        self._let_go(link)
        self._ask_for_supervisors()

    def _drop_spares(self):
        for idle in (self._spares, self._searchers):
            while idle:
                self._let_go(idle.popleft())

    def _ask_for_supervisors(self):
        wanted = len(self._waiting) + 1 - len(self._spares) - self._requested
        if wanted > 0 and not self._lost and not self._closing:
            self._requested += wanted
            self._tell({"fork": wanted})

    # The spawner --------------------------------------------------------------------------

    def _on_spawner(self):
        values = self._spawner.read()
        if values is None:
            self._lose_spawner()
            return
        for value in values:
            self._take(value)

    def _take(self, value):
        event = value["event"]
        if event == "supervisor":
            self._requested -= 1
            fds = self._spawner.inbox.take_fds(1)
            if fds:
                self._add_spare(Link(value["pid"], fds[0], value["generation"]))
            else:  # there was no room for its descriptor here, so it has ended again
                self._refuse_next("Too many open files")
        elif event == "no_supervisor":
            self._requested -= 1
            self._refuse_next(value["detail"])
        elif event == "swept":
            for job in list(self._jobs):
                if job.link is not None and job.link.pid == value["pid"]:
                    job.swept(value)

    def _refuse_next(self, why):
        if self._waiting:
            reason = "cannot start a process: " + why
            self._waiting.popleft().refuse(OSError(errno.EAGAIN, reason))

    def _tell(self, value):
        try:
            packets.send(self._spawner.socket, value)
        except OSError:
            pass  # the spawner has died: the end of file tells
        self._spawner.wake()

    def _tell_folder(self, path):
        self._tell({"folder": path})

    def _lose_spawner(self):
        """Kill everything by letting go of it; without a spawner there is no way on."""
        self._lost = True
        self._let_go_of_spawner()
        while self._waiting:
            self._waiting.popleft().refuse(OSError(errno.ESRCH, "the spawner has died"))
        killed = [job for job in self._jobs if not job.stays]
        for job in killed:
            job.close_link()
        supervisors = [job.link.pid for job in killed]
        self._await_supervisors(supervisors, time.monotonic() + _CLOSE_S - 1.0)

    def _await_supervisors(self, pids, until):
        alive = [pid for pid in pids if _lives(pid)]
        if alive and time.monotonic() < until:
            self.loop.call_later(_POLL_S, lambda: self._await_supervisors(alive, until))
            return
        for job in list(self._jobs):
            # The last net, for what a supervisor that died with the spawner has left.
            tree = Tree(None, mark=job.id)
            left = tree.kill(lambda tree=tree: not tree.find(), time.monotonic() + 0.5)
            job.give_up(confirmed=not left and job.link.pid not in alive)
        if not self._closing and self._on_lost is not None:
            self._on_lost()

    # Closing ------------------------------------------------------------------------------

    def _close_when_ended(self, until):
        if self.loop.time() < until and any(not job.stays for job in self._jobs):
            self.loop.call_later(_POLL_S, lambda: self._close_when_ended(until))
            return
        for job in list(self._jobs):
            job.give_up(confirmed=False)
        self._kept.close()
        self._let_go_of_spawner()
        self._await_spawner(until)

    def _let_go_of_spawner(self):
        self.loop.remove_reader(self._spawner.socket.fileno())
        self._spawner.socket.close()
        self._spawner.wake()
        self._drop_spares()
        self._spawner.inbox.close_fds()

    def _await_spawner(self, until):
        try:
            pid, _ = os.waitpid(self._spawner.pid, os.WNOHANG)
        except ChildProcessError:
            pid = self._spawner.pid
        if not pid and self.loop.time() < until:
            self.loop.call_later(_POLL_S, lambda: self._await_spawner(until))
            return
        self._ended = True
        self._tell_closed()

    def _tell_closed(self):
        while self._when_closed:
            self._when_closed.pop()()


def _check(args):
    for name in ("command", "stdin"):
        size = len(args.get(name) or b"")
        if size > MAX_TEXT_BYTES:
            raise Fault("too_large", name, size, MAX_TEXT_BYTES)
    if not args.get("argv") and b"\0" in (args.get("command") or b""):
        raise Fault("bad_request", "the command holds a NUL byte")
    if any(b"\0" in word for word in args.get("argv") or ()):
        raise Fault("bad_request", "an argument holds a NUL byte")
    timeout_s = args.get("timeout_s")
    if timeout_s is not None and not 0 < timeout_s < float("inf"):
        raise Fault("bad_request", "timeout_s is %r, not above 0 and finite" % timeout_s)


def _check_variables(pairs):
    for name, value in pairs:
        if not name or b"=" in name or b"\0" in name:
            shown = name[:100].decode("utf-8", "backslashreplace")
            raise Fault("bad_request", "no variable can have the name %r" % shown)
        if b"\0" in value:
            shown = name[:100].decode("utf-8", "backslashreplace")
            raise Fault("bad_request", "the value of the variable %s holds a NUL byte" % shown)


def _lives(pid):
    process = look(pid)
    return process is not None and process.alive
