"""The engine's event loop: one thread, descriptors, timers, and calls from worker threads."""

import heapq
import os
import selectors
import threading
import time
from collections import deque

#: A selector takes no number of days; a timer that is later than this is looked at again.
_LONGEST_WAIT_S = 3600.0


class Timer:
    """A call that will happen once unless it is cancelled."""

    __slots__ = ("callback", "due")

    def __init__(self, due, callback):
        self.due = due
        self.callback = callback

    def cancel(self):
        """Make sure that the call does not happen."""
        self.callback = None

    def __lt__(self, other):
        return self.due < other.due


class Loop:
    """Wait for descriptors and timers; everything but `call_from_thread` is for its own thread."""

    def __init__(self):
        self._selector = selectors.DefaultSelector()
        self._handlers = {}
        self._timers = []
        self._calls = deque()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._thread = threading.get_ident()
        self._stopped = False
        self.add_reader(self._wake_read, self._drain_wakeups)

    def time(self):
        """Return seconds of the monotonic clock."""
        return time.monotonic()

    def add_reader(self, fd, callback):
        """Call `callback()` whenever `fd` can be read or is at end of file."""
        self._set(fd, 0, callback)

    def remove_reader(self, fd):
        """Stop watching `fd` for reading; fine if it was not watched."""
        self._set(fd, 0, None)

    def add_writer(self, fd, callback):
        """Call `callback()` whenever `fd` can be written."""
        self._set(fd, 1, callback)

    def remove_writer(self, fd):
        """Stop watching `fd` for writing; fine if it was not watched."""
        self._set(fd, 1, None)

    def call_later(self, delay_s, callback):
        """Call `callback()` after `delay_s` seconds; return a Timer."""
        timer = Timer(self.time() + delay_s, callback)
        heapq.heappush(self._timers, timer)
        return timer

    def call_soon(self, callback):
        """Call `callback()` in the next turn."""
        self._calls.append(callback)

    def call_from_thread(self, callback):
        """Call `callback()` in the next turn; safe from any thread."""
        self._calls.append(callback)
        if threading.get_ident() != self._thread:
            self._wake()

    def call_from_signal(self, callback):
        """Call `callback()` in the next turn; for handlers of signals, which may hit a wait."""
        self._calls.append(callback)
        self._wake()

    def stop(self):
        """Make `run` return after the current turn."""
        self._stopped = True

    def run(self):
        """Serve until `stop`."""
        self._thread = threading.get_ident()
        while not self._stopped:
            for key, events in self._selector.select(self._timeout()):
                # A handler earlier in this turn may have removed or replaced this one.
                handlers = self._handlers.get(key.fd)
                if handlers is None or handlers is not key.data:
                    continue
                if events & selectors.EVENT_READ and handlers[0]:
                    handlers[0]()
                if events & selectors.EVENT_WRITE and handlers[1]:
                    handlers[1]()
            self._run_due()

    def _wake(self):
        try:
            os.write(self._wake_write, b"x")
        except BlockingIOError:
            pass  # the pipe is full of wake-ups already

    def _timeout(self):
        if self._calls or self._stopped:
            return 0
        while self._timers and self._timers[0].callback is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return None
        return min(max(0.0, self._timers[0].due - self.time()), _LONGEST_WAIT_S)

    def _run_due(self):
        now = self.time()
        while self._timers and self._timers[0].due <= now:
            callback = heapq.heappop(self._timers).callback
            if callback is not None:
                callback()
        for _ in range(len(self._calls)):
            self._calls.popleft()()

    def _drain_wakeups(self):
        try:
            while len(os.read(self._wake_read, 4096)) == 4096:
                pass
        except BlockingIOError:
            pass

    def _set(self, fd, slot, callback):
        handlers = self._handlers.get(fd)
        if handlers is None:
            if callback is None:
                return
            handlers = self._handlers[fd] = [None, None]
            handlers[slot] = callback
            self._selector.register(fd, 1 << slot, handlers)
            return
        before = self._mask(handlers)
        handlers[slot] = callback
        after = self._mask(handlers)
        if after == before:
            return
        if after:
            self._selector.modify(fd, after, handlers)
        else:
            self._selector.unregister(fd)
            del self._handlers[fd]

    @staticmethod
    def _mask(handlers):
        read = selectors.EVENT_READ if handlers[0] else 0
        return read | (selectors.EVENT_WRITE if handlers[1] else 0)
