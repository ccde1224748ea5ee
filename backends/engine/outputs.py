"""Where a job's output goes and how its request is answered: one class for each kind of job.

Each has `room()` (bytes that it takes now), `feed(chunk)`, `ended(report)` (answers the request),
`refused(part, error)` (nothing could be started), `in_background()` (the shell has ended, others
go on and may print) and `close()`.
"""

import errno

from backends.engine import frames, suggest
from backends.engine.faults import Fault

_CHUNK = 1 << 20
_PART_BYTES = 1 << 19
_SNAPSHOT_EVERY_S = 0.1
#: Why no process can be started at the moment: too many of them or of open files, no memory, or
#: nobody left to fork it.
_FOR_NOW = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESRCH)


class Stream:
    """The whole output as DATA, no faster than the near end reads."""

    def __init__(self, request, place, shell):
        self._request = request
        self._place = place
        self._shell = shell
        self._answered = False
        self._total_bytes = 0
        self._total_lines = 0

    def room(self):
        """Return the credit; what comes after the answer is dropped."""
        return _CHUNK if self._answered else min(self._request.credit, frames.CHUNK)

    def feed(self, chunk):
        """Send a chunk that is within the credit."""
        if not self._answered:
            self._total_bytes += len(chunk)
            self._total_lines += chunk.count(b"\n")
            if self._request.credit >= len(chunk):
                self._request.data(chunk)

    def ended(self, report):
        """Answer with how the command ended."""
        self._answered = True
        report.update(
            total_bytes=self._total_bytes,
            total_lines=self._total_lines,
            kept_path=None,
            kept_bytes=0,
            dropped=None,
            shell=self._shell,
        )
        self._request.result(report)

    def refused(self, part, error):
        """Answer that the command could not be started."""
        _refuse(self, self._request, self._place, part, error)

    def in_background(self):
        """Nothing: there is nobody left to send to."""

    def close(self):
        """Nothing to let go of."""


class Snapshots:
    """The tail of the output as PARTs, at most every 100 ms; the whole stays here."""

    def __init__(self, request, place, shell, loop, tail):
        self._request = request
        self._place = place
        self._shell = shell
        self._loop = loop
        self._tail = tail
        self._timer = None
        self._answered = False

    def room(self):
        """Return a chunk's size: there is always room."""
        return _CHUNK

    def feed(self, chunk):
        """Take in a chunk, and send a snapshot if it is time."""
        self._tail.add(chunk)
        if self._timer is None and not self._answered:
            self._send()
            self._timer = self._loop.call_later(_SNAPSHOT_EVERY_S, self._on_time)

    def ended(self, report):
        """Send the last snapshot and answer with how the command ended."""
        tail = self._tail
        if tail.has_news:
            self._send(always=True)
        self._answered = True
        report.update(
            total_bytes=tail.total_bytes,
            total_lines=tail.total_lines,
            kept_path=tail.kept_path,
            kept_bytes=tail.kept_bytes,
            dropped=tail.dropped,
            shell=self._shell,
        )
        self._request.result(report)

    def refused(self, part, error):
        """Answer that the command could not be started."""
        _refuse(self, self._request, self._place, part, error)

    def in_background(self):
        """Keep what those that go on will print, so that it can be read later."""
        self._tail.keep()

    def close(self):
        """Close the kept file."""
        if self._timer is not None:
            self._timer.cancel()
        self._tail.close()

    def _on_time(self):
        self._timer = None
        if self._tail.has_news and not self._answered:
            self._send()
            self._timer = self._loop.call_later(_SNAPSHOT_EVERY_S, self._on_time)

    def _send(self, always=False):
        # Snapshots must not pile up on a slow wire, where they would stand in the way of the
        # answer and of all others; the next one holds what this one would.
        if not always and self._request.unread:
            return
        tail = self._tail
        start, data = tail.take()
        for at in range(0, len(data), _PART_BYTES):
            self._request.part(
                {
                    "start": start + at,
                    "total_bytes": tail.total_bytes,
                    "total_lines": tail.total_lines,
                    "data": data[at : at + _PART_BYTES],
                }
            )


class Frames:
    """The frames of a search worker, handed on as parts and the answer of the request."""

    def __init__(self, request):
        self._request = request
        self._reader = frames.FrameReader()
        self._answered = False

    def room(self):
        """Return a chunk's size: a search's results are bounded."""
        return _CHUNK

    def feed(self, chunk):
        """Hand on the frames that the chunk completes."""
        if self._answered:
            return
        try:
            for kind, _, payload in self._reader.feed(chunk):
                self._hand_on(kind, frames.decode_value(payload))
        except frames.WireError as error:
            self._answered = True
            self._request.fault("internal", "the search worker's answer: %s" % error)

    def _hand_on(self, kind, value):
        if kind == frames.PART:
            self._request.part(value)
        elif kind == frames.RESULT:
            self._answered = True
            self._request.result(value)
        elif kind == frames.FAULT:
            self._answered = True
            self._request.fault(value[0], *value[1])

    def ended(self, report):
        """Answer for a worker that has not."""
        if self._answered:
            return
        self._answered = True
        if report["ended"] == "stopped":
            self._request.fault("cancelled")
        elif report["ended"] == "timeout":
            self._request.fault("search_timeout", self._request.args["timeout_s"])
        else:
            how = "exit code %s, signal %s" % (report["exit_code"], report["signal"])
            self._request.fault("internal", "the search ended without an answer: " + how)

    def refused(self, part, error):
        """Answer that no process could be started."""
        self._answered = True
        fault = _not_started(self._request.op, error)
        self._request.fault(fault.code, *fault.arguments)

    def in_background(self):
        """Nothing: a worker's helpers end with it."""

    def close(self):
        """Nothing to let go of."""


def _not_started(operation, error):
    text = error.strerror or str(error)
    if error.errno in _FOR_NOW:
        return Fault("unavailable", "no process could be started: " + text)
    return Fault("unsupported", operation, text)


def _refuse(output, request, place, part, error):
    if part == "cwd":
        fault = suggest.fault_about(place, request.args["cwd"], error)
    elif part == "program" and request.args.get("argv"):
        _end_like_a_shell(output, request.args["argv"][0], error)
        return
    else:
        fault = _not_started(request.op, error)
    request.fault(fault.code, *fault.arguments)


def _end_like_a_shell(output, name, error):
    """Answer for a program that cannot be run: an exit status and a line, as shells do."""
    output.feed(name + b": " + (error.strerror or str(error)).encode("utf-8") + b"\n")
    output.ended(
        {
            "ended": "exited",
            "exit_code": 127 if error.errno == errno.ENOENT else 126,
            "signal": None,
            "killed": "none",
            "survivors": [],
            "background": 0,
            "duration_s": 0.0,
        }
    )
