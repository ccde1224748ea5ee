"""The near end's side of the protocol as a state machine: bytes in, events out, no I/O.

The far end is not trusted: whatever it sends that the protocol does not allow becomes a WireError,
and nothing that it sends makes this end keep more than a bounded amount.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from backends.engine import frames
from backends.engine.frames import WireError

__all__ = [
    "DataReceived",
    "Event",
    "Failed",
    "FarewellReceived",
    "Finished",
    "HelloReceived",
    "NearSession",
    "PartReceived",
    "PongReceived",
    "WireError",
]

#: What a login shell may print before the engine says hello.
MAX_NOISE = 1 << 20
#: Requests whose end the far end may owe us; more means that it never ends them.
MAX_REQUESTS = 4096
#: Pings in a row without a byte heard before the connection counts as lost.
SILENT_PINGS = 3


@dataclass(slots=True)
class HelloReceived:
    """The far end is ready."""

    facts: dict[str, Any]


@dataclass(slots=True)
class PartReceived:
    """A part of a request's answer."""

    request_id: int
    value: Any


@dataclass(slots=True)
class DataReceived:
    """Raw output of a request; say `consume` once it has been taken."""

    request_id: int
    data: bytes


@dataclass(slots=True)
class Finished:
    """A request has ended with a result."""

    request_id: int
    value: Any


@dataclass(slots=True)
class Failed:
    """A request has ended with a fault."""

    request_id: int
    code: str
    arguments: list[Any]


@dataclass(slots=True)
class PongReceived:
    """A ping was answered."""


@dataclass(slots=True)
class FarewellReceived:
    """The far end is about to end."""

    reason: str


Event = (
    HelloReceived
    | PartReceived
    | DataReceived
    | Finished
    | Failed
    | PongReceived
    | FarewellReceived
)


class _Request:
    __slots__ = ("body", "cancelled", "credit", "had_body", "position", "taken", "window")

    def __init__(self, body: memoryview | None) -> None:
        self.body = body
        self.had_body = body is not None
        self.position = 0
        self.credit = frames.FIRST_CREDIT
        self.window = frames.FIRST_CREDIT
        self.taken = 0
        self.cancelled = False


class NearSession:
    """Keep every request until its terminal frame, and what waits to be sent."""

    def __init__(self) -> None:
        self._reader = frames.FrameReader()
        self._noise: bytearray | None = bytearray()
        self._greeted = False
        self._requests: dict[int, _Request] = {}
        self._bodies: list[int] = []
        self._last_id = 0
        self._pings = 0
        self._silent = 0
        self._outbox = frames.Outbox()
        self._handlers = {
            frames.PART: self._on_part,
            frames.DATA: self._on_data,
            frames.RESULT: self._on_result,
            frames.FAULT: self._on_fault,
            frames.CREDIT: self._on_credit,
            frames.PONG: self._on_pong,
            frames.BYE: self._on_bye,
        }

    # What is sent

    def request(self, operation: str, arguments: dict[str, Any], body: bytes | None = None) -> int:
        """Queue a request and return its id.

        Raises:
            WireError: The arguments cannot be encoded or are over 1 MiB, or too many requests
                have no answer; nothing was queued.
        """
        if len(self._requests) >= MAX_REQUESTS:
            raise WireError(f"{MAX_REQUESTS} requests have not been answered")
        value = [operation, arguments, None if body is None else len(body)]
        request_id = self._last_id + 1
        frame = frames.encode_frame(frames.REQUEST, request_id, frames.encode_value(value))
        self._last_id = request_id
        self._outbox.put(request_id, frame)
        self._requests[request_id] = _Request(None if body is None else memoryview(body))
        if body is not None:
            self._bodies.append(request_id)
        return request_id

    def cancel(self, request_id: int) -> None:
        """Ask the far end to end a request, which stays known until it has; send no more of it.

        Nothing happens when that was done before, or the request has ended.
        """
        request = self._requests.get(request_id)
        if request is not None and not request.cancelled:
            request.cancelled = True
            self._drop_body(request_id, request)
            self._outbox.put(request_id, frames.encode_frame(frames.CANCEL, request_id))

    def consume(self, request_id: int, size: int) -> None:
        """Tell that `size` bytes of a request's output were taken, so that more may come."""
        request = self._requests.get(request_id)
        if request is None:
            return
        request.taken += size
        if request.taken >= frames.FIRST_CREDIT // 4:  # not a frame for every few bytes
            payload = frames.encode_value(request.taken)
            self._outbox.put(request_id, frames.encode_frame(frames.CREDIT, request_id, payload))
            request.window += request.taken
            request.taken = 0

    def consume_part(self, request_id: int, value: Any) -> None:
        """Tell that the output in a part was taken: the next snapshot waits for that."""
        request = self._requests.get(request_id)
        size = frames.output_size(value)
        if request is not None and size:
            payload = frames.encode_value(size)
            self._outbox.put(request_id, frames.encode_frame(frames.CREDIT, request_id, payload))

    def ping(self) -> bool:
        """Queue a ping; return False when the last SILENT_PINGS of them brought nothing.

        Calls are counted, not time: while our own event loop was held up, what the far end had
        sent lay unread.
        """
        if self._silent == SILENT_PINGS:
            return False
        self._silent += 1
        self._pings += 1
        self._outbox.put(0, frames.encode_frame(frames.PING, 0))
        return True

    def bye(self) -> None:
        """Queue the last frame: the far end kills what it started and ends."""
        self._outbox.put(0, frames.encode_frame(frames.BYE, 0))

    def data_to_send(self, limit: int) -> bytes:
        """Return the next bytes to send, about `limit` of them; b"" when nothing may be sent.

        They must all be sent, in this order: what was returned here is not returned again.
        """
        data: bytes = self._outbox.take(limit)
        if not self._bodies or len(data) >= limit:
            return data
        parts = [data]
        room = limit - len(data)
        while room > 0:
            frame = self._next_of_bodies()
            if not frame:
                break
            parts.append(frame)
            room -= len(frame)
        return b"".join(parts)

    def _next_of_bodies(self) -> bytes:
        """Return one frame of the first body in turn that has credit."""
        for _ in range(len(self._bodies)):
            request_id = self._bodies.pop(0)
            request = self._requests[request_id]
            body = request.body
            if body is None:
                continue
            left = len(body) - request.position
            if not left:
                self._drop_body(request_id, request)
                end: bytes = frames.encode_frame(frames.END, request_id)
                return end
            self._bodies.append(request_id)
            size = min(left, request.credit, frames.CHUNK)
            if size:
                piece = body[request.position : request.position + size]
                request.position += size
                request.credit -= size
                data: bytes = frames.encode_frame(frames.DATA, request_id, piece)
                return data
        return b""

    def _drop_body(self, request_id: int, request: _Request) -> None:
        if request.body is not None:
            request.body = None
            if request_id in self._bodies:
                self._bodies.remove(request_id)

    # What arrives

    @property
    def noise(self) -> bytes:
        """What came before the hello, while it has not come."""
        return bytes(self._noise or b"")

    def receive(self, data: bytes) -> list[Event]:
        """Return the events that `data` completes, in order.

        Raises:
            WireError: The far end broke the protocol; the connection cannot go on.
        """
        self._silent = 0
        if self._noise is not None:
            data = self._skip_noise(data)
            if self._noise is not None:
                return []
        events: list[Event] = []
        for kind, request_id, payload in self._reader.feed(data):
            if not self._greeted:
                events.append(self._on_hello(kind, payload))
                continue
            handler = self._handlers.get(kind)
            if handler is None:
                raise WireError(f"{frames.NAMES[kind]} from the far end")
            event = handler(request_id, payload)
            if event is not None:
                events.append(event)
        return events

    def _skip_noise(self, data: bytes) -> bytes:
        noise = self._noise
        assert noise is not None
        start = max(0, len(noise) - len(frames.HELLO_MARK))
        noise += data
        found = noise.find(frames.HELLO_MARK, start)
        if found < 0:
            if len(noise) > MAX_NOISE:
                raise WireError(f"no hello within {MAX_NOISE} bytes")
            return b""
        self._noise = None
        return bytes(noise[found + len(frames.HELLO_MARK) :])

    def _on_hello(self, kind: int, payload: bytes) -> HelloReceived:
        facts = frames.decode_value(payload)
        if kind != frames.HELLO or not isinstance(facts, dict):
            raise WireError("no hello")
        if facts.get("version") != frames.VERSION:
            raise WireError(f"version {facts.get('version')!r:.40} of the protocol")
        self._greeted = True
        return HelloReceived(facts)

    def _find(self, request_id: int) -> _Request:
        request = self._requests.get(request_id)
        if request is None:
            raise WireError(f"an answer to request {request_id}, which is not open")
        return request

    def _on_part(self, request_id: int, payload: bytes) -> Event:
        self._find(request_id)
        return PartReceived(request_id, frames.decode_value(payload))

    def _on_data(self, request_id: int, payload: bytes) -> Event:
        request = self._find(request_id)
        if not payload:  # would cost no credit, so that there could be any number of them
            raise WireError("data without a byte")
        request.window -= len(payload)
        if request.window < 0:
            raise WireError(f"request {request_id} was answered beyond its credit")
        return DataReceived(request_id, payload)

    def _on_result(self, request_id: int, payload: bytes) -> Event:
        self._end(request_id)
        return Finished(request_id, frames.decode_value(payload))

    def _on_fault(self, request_id: int, payload: bytes) -> Event:
        self._end(request_id)
        value = frames.decode_value(payload)
        if not (isinstance(value, list) and len(value) == 2):
            raise WireError("malformed fault")
        code, arguments = value
        if not (isinstance(code, str) and isinstance(arguments, list)):
            raise WireError("malformed fault")
        return Failed(request_id, code, arguments)

    def _end(self, request_id: int) -> None:
        self._drop_body(request_id, self._find(request_id))
        del self._requests[request_id]

    def _on_credit(self, request_id: int, payload: bytes) -> Event | None:
        request = self._find(request_id)
        amount = frames.decode_value(payload)
        if not request.had_body or not isinstance(amount, int):
            raise WireError("malformed credit")
        if not 0 < amount <= frames.FIRST_CREDIT - request.credit:
            raise WireError("credit for what was not sent")
        request.credit += amount
        return None

    def _on_pong(self, _request_id: int, _payload: bytes) -> Event:
        if not self._pings:
            raise WireError("a pong without a ping")
        self._pings -= 1
        return PongReceived()

    def _on_bye(self, _request_id: int, payload: bytes) -> Event:
        reason = frames.decode_value(payload)
        if not isinstance(reason, str):
            raise WireError("malformed farewell")
        return FarewellReceived(reason)
