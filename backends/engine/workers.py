"""Threads for blocking work: made when they are needed, daemons, at most so many."""

import threading
from collections import deque


class Workers:
    """Run calls in the order they were given, up to `limit` at once.

    Args:
        limit: Most threads.
    """

    def __init__(self, limit):
        self._limit = limit
        self._calls = deque()
        self._ready = threading.Condition()
        self._threads = 0
        self._idle = 0
        #: Calls that run or wait.
        self.busy = 0

    def submit(self, call):
        """Have `call()` made by a thread; it must not raise.

        Raises:
            RuntimeError: There is no thread and none can be started.
        """
        with self._ready:
            if self._idle > len(self._calls):
                self._ready.notify()
            elif self._threads < self._limit:
                self._start_thread()
            self._calls.append(call)
            self.busy += 1

    def _start_thread(self):
        thread = threading.Thread(target=self._work)
        thread.daemon = True
        try:
            thread.start()
        except RuntimeError:
            if not self._threads:
                raise
        else:
            self._threads += 1

    def _work(self):
        while True:
            with self._ready:
                self._idle += 1
                while not self._calls:
                    self._ready.wait()
                self._idle -= 1
                call = self._calls.popleft()
            call()
            with self._ready:
                self.busy -= 1
