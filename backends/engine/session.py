"""The far end's side of the protocol as a state machine: bytes in, events out, no I/O.

Events are tuples (kind, request id, value) of these kinds, in the order they arrived:
REQUEST (operation, arguments, body size or None), DATA (bytes), END (None), CANCEL (None),
CREDIT (None: more may be sent), BYE (None). A ping is answered in here.
"""

from backends.engine import frames
from backends.engine.frames import WireError

#: Bytes of one request that may wait in the output; a worker that produces more waits.
ROOM = 256 * 1024


class _Request:
    __slots__ = ("body_credit", "body_left", "window")

    def __init__(self, body_size):
        self.body_left = body_size
        self.body_credit = frames.FIRST_CREDIT
        self.window = frames.FIRST_CREDIT


class FarSession:
    """Keep the state of every request that has not ended, and what waits to be sent."""

    def __init__(self):
        self._reader = frames.FrameReader()
        self._requests = {}
        self._last_id = 0
        self._outbox = frames.Outbox()
        self._hello = b""
        self._handlers = {
            frames.REQUEST: self._on_request,
            frames.DATA: self._on_data,
            frames.END: self._on_end,
            frames.CANCEL: self._on_cancel,
            frames.CREDIT: self._on_credit,
            frames.PING: self._on_ping,
            frames.BYE: self._on_bye,
        }

    # What arrives

    def receive(self, data):
        """Return the events that `data` completes.

        Raises:
            WireError: The near end broke the protocol; the connection cannot go on.
        """
        events = []
        for kind, request_id, payload in self._reader.feed(data):
            handler = self._handlers.get(kind)
            if handler is None:
                raise WireError("%s from the near end" % frames.NAMES[kind])
            event = handler(request_id, payload)
            if event is not None:
                events.append(event)
        return events

    def _on_request(self, request_id, payload):
        if request_id <= self._last_id:
            raise WireError("request %d after %d" % (request_id, self._last_id))
        self._last_id = request_id
        value = frames.decode_value(payload)
        if not isinstance(value, list) or len(value) != 3:
            raise WireError("malformed request")
        operation, arguments, body_size = value
        if not isinstance(operation, str) or not isinstance(arguments, dict):
            raise WireError("malformed request")
        if body_size is not None and (not isinstance(body_size, int) or body_size < 0):
            raise WireError("malformed request")
        self._requests[request_id] = _Request(body_size)
        return (frames.REQUEST, request_id, (operation, arguments, body_size))

    def _on_data(self, request_id, payload):
        request = self._find(request_id)
        if request is None:
            return None
        if request.body_left is None or len(payload) > request.body_left:
            raise WireError("more body than request %d announced" % request_id)
        request.body_left -= len(payload)
        request.body_credit -= len(payload)
        if request.body_credit < 0:
            raise WireError("request %d sent more than its credit" % request_id)
        return (frames.DATA, request_id, payload)

    def _on_end(self, request_id, _payload):
        request = self._find(request_id)
        if request is None:
            return None
        if request.body_left != 0:
            raise WireError("the body of request %d is not what was announced" % request_id)
        request.body_left = None
        return (frames.END, request_id, None)

    def _on_cancel(self, request_id, _payload):
        if self._find(request_id) is None:
            return None
        return (frames.CANCEL, request_id, None)

    def _on_credit(self, request_id, payload):
        request = self._find(request_id)
        if request is None:
            return None
        amount = frames.decode_value(payload)
        if not isinstance(amount, int) or not 0 < amount <= frames.FIRST_CREDIT - request.window:
            raise WireError("credit for what was not sent")
        request.window += amount
        return (frames.CREDIT, request_id, None)

    def _on_ping(self, _request_id, payload):
        self._outbox.put(0, frames.encode_frame(frames.PONG, 0, payload))

    def _on_bye(self, _request_id, _payload):
        return (frames.BYE, 0, None)

    def _find(self, request_id):
        """Return an open request; None for one that has ended, whose last frames cross ours."""
        if request_id > self._last_id:
            raise WireError("request %d is not known" % request_id)
        return self._requests.get(request_id)

    # What is sent

    def hello(self, facts):
        """Queue the mark and the first frame."""
        payload = frames.encode_value(dict(facts, version=frames.VERSION))
        self._hello = frames.HELLO_MARK + frames.encode_frame(frames.HELLO, 0, payload)

    def bye(self, reason):
        """Queue the last frame; `reason` is a sentence part."""
        payload = frames.encode_value(reason)
        self._outbox.put(0, frames.encode_frame(frames.BYE, 0, payload))

    def is_open(self, request_id):
        """Return True until the request has had its terminal frame."""
        return request_id in self._requests

    def credit(self, request_id):
        """Return how many bytes of DATA may be queued now."""
        request = self._requests.get(request_id)
        if request is None:
            return 0
        return max(0, min(request.window, ROOM - self._outbox.queued(request_id)))

    def data(self, request_id, chunk):
        """Queue at most `credit` bytes of output; nothing happens if the request has ended."""
        request = self._requests.get(request_id)
        if request is None:
            return
        if len(chunk) > request.window:
            raise WireError("no credit for %d bytes" % len(chunk))
        request.window -= len(chunk)
        for start in range(0, len(chunk), frames.CHUNK):
            piece = chunk[start : start + frames.CHUNK]
            self._outbox.put(request_id, frames.encode_frame(frames.DATA, request_id, piece))

    def unread(self, request_id):
        """Return how many bytes of output the near end has not said to have taken."""
        request = self._requests.get(request_id)
        return 0 if request is None else frames.FIRST_CREDIT - request.window

    def part(self, request_id, value):
        """Queue a part of the answer; there need be no credit for the output in it."""
        if request_id in self._requests:
            self._requests[request_id].window -= frames.output_size(value)
        self._answer(frames.PART, request_id, value)

    def result(self, request_id, value):
        """Queue the answer, which ends the request."""
        self._answer(frames.RESULT, request_id, value)
        self._requests.pop(request_id, None)

    def fault(self, request_id, code, arguments):
        """Queue a fault, which ends the request."""
        self._answer(frames.FAULT, request_id, [code, arguments])
        self._requests.pop(request_id, None)

    def _answer(self, kind, request_id, value):
        if request_id in self._requests:
            frame = frames.encode_frame(kind, request_id, frames.encode_value(value))
            self._outbox.put(request_id, frame)

    def grant(self, request_id, amount):
        """Let the near end send `amount` further bytes of the request's body."""
        request = self._requests.get(request_id)
        if request is not None and amount and request.body_left is not None:
            request.body_credit += amount
            payload = frames.encode_value(amount)
            self._outbox.put(request_id, frames.encode_frame(frames.CREDIT, request_id, payload))

    @property
    def waiting(self):
        """Bytes that wait to be sent."""
        return self._outbox.size + len(self._hello)

    def to_send(self, limit):
        """Return the next bytes to send, about `limit` of them; b"" when there is nothing."""
        if self._hello:
            hello, self._hello = self._hello, b""
            return hello
        return self._outbox.take(limit)
