"""Find a window of lines in a stream of bytes; pure, with memory bounded by the window."""

import time

from backends.engine.content import HEAD_BYTES, binary_type, image_mime_type
from backends.engine.faults import Fault

# The 4-byte marks come first: the one of UTF-32-LE begins with that of UTF-16-LE.
_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32-le", b"\n\x00\x00\x00"),
    (b"\x00\x00\xfe\xff", "utf-32-be", b"\x00\x00\x00\n"),
    (b"\xef\xbb\xbf", "utf-8-sig", b"\n"),
    (b"\xff\xfe", "utf-16-le", b"\n\x00"),
    (b"\xfe\xff", "utf-16-be", b"\x00\n"),
)
_PROGRESS_INTERVAL_S = 0.1
# Below this many bytes a line is found by stepping, above it by counting halves.
_STEP_BYTES = 4096


def scan_lines(chunks, start, max_lines, max_bytes, progress=None, cancelled=None, size=None):
    """Return a window of whole lines as a dict with the keys of `operations.values.LineWindow`.

    The size of a line includes its ending. For UTF-16 and UTF-32 `max_bytes` bounds what the
    lines take up in UTF-8, while `data`, `size` and `long_line_bytes` are in raw bytes.

    Args:
        chunks: Iterable of bytes of any lengths, the whole file in order.
        start: 1-based number of the first line wanted.
        max_lines: Most lines wanted, 1 or more.
        max_bytes: Most bytes wanted, 1 or more; lines are never cut.
        progress: Called as `progress(done, size)` with the bytes scanned so far, at most ten
            times a second.
        cancelled: Called once per chunk; a true value ends the scan.
        size: Bytes in the file where that is known: then only the beginning of a file that is
            not text is read.

    Raises:
        Fault: "cancelled" when `cancelled` said so.
    """
    stream = _Stream(chunks, progress, cancelled, size)
    head = stream.take(HEAD_BYTES)
    mime_type = image_mime_type(head)
    if mime_type:
        return _not_text("image", mime_type, start, stream, size)
    mark, encoding, newline = _encoding_of(head)
    if not mark and b"\0" in head[:HEAD_BYTES]:
        return _not_text("binary", binary_type(head), start, stream, size)
    window = _Window(start, max_lines, max_bytes, encoding, newline)
    width = len(newline)
    rest = head[len(mark) :]
    if width == 1:
        window.feed(rest)
        for chunk in stream:
            window.feed(chunk)
    else:
        for chunk in stream:
            whole = len(rest) - len(rest) % width
            window.feed(rest[:whole])
            rest = rest[whole:] + chunk
        whole = len(rest) - len(rest) % width
        window.feed(rest[:whole])
        window.feed(rest[whole:])  # half a character at the very end belongs to the last line
    return window.finish(stream.done)


def _not_text(kind, mime_type, start, stream, size):
    if not size:
        for _ in stream:
            pass
    return _result(kind=kind, mime_type=mime_type, start=start, size=size or stream.done)


def _result(**known):
    result = {
        "kind": "text",
        "data": b"",
        "start": 1,
        "lines": 0,
        "total_lines": 0,
        "size": 0,
        "encoding": "utf-8",
        "mime_type": None,
        "stopped_by": None,
        "long_line_bytes": 0,
    }
    result.update(known)
    return result


def _encoding_of(head):
    """Return (byte order mark, encoding, line ending in it)."""
    for mark, encoding, newline in _MARKS:
        if head.startswith(mark):
            return mark, encoding, newline
    return b"", "utf-8", b"\n"


class _Stream:
    """The chunks, counted, with cancellation and progress looked at for each."""

    def __init__(self, chunks, progress, cancelled, size):
        self.done = 0
        self._chunks = iter(chunks)
        self._progress = progress
        self._cancelled = cancelled
        self._size = size
        self._next_report = time.monotonic() + _PROGRESS_INTERVAL_S

    def __iter__(self):
        return self

    def __next__(self):
        if self._cancelled is not None and self._cancelled():
            raise Fault("cancelled")
        chunk = next(self._chunks)
        self.done += len(chunk)
        if self._progress is not None:
            now = time.monotonic()
            if now >= self._next_report:
                self._next_report = now + _PROGRESS_INTERVAL_S
                self._progress(self.done, self._size)
        return chunk

    def take(self, count):
        """Return the next chunks joined: at least `count` bytes, less only at the end."""
        parts = []
        have = 0
        for chunk in self:
            parts.append(chunk)
            have += len(chunk)
            if have >= count:
                break
        return parts[0] if len(parts) == 1 else b"".join(parts)


class _Window:
    """Lines counted, and those wanted collected, from chunks of whole characters."""

    def __init__(self, start, max_lines, max_bytes, encoding, newline):
        self._start = start
        self._max_lines = max_lines
        self._max_bytes = max_bytes
        self._encoding = encoding
        self._newline = newline
        self._width = len(newline)
        self._endings = 0
        self._unterminated = False
        self._collecting = True
        self._data = bytearray()
        self._data_utf8 = 0
        self._lines = 0
        self._line = bytearray()  # what is known of the line being collected
        self._line_bytes = 0  # its size, also when it is too long to be held in `_line`
        self._stopped_by = None
        self._long_line_bytes = 0

    def feed(self, chunk):
        """Take the next bytes."""
        if not chunk:
            return
        count = self._count(chunk)
        if self._collecting and self._endings + count >= self._start - 1:
            self._collect(chunk, self._find_start(chunk))
        self._endings += count
        self._unterminated = not chunk.endswith(self._newline)

    def finish(self, size):
        """Return the result; `size` is the number of bytes in the whole file."""
        if self._collecting and self._line_bytes:
            self._end_line()
        return _result(
            data=bytes(self._data),
            start=self._start,
            lines=self._lines,
            total_lines=self._endings + self._unterminated,
            size=size,
            encoding=self._encoding,
            stopped_by=self._stopped_by,
            long_line_bytes=self._long_line_bytes,
        )

    def _count(self, chunk):
        if self._width == 1:
            return chunk.count(b"\n")
        # Faster than stepping from find to find, which must also skip matches off the grid.
        return chunk.decode(self._encoding, "replace").count("\n")

    def _find(self, chunk, position):
        """Return where the next line ending begins, or -1."""
        at = chunk.find(self._newline, position)
        while at % self._width and at != -1:
            at = chunk.find(self._newline, at + 1)
        return at

    def _find_start(self, chunk):
        """Return where in `chunk` the collecting goes on."""
        skip = self._start - 1 - self._endings
        if skip <= 0:
            return 0
        if self._width == 1:
            return _after_lines(chunk, 0, skip)
        position = 0
        for _ in range(skip):
            position = self._find(chunk, position) + self._width
        return position

    def _collect(self, chunk, position):
        while position < len(chunk) and self._collecting:
            if self._lines == self._max_lines:
                self._stop("lines")
                return
            if self._width == 1 and not self._line_bytes:
                end = self._add_run(chunk, position)
                if end != position:
                    position = end
                    continue
            at = self._find(chunk, position)
            end = len(chunk) if at == -1 else at + self._width
            self._add(chunk[position:end])
            position = end
            if at != -1 and self._collecting:
                self._end_line()

    def _add_run(self, chunk, position):
        """Add the whole lines that fit, at once; return the position after them."""
        room = self._max_bytes - self._data_utf8
        end = chunk.rfind(b"\n", position, position + room) + 1
        if not end:
            return position
        wanted = self._max_lines - self._lines
        count = chunk.count(b"\n", position, end)
        if count > wanted:
            count = wanted
            end = _after_lines(chunk, position, wanted)
        self._data += chunk[position:end]
        self._data_utf8 += end - position
        self._lines += count
        return end

    def _add(self, piece):
        """Add a piece to the current line, which is held only as long as it may fit."""
        self._line_bytes += len(piece)
        # A character of `width` bytes takes up at least one byte of UTF-8.
        if self._data_utf8 + self._line_bytes // self._width <= self._max_bytes:
            self._line += piece

    def _end_line(self):
        size = self._line_bytes
        if size == len(self._line) and self._width > 1:
            text = self._line.decode(self._encoding, "replace")
            size = len(text.encode("utf-8"))
        if self._data_utf8 + size > self._max_bytes:
            if not self._lines:
                self._long_line_bytes = self._line_bytes
            self._stop("bytes")
            return
        self._data += self._line
        self._data_utf8 += size
        self._lines += 1
        self._line = bytearray()
        self._line_bytes = 0

    def _stop(self, reason):
        self._collecting = False
        self._stopped_by = reason
        self._line = bytearray()


def _after_lines(chunk, position, skip):
    """Return the position after the `skip` next line endings, which `chunk` has."""
    high = len(chunk)
    while high - position > _STEP_BYTES:
        middle = (position + high) // 2
        count = chunk.count(b"\n", position, middle)
        if count < skip:
            position = middle
            skip -= count
        else:
            high = middle
    for _ in range(skip):
        position = chunk.find(b"\n", position) + 1
    return position
