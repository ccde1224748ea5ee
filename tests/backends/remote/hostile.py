"""A far end that a test makes lie: a channel in memory, and the frames of an honest engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import anyio.lowlevel

from backends.engine import frames
from backends.engine.frames import encode_frame, encode_value
from backends.remote.backend import RemoteBackend
from backends.remote.channel import Channel, ChannelClosed
from operations import GrepQuery

FACTS: dict[str, Any] = {
    "home": b"/",
    "machine_id": "m",
    "platform": "linux",
    "shell": "sh",
    "capabilities": [],
    "umask": 18,
    "version": frames.VERSION,
}
ENDED: dict[str, Any] = {
    "ended": "exited",
    "exit_code": 0,
    "signal": None,
    "total_bytes": 0,
    "total_lines": 0,
    "kept_path": None,
    "kept_bytes": 0,
    "dropped": None,
    "killed": "none",
    "survivors": [],
    "background": 0,
    "shell": "sh",
    "duration_s": 0.5,
}
SEARCHED: dict[str, Any] = {"more": False, "unreadable": [], "unreadable_total": 0}
WINDOW: dict[str, Any] = {
    "kind": "text",
    "start": 1,
    "lines": 0,
    "total_lines": 0,
    "size": 0,
    "encoding": "utf-8",
    "mime_type": None,
    "stopped_by": None,
    "long_line_bytes": 0,
}
#: What an honest engine answers: operation on the wire -> (parts, result).
HONEST: dict[str, tuple[list[Any], Any]] = {
    "access": ([], None),
    "exists": ([], True),
    "is_directory": ([], True),
    "detect_image": ([], "image/png"),
    "make_directory": ([], None),
    "read_file": ([], {"device": 1, "inode": 2, "digest": b"d" * 32}),
    "read_lines": ([{"done": 1, "total": 2}], WINDOW),
    "replace_file": ([], {"created": True, "atomic": False, "reason": "owner"}),
    "list_directory": ([{"entries": [[b"a", "symlink", b"b", False]]}], {"total": 3}),
    "exec": ([], ENDED),
    "exec_tail": (
        [{"data": b"x", "start": 0, "total_bytes": 1, "total_lines": 0}],
        {**ENDED, "total_bytes": 1},
    ),
    "grep": (
        [
            {"matches": [[b"a", 1, "x", False]]},
            {"final": [[b"a", 1, "x", False, [], [[2, "y"]]]]},
        ],
        {**SEARCHED, "files_searched": 1, "binary_skipped": 0, "engine": "rg"},
    ),
    "find": ([{"seen": 1, "found": 1}, {"paths": b"a"}], {**SEARCHED, "ignored": 0}),
}
Answer = Callable[[int, str], bytes]


def hello(facts: Any = FACTS) -> bytes:
    """Return what an engine says first."""
    return frames.HELLO_MARK + encode_frame(frames.HELLO, 0, encode_value(facts))


def frame(kind: int, number: int, value: Any = None) -> bytes:
    """Return a frame that holds a value."""
    return encode_frame(kind, number, encode_value(value))


def answer(number: int, parts: list[Any], result: Any) -> bytes:
    """Return the frames of a whole answer."""
    told = b"".join(frame(frames.PART, number, part) for part in parts)
    return told + frame(frames.RESULT, number, result)


def honest(number: int, operation: str) -> bytes:
    """Answer as an engine would."""
    return answer(number, *HONEST[operation])


def _ignore(_value: object) -> None:
    pass


async def _tail(place: RemoteBackend) -> object:
    return await place.exec_tail(
        "true",
        cwd="/",
        on_snapshot=_ignore,
        tail_bytes=100,
        keep_over_bytes=100,
        keep_over_lines=9,
        timeout_s=60,
    )


async def _grep(place: RemoteBackend) -> object:
    query = GrepQuery(pattern="x", path="/", context=1, limit=3)
    return await place.grep(query, on_matches=_ignore)


#: Every operation: its name on the wire -> a call of it.
CALLS: dict[str, Callable[[RemoteBackend], Any]] = {
    "access": lambda place: place.access("/a"),
    "exists": lambda place: place.exists("/a"),
    "is_directory": lambda place: place.is_directory("/a"),
    "detect_image": lambda place: place.detect_image_mime_type("/a"),
    "make_directory": lambda place: place.make_directory("/a"),
    "read_file": lambda place: place.read_versioned("/a"),
    "read_lines": lambda place: place.read_lines(
        "/a", start=1, max_lines=9, max_bytes=99, on_progress=_ignore
    ),
    "replace_file": lambda place: place.replace_file("/a", b"x" * 200_000),
    "list_directory": lambda place: place.list_directory("/a", limit=3),
    "exec": lambda place: place.exec("true", cwd="/", on_data=_ignore, timeout_s=60),
    "exec_tail": _tail,
    "grep": _grep,
    "find": lambda place: place.glob("*", "/", limit=3, on_progress=_ignore),
}


class LyingChannel:
    """A channel to a far end that says `greeting`, then `reply(id, operation)` to each request.

    Attributes:
        requests: (id, operation) of each request that arrived.
        closed: Whether the near end has closed it.
    """

    def __init__(self, greeting: bytes, reply: Answer, step: int) -> None:
        self.requests: list[tuple[int, str]] = []
        self.closed = False
        self._greeting = greeting
        self._reply = reply
        self._step = step
        self._started = False
        self._reader = frames.FrameReader()
        self._feed, self._out = anyio.create_memory_object_stream[bytes](math.inf)

    def send_nowait(self, data: bytes | memoryview) -> int:
        """See `Channel`."""
        if self.closed:
            raise ChannelClosed("closed")
        for kind, number, payload in self._reader.feed(bytes(data)):
            if kind == frames.REQUEST:
                operation = frames.decode_value(payload)[0]
                self.requests.append((number, operation))
                self.say(self._reply(number, operation))
            elif kind == frames.PING:
                self.say(encode_frame(frames.PONG, 0))
        return len(data)

    async def send(self, data: bytes | memoryview) -> None:
        """See `Channel`."""
        await anyio.lowlevel.checkpoint()
        if self._started:
            self.send_nowait(data)
        else:
            self._started = True
            self.say(self._greeting)

    def say(self, data: bytes) -> None:
        """Send something, in pieces."""
        for start in range(0, len(data), self._step):
            self._feed.send_nowait(data[start : start + self._step])

    def hang_up(self) -> None:
        """Send nothing any more."""
        self._feed.close()

    async def receive(self) -> bytes:
        """See `Channel`."""
        try:
            return await self._out.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return b""

    async def close(self) -> None:
        """See `Channel`."""
        await anyio.lowlevel.checkpoint()
        self.closed = True
        self._feed.close()
        self._out.close()

    async def exit_report(self) -> str:
        """See `Channel`."""
        return "the engine ended with exit status 9"


class FarEnds:
    """Opens channels to far ends, the first ones lying, and remembers them all.

    Args:
        reply: What the lying ones answer.
        greeting: What they say first.
        lying: How many of them there are.
        step: Most bytes that the near end gets at once.
    """

    def __init__(
        self,
        reply: Answer = honest,
        greeting: bytes | None = None,
        *,
        lying: float = math.inf,
        step: int = 1 << 20,
    ) -> None:
        self.opened: list[LyingChannel] = []
        self._reply = reply
        self._greeting = hello() if greeting is None else greeting
        self._lying = lying
        self._step = step

    async def __call__(self) -> Channel:
        """Open one."""
        await anyio.lowlevel.checkpoint()
        if len(self.opened) < self._lying:
            channel = LyingChannel(self._greeting, self._reply, self._step)
        else:
            channel = LyingChannel(hello(), honest, self._step)
        self.opened.append(channel)
        return channel

    def requests(self) -> Iterator[tuple[int, str]]:
        """Yield all requests that arrived anywhere."""
        for channel in self.opened:
            yield from channel.requests


def backend(far: Any, **options: Any) -> RemoteBackend:
    """Return a backend that connects at its first operation."""
    options = {"target": "test:", "cwd": "/", "connect_on_enter": False, **options}
    return RemoteBackend(far, **options)
