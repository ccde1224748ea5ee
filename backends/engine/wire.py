"""The engine's end of the channel: the session's bytes in and out of descriptors, by any thread."""

import os
import threading

from backends.engine.frames import WireError

_READ = 1 << 18
_WRITE = 1 << 18
#: What may wait unsent before the near end counts as gone: a stalled wire must not fill memory.
MAX_WAITING = 64 << 20


class Wire:
    """Move bytes between a FarSession and two non-blocking descriptors.

    `lock` guards the session; waiters for credit sleep on it. `send` and `flush` are for any
    thread, the rest is for the loop's thread.

    Attributes:
        on_event: Called with each event of the session.
        on_room: Called when output that had waited has been taken.
        on_end: Called once with a reason when the channel has ended or is of no use.
        heard_at: When bytes arrived last, by the loop's clock.

    Args:
        loop: The engine's Loop.
        session: A FarSession.
        in_fd: Where frames come from.
        out_fd: Where frames go to.
    """

    def __init__(self, loop, session, in_fd, out_fd):
        self.lock = threading.Condition(threading.RLock())
        self.session = session
        self.on_event = None
        self.on_end = None
        self.on_room = None
        self.heard_at = loop.time()
        self._loop = loop
        self._in_fd = in_fd
        self._out_fd = out_fd
        self._pending = memoryview(b"")
        self._blocked = False
        self._broken = False
        self._ended = False
        os.set_blocking(in_fd, False)
        os.set_blocking(out_fd, False)

    def start(self):
        """Begin to read."""
        self._loop.add_reader(self._in_fd, self._readable)

    def send(self, operation, *args):
        """Do `operation(*args)`, a method of the session that queues frames, and send them."""
        with self.lock:
            operation(*args)
            self.flush()

    def flush(self):
        """Send what the descriptor takes now; the loop sends the rest as it can."""
        with self.lock:
            if self._blocked or self._broken:
                return
            if not self._write_some():
                self._blocked = True
                self._loop.call_from_thread(self._watch)

    def close(self):
        """Send what the descriptor takes now, and nothing after that; read nothing either."""
        with self.lock:
            if not self._broken:
                self._write_some()
            self._ended = self._broken = True
            self._loop.remove_reader(self._in_fd)
            self._loop.remove_writer(self._out_fd)
            self.lock.notify_all()

    def _watch(self):
        with self.lock:
            if self._blocked and not self._broken:
                self._loop.add_writer(self._out_fd, self._writable)

    def _writable(self):
        with self.lock:
            if self._write_some():
                self._blocked = False
                self._loop.remove_writer(self._out_fd)
            self.lock.notify_all()
        self.on_room()

    def _write_some(self):
        """Write until nothing is left (True) or the descriptor takes no more (False)."""
        while True:
            if not self._pending:
                data = self.session.to_send(_WRITE)
                if not data:
                    return True
                self._pending = memoryview(data)
            try:
                self._pending = self._pending[os.write(self._out_fd, self._pending) :]
            except BlockingIOError:
                if self.session.waiting <= MAX_WAITING:
                    return False
                self._broken = True
                self._end("the near end takes no output")
                return True
            except OSError as error:
                self._broken = True
                self._end("the channel cannot be written: %s" % error.strerror)
                return True

    def _readable(self):
        try:
            data = os.read(self._in_fd, _READ)
        except BlockingIOError:
            return
        except OSError as error:
            self._stop_reading("the channel cannot be read: %s" % error.strerror)
            return
        if not data:
            self._stop_reading("end of input")
            return
        self.heard_at = self._loop.time()
        try:
            with self.lock:
                events = self.session.receive(data)
                self.flush()
        except WireError as error:
            self._stop_reading("the near end broke the protocol: %s" % error)
            return
        for event in events:
            self.on_event(*event)

    def _stop_reading(self, reason):
        self._loop.remove_reader(self._in_fd)
        self._end(reason)

    def _end(self, reason):
        if not self._ended:
            self._ended = True
            self._loop.call_from_thread(lambda: self.on_end(reason))
