"""Frames and values as bytes, for both ends of a channel; nothing here does I/O.

A frame is a header (payload length, type, request id) and a payload. A payload is either raw
bytes (DATA) or one value in a small typed encoding. Decoding never runs code that came over the
wire, and bounds length, depth and count before it allocates.
"""

import struct
from collections import OrderedDict, deque

VERSION = 1
#: What the near end looks for in whatever a login shell prints first; no payload contains it.
HELLO_MARK = b"\x00remotehands-hello\x00"

HEADER = struct.Struct(">IBI")
MAX_PAYLOAD = 1 << 20
MAX_DEPTH = 16
CHUNK = 1 << 16
FIRST_CREDIT = 4 << 20

(REQUEST, DATA, END, PART, RESULT, FAULT, CANCEL, CREDIT, PING, PONG, HELLO, BYE) = range(1, 13)
NAMES = {
    REQUEST: "REQUEST",
    DATA: "DATA",
    END: "END",
    PART: "PART",
    RESULT: "RESULT",
    FAULT: "FAULT",
    CANCEL: "CANCEL",
    CREDIT: "CREDIT",
    PING: "PING",
    PONG: "PONG",
    HELLO: "HELLO",
    BYE: "BYE",
}


class WireError(Exception):
    """What arrived is not what the protocol allows; the connection cannot go on."""


def encode_frame(kind, request_id, payload=b""):
    """Return one frame as bytes; `payload` is at most MAX_PAYLOAD bytes."""
    if len(payload) > MAX_PAYLOAD:
        raise WireError("a payload of %d bytes is over %d" % (len(payload), MAX_PAYLOAD))
    return HEADER.pack(len(payload), kind, request_id) + payload


class FrameReader:
    """Cut a stream of bytes into frames.

    Memory is bounded by MAX_PAYLOAD plus the size of one `feed`.
    """

    def __init__(self):
        self._buffer = bytearray()

    def feed(self, data):
        """Return the list of (kind, request_id, payload) that `data` completes, in order.

        Raises:
            WireError: A header announces more than MAX_PAYLOAD or an unknown type.
        """
        buffer = self._buffer
        buffer += data
        frames = []
        position = 0
        size = HEADER.size
        while len(buffer) - position >= size:
            length, kind, request_id = HEADER.unpack_from(buffer, position)
            if length > MAX_PAYLOAD or kind not in NAMES:
                raise WireError("not a frame: length %d, type %d" % (length, kind))
            end = position + size + length
            if len(buffer) < end:
                break
            with memoryview(buffer) as view:  # one copy of the payload, not two
                frames.append((kind, request_id, bytes(view[position + size : end])))
            position = end
        if position:
            del buffer[:position]
        return frames


class Outbox:
    """Frames that wait to be sent, taken from each request in turn so that none holds up others."""

    def __init__(self):
        self._queues = OrderedDict()
        self._sizes = {}
        self.size = 0

    def put(self, request_id, frame):
        """Queue one frame behind those of the same request."""
        queue = self._queues.get(request_id)
        if queue is None:
            queue = self._queues[request_id] = deque()
            self._sizes[request_id] = 0
        queue.append(frame)
        self._sizes[request_id] += len(frame)
        self.size += len(frame)

    def queued(self, request_id):
        """Return how many bytes of one request wait."""
        return self._sizes.get(request_id, 0)

    def take(self, limit):
        """Return whole frames as bytes, stopping at the first that reaches `limit`."""
        taken = []
        room = limit
        while self._queues and room > 0:
            request_id, queue = self._queues.popitem(last=False)
            frame = queue.popleft()
            taken.append(frame)
            room -= len(frame)
            self._sizes[request_id] -= len(frame)
            if queue:
                self._queues[request_id] = queue
            else:
                del self._sizes[request_id]
        self.size -= limit - room
        return b"".join(taken)


# One byte of type, then the body. Integers are 64-bit signed; text is UTF-8 (without lone
# surrogates: names of files travel as bytes).
_INT = struct.Struct(">q")
_FLOAT = struct.Struct(">d")
_SIZE = struct.Struct(">I")


def output_size(value):
    """Return how many bytes of a command's output a part holds; they count as those of DATA do."""
    data = value.get("data") if isinstance(value, dict) else None
    return len(data) if isinstance(data, bytes) else 0


def encode_value(value):
    """Encode None, bool, int, float, str, bytes, and lists and str-keyed dicts of these.

    Raises:
        WireError: The value has another type, an integer is over 64 bits, or text is not UTF-8.
    """
    out = []
    _encode(value, out, 0)
    return b"".join(out)


def _encode(value, out, depth):
    if depth > MAX_DEPTH:
        raise WireError("nested deeper than %d" % MAX_DEPTH)
    if value is None:
        out.append(b"n")
    elif value is True:
        out.append(b"t")
    elif value is False:
        out.append(b"f")
    elif isinstance(value, int):
        try:
            out.append(b"i" + _INT.pack(value))
        except struct.error:
            raise WireError("integer of more than 64 bits")
    elif isinstance(value, float):
        out.append(b"d" + _FLOAT.pack(value))
    elif isinstance(value, (bytes, bytearray, memoryview)):
        out.append(b"b" + _SIZE.pack(len(value)))
        out.append(bytes(value))
    elif isinstance(value, str):
        try:
            text = value.encode("utf-8")
        except UnicodeEncodeError:
            raise WireError("text with a lone surrogate")
        out.append(b"s" + _SIZE.pack(len(text)))
        out.append(text)
    elif isinstance(value, (list, tuple)):
        out.append(b"l" + _SIZE.pack(len(value)))
        for item in value:
            if type(item) is bytes:  # lists of thousands of names
                out.append(b"b" + _SIZE.pack(len(item)))
                out.append(item)
            else:
                _encode(item, out, depth + 1)
    elif isinstance(value, dict):
        out.append(b"m" + _SIZE.pack(len(value)))
        for key, item in value.items():
            if not isinstance(key, str):
                raise WireError("key %r is not text" % (key,))
            _encode(key, out, depth + 1)
            _encode(item, out, depth + 1)
    else:
        raise WireError("no encoding for %s" % type(value).__name__)


def decode_value(data):
    """Decode one value that takes up all of `data`.

    Raises:
        WireError: It does not, or is malformed; nothing is allocated beyond `data`'s own size.
    """
    try:
        value, position = _decode(data, 0, 0)
    except (struct.error, IndexError, UnicodeDecodeError):
        raise WireError("malformed value")
    if position != len(data):
        raise WireError("%d bytes after the value" % (len(data) - position))
    return value


def _decode(data, at, depth):
    if depth > MAX_DEPTH:
        raise WireError("nested deeper than %d" % MAX_DEPTH)
    kind = data[at : at + 1]
    at += 1
    if kind == b"n":
        return None, at
    if kind == b"t":
        return True, at
    if kind == b"f":
        return False, at
    if kind == b"i":
        return _INT.unpack_from(data, at)[0], at + 8
    if kind == b"d":
        return _FLOAT.unpack_from(data, at)[0], at + 8
    if kind not in (b"b", b"s", b"l", b"m"):
        raise WireError("unknown type of value %r" % (kind,))
    size = _SIZE.unpack_from(data, at)[0]
    at += 4
    # Each byte of text, item of a list, or half of a pair takes at least one byte.
    if size > len(data) - at:
        raise WireError("a size of %d with %d bytes left" % (size, len(data) - at))
    if kind == b"b":
        return bytes(data[at : at + size]), at + size
    if kind == b"s":
        return bytes(data[at : at + size]).decode("utf-8"), at + size
    if kind == b"l":
        items = []
        for _ in range(size):
            if data[at : at + 1] == b"b":  # lists of thousands of names
                length = _SIZE.unpack_from(data, at + 1)[0]
                at += 5
                if length > len(data) - at:
                    raise WireError("a size of %d with %d bytes left" % (length, len(data) - at))
                items.append(bytes(data[at : at + length]))
                at += length
            else:
                item, at = _decode(data, at, depth + 1)
                items.append(item)
        return items, at
    pairs = {}
    for _ in range(size):
        key, at = _decode(data, at, depth + 1)
        if not isinstance(key, str):
            raise WireError("a key that is not text")
        pairs[key], at = _decode(data, at, depth + 1)
    return pairs, at
