"""What the engine does for each request: a table from operation to handler."""

import threading
import traceback
from collections import deque

from backends.engine import frames, listing, reading, writing
from backends.engine.faults import Fault
from backends.engine.workers import Workers

#: Threads for quick file operations, and as many for those that move whole files, so that uploads
#: that wait for the wire do not hold up a look at one line.
THREADS = 8
#: Most bytes of a body that a handler on the loop's thread gets whole (command and stdin).
MAX_WHOLE_BODY = 20 << 20
_MAX_ENTRIES = 1000
_PART_BYTES = 256 * 1024
_TRACEBACK_CHARS = 8000


class Body:
    """The bytes that follow a request.

    Args:
        wire: Where to grant credit.
        request_id: The request's id.
        size: How many bytes were announced.
    """

    def __init__(self, wire, request_id, size):
        self.size = size
        self._wire = wire
        self._request_id = request_id
        self._chunks = deque()
        self._ready = threading.Condition()
        self._state = "open"

    def chunks(self):
        """Yield the bytes as they come, blocking; for worker threads.

        Raises:
            Fault: "cancelled", when the request was cancelled or the wire has ended.
        """
        while True:
            with self._ready:
                while not self._chunks and self._state == "open":
                    self._ready.wait()
                if self._state == "aborted":
                    raise Fault("cancelled")
                if not self._chunks:
                    return
                chunk = self._chunks.popleft()
            self._wire.send(self._wire.session.grant, self._request_id, len(chunk))
            yield chunk

    @property
    def data(self):
        """The whole body, once it has arrived."""
        return b"".join(self._chunks)

    def feed(self, chunk):
        """Take a chunk that has arrived."""
        with self._ready:
            self._chunks.append(chunk)
            self._ready.notify()

    def end(self):
        """Note that nothing more comes."""
        self._settle("complete")

    def abort(self):
        """Make `chunks` raise."""
        self._settle("aborted")

    def _settle(self, state):
        with self._ready:
            if self._state == "open" or state == "aborted":
                self._state = state
            self._ready.notify()


class Request:
    """One request, as its handler sees it.

    Attributes:
        id: Its id on the wire.
        op: The operation's name.
        args: Its arguments.
        body: A Body, or None.
        cancelled: True once the near end wants it to end.
        on_cancel: Called on the loop's thread when that happens.
        on_credit: Called on the loop's thread when `credit` has grown.
    """

    def __init__(self, wire, request_id, op, args, body):
        self.id = request_id
        self.op = op
        self.args = args
        self.body = body
        self.cancelled = False
        self.on_cancel = None
        self.on_credit = None
        self._wire = wire

    @property
    def credit(self):
        """Bytes of `data` that may be sent now."""
        with self._wire.lock:
            return self._wire.session.credit(self.id)

    @property
    def unread(self):
        """Bytes of output that the near end has not said to have taken."""
        with self._wire.lock:
            return self._wire.session.unread(self.id)

    def part(self, value):
        """Send a part of the answer; any thread."""
        self._wire.send(self._wire.session.part, self.id, value)

    def data(self, chunk):
        """Send at most `credit` bytes of output; loop's thread."""
        self._wire.send(self._wire.session.data, self.id, chunk)

    def write(self, chunk):
        """Send output of any length, waiting for credit; worker threads.

        Raises:
            Fault: "cancelled", when the request was cancelled or the wire has ended.
        """
        wire, session = self._wire, self._wire.session
        rest = memoryview(chunk)
        while rest:
            with wire.lock:
                if not session.credit(self.id):
                    wire.flush()
                while not self.cancelled and not session.credit(self.id):
                    wire.lock.wait()
                if self.cancelled:
                    raise Fault("cancelled")
                piece = rest[: min(session.credit(self.id), frames.CHUNK)]
                session.data(self.id, piece)
                # A last small piece goes with the answer that follows: one wake-up, not two.
                if len(piece) == frames.CHUNK:
                    wire.flush()
            rest = rest[len(piece) :]

    def result(self, value):
        """Answer, which ends the request; any thread; nothing happens if it has ended."""
        self._answer(self._wire.session.result, value)

    def fault(self, code, *args):
        """Answer with a fault, which ends the request; any thread."""
        self._answer(self._wire.session.fault, code, list(args))

    def _answer(self, operation, *args):
        try:
            self._wire.send(operation, self.id, *args)
        except frames.WireError:
            text = traceback.format_exc()[-_TRACEBACK_CHARS:]
            self._wire.send(self._wire.session.fault, self.id, "internal", [text])


class Service:
    """Hand each request to its handler and follow it until it has ended.

    Args:
        wire: The Wire that requests come from.
        commands: Runs commands and searches (see `commands.Commands`).
        place: Where file operations act.
    """

    def __init__(self, wire, commands, place):
        self._wire = wire
        self._commands = commands
        self._place = place
        self._requests = {}
        self._quick = Workers(THREADS)
        self._long = Workers(THREADS)

    def handle(self, kind, request_id, value):
        """Take one event of the session; loop's thread."""
        if kind == frames.REQUEST:
            self._start(request_id, *value)
            return
        request = self._requests.get(request_id)
        if request is None:
            return
        if kind == frames.DATA:
            self._feed(request, value)
        elif kind == frames.END:
            request.body.end()
            if request.op in _LOOP_OPERATIONS:
                self._start_on_loop(request)
        elif kind == frames.CANCEL:
            self._cancel(request)
        elif kind == frames.CREDIT:
            self.more_room(request)

    def more_room(self, request=None):
        """Tell those who wait for credit (all of them, or one) that there may be some."""
        with self._wire.lock:
            self._wire.lock.notify_all()
        for waiting in [request] if request else list(self._requests.values()):
            if waiting.on_credit is not None and waiting.credit:
                waiting.on_credit()

    def abort(self):
        """Make every request that worker threads have in hand end soon."""
        for request in list(self._requests.values()):
            if request.op not in _LOOP_OPERATIONS:
                self._cancel(request)

    @property
    def busy(self):
        """How many calls worker threads have in hand."""
        return self._quick.busy + self._long.busy

    def _start(self, request_id, op, args, body_size):
        self._forget_ended()
        body = None if body_size is None else Body(self._wire, request_id, body_size)
        request = self._requests[request_id] = Request(self._wire, request_id, op, args, body)
        if op in _LOOP_OPERATIONS:
            if op in _SEARCHES:
                self._start_on_loop(request)
            elif body is None:
                request.fault("bad_request", "a command needs a body")
            elif body_size > MAX_WHOLE_BODY:
                request.fault("too_large", "command", body_size, MAX_WHOLE_BODY)
        elif op in _QUICK_OPERATIONS:
            self._submit(self._quick, request, _QUICK_OPERATIONS[op])
        elif op in _LONG_OPERATIONS:
            self._submit(self._long, request, _LONG_OPERATIONS[op])
        else:
            request.fault("unsupported", op, "the engine does not know it")

    def _submit(self, workers, request, handler):
        try:
            workers.submit(lambda: self._run(request, handler))
        except RuntimeError:
            request.fault("unsupported", request.op, "the target can start no more threads")

    def _forget_ended(self):
        """Drop what has ended, which worker threads and commands do without telling."""
        if len(self._requests) >= 64:
            with self._wire.lock:
                is_open = self._wire.session.is_open
                self._requests = {i: r for i, r in self._requests.items() if is_open(i)}

    def _feed(self, request, chunk):
        request.body.feed(chunk)
        if request.op in _LOOP_OPERATIONS:
            self._wire.send(self._wire.session.grant, request.id, len(chunk))

    def _cancel(self, request):
        if request.cancelled:
            return
        with self._wire.lock:
            request.cancelled = True
            self._wire.lock.notify_all()
        if request.body is not None:
            request.body.abort()
        if request.on_cancel is not None:
            request.on_cancel()
        elif request.op in _LOOP_OPERATIONS:
            request.fault("cancelled")

    def _start_on_loop(self, request):
        try:
            if request.op in _SEARCHES:
                self._commands.start_search(request, request.op)
                return
            body, size = request.body.data, request.args["command_size"]
            request.args["command"], request.args["stdin"] = body[:size], body[size:]
            self._commands.start(request)
        except Exception as error:
            _answer_error(request, error)

    def _run(self, request, handler):
        """Run a handler to its end in a worker thread."""
        if request.cancelled:
            request.fault("cancelled")
            return
        try:
            request.result(handler(self._place, request))
        except Exception as error:
            _answer_error(request, error)


def _answer_error(request, error):
    if isinstance(error, Fault):
        request.fault(error.code, *error.arguments)
    else:
        request.fault("internal", traceback.format_exc()[-_TRACEBACK_CHARS:])


# Handlers: (place, request) -> the value of the result, in a worker thread.


def _access(place, request):
    return reading.access(place, request.args["path"])


def _exists(place, request):
    return listing.exists(place, request.args["path"])


def _is_directory(place, request):
    return listing.is_directory(place, request.args["path"])


def _detect_image(place, request):
    return reading.detect_image_mime_type(place, request.args["path"])


def _make_directory(place, request):
    return writing.make_directory(place, request.args["path"])


def _read_file(place, request):
    args = request.args
    return reading.read_file(
        place,
        args["path"],
        request.write,
        args["limit"],
        digest=args["digest"],
        cancelled=lambda: request.cancelled,
    )


def _read_lines(place, request):
    args = request.args
    window = reading.read_lines(
        place,
        args["path"],
        args["start"],
        args["max_lines"],
        args["max_bytes"],
        progress=lambda done, total: request.part({"done": done, "total": total}),
        cancelled=lambda: request.cancelled,
    )
    request.write(window.pop("data"))
    return window


def _replace_file(place, request):
    args = request.args
    return writing.replace_file(
        place,
        args["path"],
        request.body,
        make_parents=args["make_parents"],
        expected=args["expected"],
        durable=args["durable"],
    )


def _list_directory(place, request):
    listed = listing.list_directory(place, request.args["path"], request.args["limit"])
    batch, size = [], 0
    for entry in listed["entries"]:
        batch.append(entry)
        size += len(entry[0]) + len(entry[2] or b"")
        if len(batch) == _MAX_ENTRIES or size > _PART_BYTES:
            request.part({"entries": batch})
            batch, size = [], 0
    if batch:
        request.part({"entries": batch})
    return {"total": listed["total"]}


_QUICK_OPERATIONS = {
    "access": _access,
    "exists": _exists,
    "is_directory": _is_directory,
    "detect_image": _detect_image,
    "make_directory": _make_directory,
    "read_lines": _read_lines,
    "list_directory": _list_directory,
}
_LONG_OPERATIONS = {"read_file": _read_file, "replace_file": _replace_file}
_SEARCHES = ("grep", "find")
#: Started on the loop's thread, by Commands.
_LOOP_OPERATIONS = ("exec", "exec_tail", "grep", "find")
