"""Values and descriptors between the engine's own processes, over a stream socket."""

import os
import socket
import struct
from collections import deque

from backends.engine.frames import REQUEST, FrameReader, decode_value, encode_frame, encode_value

_MAX_FDS = 8
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_NOW = socket.MSG_DONTWAIT


def send(sock, value, fds=()):
    """Send one value, and copies of `fds` with it.

    Raises:
        OSError: The other end is gone.
        WireError: The value is too large or cannot be encoded.
    """
    frame = encode_frame(REQUEST, 0, encode_value(value))
    rights = []
    if fds:
        packed = struct.pack("%di" % len(fds), *fds)
        rights.append((socket.SOL_SOCKET, socket.SCM_RIGHTS, packed))
    sent = sock.sendmsg([frame], rights)
    if sent < len(frame):
        sock.sendall(frame[sent:])


class Inbox:
    """What arrives on a socket: values, and the descriptors that came with or before them.

    Args:
        sock: The socket; stays blocking, so that `send` on it is whole.
    """

    def __init__(self, sock):
        self._sock = sock
        self._frames = FrameReader()
        self._fds = deque()

    def read(self, wait=False):
        """Return the values that have arrived, or None once the other end is gone.

        Args:
            wait: Block until there is something; else the list may be empty.
        """
        try:
            data, rights, _, _ = self._sock.recvmsg(
                1 << 16, socket.CMSG_SPACE(_MAX_FDS * 4), _CLOEXEC | (0 if wait else _NOW)
            )
        except BlockingIOError:
            return []
        except OSError:
            return None
        for level, kind, packed in rights:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                count = len(packed) // 4
                self._fds.extend(struct.unpack("%di" % count, packed[: count * 4]))
        if not data:
            return None
        return [decode_value(payload) for _, _, payload in self._frames.feed(data)]

    def take_fds(self, count):
        """Return the oldest `count` descriptors; they are the caller's to close.

        There are fewer when this process had no room for them.
        """
        return [self._fds.popleft() for _ in range(min(count, len(self._fds)))]

    def close_fds(self):
        """Close the descriptors that nobody took."""
        while self._fds:
            os.close(self._fds.popleft())
