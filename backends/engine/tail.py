"""The end of a long output, its totals, and the file that the whole of it goes to."""

import os

#: Output is held in memory up to the keeping threshold, and never beyond this.
_MOST_HELD = 4 << 20


class Tail:
    """Take output in, remember its end, write the whole to a file once it is long.

    Attributes:
        total_bytes: Bytes taken in.
        total_lines: LF bytes among them.
        kept_path: Path (bytes) of the file with the whole, or None.
        kept_bytes: Bytes in it.
        dropped: Why there is no such file although one was wanted, or None.

    Args:
        size: Bytes of the end that are wanted.
        keep_over_bytes: More bytes than this go to a file.
        keep_over_lines: More lines than this go to a file.
        kept: The KeptOutput that makes the file.
        cap: Most bytes of the file.
    """

    def __init__(self, size, keep_over_bytes, keep_over_lines, kept, cap):
        self.total_bytes = 0
        self.total_lines = 0
        self.kept_path = None
        self.kept_bytes = 0
        self.dropped = None
        self._size = size
        self._keep_over_bytes = min(keep_over_bytes, _MOST_HELD)
        self._keep_over_lines = keep_over_lines
        self._kept = kept
        self._cap = cap
        self._held = bytearray()
        self._shown = 0
        self._file = None
        self._decided = False

    def add(self, chunk):
        """Take in the next bytes of the output."""
        self.total_bytes += len(chunk)
        self.total_lines += chunk.count(b"\n")
        if self._decided:
            self._write(chunk)
        self._hold(chunk)
        too_long = self.total_bytes > self._keep_over_bytes
        if not self._decided and (too_long or self.total_lines > self._keep_over_lines):
            self.keep()

    def keep(self):
        """Begin the file now: all that came so far is still held."""
        if self._decided:
            return
        self._decided = True
        try:
            self._file, self.kept_path = self._kept.create()
        except OSError as error:
            self.dropped = error.strerror or str(error)
        self._write(self._held)
        self._trim()

    def take(self):
        """Return (position, bytes) of what is new since the last call, cut to the tail."""
        new = min(self.total_bytes - self._shown, self._size, len(self._held))
        self._shown = self.total_bytes
        return self.total_bytes - new, bytes(self._held[len(self._held) - new :])

    @property
    def has_news(self):
        """Whether anything came since the last `take`."""
        return self.total_bytes > self._shown

    def close(self):
        """Close the file; its path stays valid."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _hold(self, chunk):
        if self._decided and len(chunk) >= self._size:
            self._held[:] = chunk[len(chunk) - self._size :]
            return
        self._held += chunk
        if self._decided and len(self._held) > 2 * self._size + _MOST_HELD // 8:
            self._trim()

    def _trim(self):
        del self._held[: max(0, len(self._held) - self._size)]

    def _write(self, data):
        if self._file is None:
            return
        rest = memoryview(data)[: self._cap - self.kept_bytes]
        try:
            self._kept.claim(len(rest))
            while rest:
                written = os.write(self._file, rest)
                self.kept_bytes += written
                rest = rest[written:]
        except OSError as error:
            self._give_up(error)
        finally:
            rest.release()

    def _give_up(self, error):
        """Free the space of a file that cannot be whole."""
        self.dropped = error.strerror or str(error)
        self.close()
        self._kept.give_back(self.kept_bytes)
        try:
            os.unlink(self.kept_path)
        except OSError:
            pass
        self.kept_path = None
        self.kept_bytes = 0
