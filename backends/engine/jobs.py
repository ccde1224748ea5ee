"""One supervised job seen from the engine's loop: its pipe, its supervisor, its end."""

import fcntl
import os
import socket
import struct

from backends.engine import packets
from backends.engine.supervisor import KILL_S

#: After the shell's end: this long without output, or this long at all, ends the waiting.
_SILENCE_S = 0.1
_LINGER_S = 1.0
#: What the shell has left is given this long to end before it is called background.
_LEAVING_S = 0.03
_ANSWER_S = 1.0
#: A supervisor that says nothing for so long after its time is killed by the spawner.
_OVERDUE_S = 0.3
_SWEPT_S = 2.2

# Of Linux; elsewhere the calls are refused. (The module termios may be missing.)
_F_SETPIPE_SZ = 1031
_FIONREAD = 0x541B
_PIPE_BYTES = 1 << 20
_USUAL_PIPE_BYTES = 1 << 16


class Link:
    """A supervisor and the socket to it.

    Attributes:
        used_up: Whether it should get no other job.
        has_worker: Whether it is one for searches.
    """

    def __init__(self, pid, fd, generation):
        self.pid = pid
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=fd)
        self.inbox = packets.Inbox(self.sock)
        self.generation = generation
        self.jobs = 0
        self.used_up = False
        self.has_worker = False


class Job:
    """Start one job and follow it until nothing of it lives.

    Attributes:
        id: Mark of its processes.
        is_search: Whether a worker calls a function, rather than a program being run.
        link: The Link to its supervisor once it has one.
        answered: Whether its request has its answer.
        stays: Whether it may outlive the engine.

    Args:
        owner: The Commands.
        message: What the supervisor is to start.
        fds: Descriptors that go with the message, but for the output's; owned from now on.
        output: Where the output goes (see `outputs`).
        timeout_s: Seconds from the start to the kill, or None.
        grace_s: Seconds between TERM and KILL.
    """

    def __init__(self, owner, message, fds, output, timeout_s, grace_s):
        self.id = message["id"]
        self.is_search = message["kind"] == "call"
        self.link = None
        self.answered = False
        self.stays = False
        self._owner = owner
        self._loop = owner.loop
        self._message = message
        self._fds = fds
        self._output = output
        self._timeout_s = timeout_s
        self._grace_s = grace_s
        self._sock = None
        self._pipe = None
        self._paused = False
        self._grown = False
        self._started_at = self._loop.time()
        self._timers = []
        self._settling = None
        self._why = None
        self._exit = None
        self._killed = None
        self._ended_at = None
        self._last_output = 0.0
        self._owed = 0
        self._left = 0
        self._counting = False
        self._swept = False
        self._gone = False

    # Starting ---------------------------------------------------------------------------

    def begin(self, link):
        """Hand the job to a supervisor; refuse it where there is no descriptor left for that."""
        self.link = link
        link.has_worker = self.is_search
        self._sock = link.sock
        self._started_at = self._loop.time()
        try:
            self._pipe, write_fd = os.pipe()
            os.set_blocking(self._pipe, False)
            self._fds.insert(1, write_fd)
            self._message["fds"] = len(self._fds)
            packets.send(self._sock, self._message, self._fds)
        except ConnectionError:
            pass  # the supervisor was killed: its end of file tells
        except OSError as error:
            self.refuse(error)  # and let go of the supervisor, which may have half a message
            return
        finally:
            self._close_fds()
        self._loop.add_reader(self._sock.fileno(), self._on_message)
        self._loop.add_reader(self._pipe, self._on_output)
        if self._timeout_s is not None:
            self._after(self._timeout_s, lambda: self.stop("timeout"))

    def refuse(self, error):
        """Answer that no supervisor could be had; an OSError tells why."""
        self.answered = True
        self._output.refused("supervisor", error)
        self._dispose()

    # Output -----------------------------------------------------------------------------

    def resume(self):
        """Go on reading: there may be room again."""
        if self._paused and self._pipe is not None:
            self._paused = False
            self._loop.add_reader(self._pipe, self._on_output)

    def _on_output(self):
        room = self._output.room()
        if self._why == "stopped":
            room = _PIPE_BYTES  # nobody waits for it: what does not fit is dropped
        if room <= 0:
            self._paused = True
            self._loop.remove_reader(self._pipe)
            return
        try:
            chunk = os.read(self._pipe, min(room, _PIPE_BYTES))
        except BlockingIOError:
            return
        if not chunk:
            self._end_output()
            return
        if len(chunk) == _USUAL_PIPE_BYTES and not self._grown:
            self._grow()
        self._last_output = self._loop.time()
        self._owed -= len(chunk)
        self._output.feed(chunk)
        self._settle()

    def _grow(self):
        """Make the pipe of a command that prints much larger: fewer, longer turns."""
        self._grown = True
        try:
            fcntl.fcntl(self._pipe, _F_SETPIPE_SZ, _PIPE_BYTES)
        except OSError:
            pass  # another system, or the user's allowance is used up

    def _end_output(self):
        self._close_pipe()
        if self._gone and self.answered:
            self._dispose()
        else:
            self._settle()

    # The supervisor's messages ------------------------------------------------------------

    def _on_message(self):
        values = self.link.inbox.read()
        if values is None:
            self._lose_supervisor()
            return
        for value in values:
            getattr(self, "_on_" + value["event"])(value)

    def _on_refused(self, value):
        self.answered = True
        self._output.refused(value["part"], OSError(value["errno"], value["detail"]))
        self._return_link()
        self._dispose()

    def _on_exited(self, value):
        self._exit = value
        self._left = value["left"]
        if not self._left:
            self._on_empty(value)
        elif self._why is None:
            self._begin_to_settle()

    def _on_count(self, value):
        if self._counting:
            self._left = value["left"]
            self._answer()

    def _on_killed(self, value):
        if self._killed is None:
            self._killed = value
            self._begin_to_settle()

    def _on_empty(self, value):
        self._gone = True
        self._left = 0
        self._return_link()
        if not self.answered:
            if self._why is not None and self._killed is None:
                self._killed = {"confirmed": True, "survivors": []}  # it ended before the kill
            self._counting = False
            self._begin_to_settle()
        elif self._pipe is None:
            self._dispose()
        else:
            # What is still in the pipe comes before its end, unless a stranger holds it open.
            self._after(_LINGER_S, self._dispose)

    def _lose_supervisor(self):
        """The supervisor was killed; the spawner has adopted the tree and kills it."""
        self._close_sock()
        if self._exit is None and self._why is None:
            self._why = "lost"
        self._sweep()

    # Ending -----------------------------------------------------------------------------

    def stop(self, why, grace_s=None):
        """Kill the tree; the answer tells `why`: "timeout" or "stopped"."""
        if self._gone or self._why is not None:
            return
        if not self.answered:
            if why == "timeout" and self._exit is not None:
                return
            self._why = why
            self._ended_at = None
            self._counting = False
        if self._sock is None:
            self._finish_unstarted()
            return
        grace_s = self._grace_s if grace_s is None else grace_s
        try:
            self.link.used_up = True
            packets.send(self._sock, {"kill": float(grace_s)})
        except OSError:
            pass  # the end of file is on its way
        self._after(grace_s + KILL_S + _OVERDUE_S, self._sweep)
        self.resume()

    def _finish_unstarted(self):
        if self.link is None:
            self._answer()
            self._owner.withdraw(self)
            self._dispose()

    def _sweep(self):
        if self._swept or (self._killed and self._killed["confirmed"]):
            return
        self._swept = True
        self._counting = False
        self._owner.sweep(self)
        self._after(_SWEPT_S, lambda: self.swept({"confirmed": False, "survivors": []}))

    def swept(self, value):
        """Take the spawner's report on a tree whose supervisor was killed."""
        self._close_sock()
        self._left = 0
        if self._killed is None:
            self._killed = value
        self._gone = True
        if self.answered:
            self._dispose()
        else:
            self._begin_to_settle()

    def _begin_to_settle(self):
        if self._ended_at is None:
            self._ended_at = self._loop.time()
            self._owed = self._waiting_output()
        self._settle()

    def _waiting_output(self):
        """Return the bytes in the pipe, which are owed to the reader however long that takes."""
        if self._pipe is None or self._why == "stopped":
            return 0
        try:
            return struct.unpack("i", fcntl.ioctl(self._pipe, _FIONREAD, b"\0" * 4))[0]
        except OSError:
            return 0

    def _settle(self):
        """Answer once the output has ended, has been silent, or has gone on for long enough."""
        if self._ended_at is None or self.answered or self._counting:
            return
        if self._pipe is not None:
            if self._owed > 0:
                return
            now = self._loop.time()
            silence_s = now - max(self._last_output, self._ended_at)
            rest = min(_SILENCE_S - silence_s, _LINGER_S - (now - self._ended_at))
            if rest > 0:
                self._settle_after(rest)
                return
        if self._left and self._killed is None:
            self._count()
        else:
            self._answer()

    def _count(self):
        """Ask how many processes go on; those that were only a moment slower do not count."""
        self._counting = True
        self._after(_LEAVING_S if self._pipe is None else 0.0, self._ask)

    def _ask(self):
        if not self._counting or self._sock is None:
            return
        try:
            packets.send(self._sock, {"count": True})
        except OSError:
            pass  # the end of file is on its way
        self._after(_ANSWER_S, self._stop_counting)

    def _stop_counting(self):
        """Take the number from the shell's end: the supervisor does not answer."""
        if self._counting:
            self._answer()

    def _answer(self):
        if self.answered:
            return
        self.answered = True
        if self._left:
            self._leave_in_background()
        killed = self._killed
        exited = self._exit if self._why is None and self._exit else {}
        ended = self._why or ("exited" if exited.get("signal") is None else "signalled")
        confirmed = "killed" if killed and killed["confirmed"] else "unconfirmed"
        self._output.ended(
            {
                "ended": ended,
                "exit_code": exited.get("code"),
                "signal": exited.get("signal"),
                "killed": confirmed if killed else "none",
                "survivors": killed["survivors"] if killed else [],
                "background": self._left,
                "duration_s": (self._ended_at or self._loop.time()) - self._started_at,
            }
        )
        self._cancel_timers()
        if self._pipe is not None:
            self.resume()
        if self._gone and self._pipe is None:
            self._dispose()
        elif self._gone:
            self._after(_LINGER_S, self._dispose)

    def _leave_in_background(self):
        if self._pipe is not None:
            self._output.in_background()
        if self._owner.keep_background:
            self.stays = True
            self._owner.let_stay(self)
            fds = [] if self._pipe is None else [self._pipe]
            try:
                packets.send(self._sock, {"stay": "pipe" if fds else "silent"}, fds)
            except OSError:
                pass

    # Letting go ---------------------------------------------------------------------------

    def close_link(self):
        """Let the supervisor kill the tree, unless it was told that this one stays."""
        self._close_sock()

    def cancel(self):
        """Stop the job for its request, unless that has its answer."""
        if not self.answered:
            self.stop("stopped")

    def give_up(self, confirmed):
        """Answer that it is not known how the job ended; its supervisor is out of reach."""
        self._close_sock()
        if not self.answered:
            if self._why is None and self._exit is None:
                self._why = "lost"
            self._killed = {"confirmed": confirmed, "survivors": []}
            self._left = 0
            self._answer()
        self._dispose()

    def _dispose(self):
        self._cancel_timers()
        self._close_sock()
        self._close_pipe()
        self._close_fds()
        if self._output is not None:
            self._output.close()
            self._output = None
            self._owner.forget(self)

    def _close_sock(self):
        if self._sock is not None:
            self._loop.remove_reader(self._sock.fileno())
            self._sock.close()
            self._sock = None

    def _return_link(self):
        """Give the supervisor back: nothing of this job is left below it."""
        if self._sock is not None:
            self._loop.remove_reader(self._sock.fileno())
            self._sock = None
            self._owner.take_back(self.link)

    def _close_pipe(self):
        if self._pipe is not None:
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = None

    def _close_fds(self):
        while self._fds:
            os.close(self._fds.pop())

    # Timers -------------------------------------------------------------------------------

    def _after(self, delay_s, callback):
        self._timers.append(self._loop.call_later(delay_s, callback))

    def _settle_after(self, delay_s):
        if self._settling is None:
            self._settling = self._loop.call_later(delay_s, self._on_settling)

    def _on_settling(self):
        self._settling = None
        self._settle()

    def _cancel_timers(self):
        if self._settling is not None:
            self._settling.cancel()
            self._settling = None
        for timer in self._timers:
            timer.cancel()
        self._timers = []
