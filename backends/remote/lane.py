"""A lane: a shell that was started ahead and serves one request at a time."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Callable

import anyio

from backends.remote import shell_script
from backends.remote.channel import Channel, ChannelClosed
from backends.remote.shell_marks import Garbage, Mark, MarkReader
from backends.remote.shell_quote import one_line
from operations import BackendUnavailable, ConnectionLost

__all__ = ["Lane", "Reply", "new_word", "number"]

#: Longer requests are read by a program: the shell itself reads byte by byte.
_LONG = 2048
#: Written in runs of this size, so that an early refusal ends the sending.
_RUN = 1 << 18
_MOST_NOISE = 1 << 16
_NOISE_SHOWN = 300
_CLOSE_S = 12.0
_LAST_WORDS_S = 2.0
#: A request during which nothing moves for so long counts as lost, though the target is there.
IDLE_S = 60.0


class Reply:
    """The answer to a request: what was printed, and how the function ended.

    Attributes:
        status: Exit status of the function.
        data: What it printed, unless a receiver was given for it.
        failed_midway: True when it printed something and then could not go on; what came after
            that is in `reason`.
        reason: See `failed_midway`.
    """

    def __init__(self) -> None:
        self.status = 0
        self.data = b""
        self.reason = b""
        self.failed_midway = False


class Lane:
    """One shell at the far end of a channel.

    A reader's task hands what arrives to the request that runs. Bytes that come between requests,
    an end of the channel or a request that was left midway make the lane dirty: it is closed.

    Args:
        channel: A channel to `shell_script.argv(name)`.
        target: The target as the user named it, for errors.
        name: What it and all that it runs can be found by, on the target.
    """

    def __init__(self, channel: Channel, target: str, name: str = "lane") -> None:
        self.name = name
        self._channel = channel
        self._target = target
        self._reading = anyio.CancelScope()
        self._receive: Callable[[bytes], None] | None = None
        self._news = anyio.Event()
        #: Whether it ended without our doing.
        self.vanished = False
        #: When bytes were last seen to pass, in either direction.
        self.heard_at = anyio.current_time()
        #: Process id of the shell, in the target's own counting.
        self.pid = 0
        #: Why it takes no request any more, as a sentence part; None while it does.
        self.lost: str | None = None

    async def run(self) -> None:
        """Hand on what arrives until the channel ends or the lane is retired; then close it."""
        with self._reading:
            reason = await self._read()
            self.vanished = self.lost is None
            self._lose(reason)
        with anyio.move_on_after(_CLOSE_S, shield=True):
            await self._channel.close()

    async def load(self, settings: str) -> None:
        """Send the script and wait for its hello.

        Raises:
            BackendUnavailable: No shell answers.
        """
        word = new_word()
        noise: list[bytes] = []
        hello: list[Mark] = []
        reader = MarkReader(word)

        def receive(chunk: bytes) -> None:
            for item in reader.feed(chunk):
                if isinstance(item, Mark):
                    hello.append(item)
                else:
                    noise.append(item)
            if sum(map(len, noise)) > _MOST_NOISE:
                raise Garbage("more noise than any login prints")

        self._receive = receive
        try:
            await self._channel.send(shell_script.loading(word, settings))
        except ChannelClosed as error:
            self._lose(str(error))
        while not hello and self.lost is None:
            await self._news.wait()
        self._receive = None
        if self.lost is not None:
            said = b"".join(noise)[-_NOISE_SHOWN:].decode("utf-8", "replace").strip()
            shown = f"; it printed {said!r}" if said else ""
            raise BackendUnavailable(self._target, f"no shell answers there: {self.lost}{shown}")
        self.pid = hello[0].number

    def waits_since(self, moment: float) -> bool:
        """Return True when a request is under way and nothing has passed since a moment."""
        return self._receive is not None and self.heard_at < moment

    def retire(self, reason: str = "it was retired") -> None:
        """Take no further request; `run` closes the channel."""
        self._lose(reason)
        self._reading.cancel()

    def dismiss(self) -> None:
        """Retire a clean lane so that what its commands left in the background goes on."""
        with contextlib.suppress(ChannelClosed):
            self._channel.send_nowait(b"exit\n")
        self.retire()

    async def call(
        self,
        request: bytes,
        *,
        limit: int,
        body: bytes | None = None,
        on_data: Callable[[bytes], None] | None = None,
        idle_s: float = IDLE_S,
    ) -> Reply:
        """Make a request and return the answer; a lane whose request was left midway is retired.

        Args:
            request: Calls of functions, as shell text; their word for marks is in the variable W.
            limit: Most bytes that the answer may have.
            body: What the function reads from the lane's stdin, before a newline.
            on_data: Takes what is printed instead of `Reply.data`.
            idle_s: Seconds without a byte in either direction after which it counts as lost.

        Raises:
            ConnectionLost: The lane ended, or the answer is not what the script prints.
        """
        word = new_word()
        answer = _Answer(word, limit, on_data)
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + idle_s) as scope:
                await self._exchange(_framed(request, word, body), answer, scope, idle_s)
            if not answer.ended and self.lost is None:
                self.retire(f"nothing was heard for {idle_s:g} seconds")
        finally:
            self._receive = None
            if not answer.ended or answer.last:
                self.retire()
        if not answer.ended:
            raise ConnectionLost(self._target, self.lost or "the lane ended")
        return answer.reply()

    async def _exchange(
        self, data: list[bytes], answer: _Answer, scope: anyio.CancelScope, idle_s: float
    ) -> None:
        def receive(chunk: bytes) -> None:
            scope.deadline = self.heard_at + idle_s
            answer.feed(chunk)

        self._receive = receive
        try:
            if self.lost is None:
                await self._send(data, answer, scope, idle_s)
        except ChannelClosed as error:
            # What it said before it stopped to listen tells more, and may be the answer.
            with anyio.move_on_after(_LAST_WORDS_S):
                while not answer.ended and self.lost is None:
                    await self._news.wait()
            if not answer.ended:
                self._lose(f"nothing can be sent: {error}")
        while not answer.ended and self.lost is None:
            await self._news.wait()

    async def _send(
        self, data: list[bytes], answer: _Answer, scope: anyio.CancelScope, idle_s: float
    ) -> None:
        for part in data:
            for at in range(0, len(part), _RUN):
                if answer.ended:
                    return  # refused before all was there; the function takes no more
                await self._channel.send(memoryview(part)[at : at + _RUN])
                self.heard_at = anyio.current_time()
                scope.deadline = self.heard_at + idle_s

    # Commands: a call that goes on while marks come ---------------------------------------

    async def begin(self, request: bytes, receive: Callable[[bytes], None], word: str) -> None:
        """Make a request whose answer the caller takes apart.

        Args:
            request: As for `call`.
            receive: Takes all that arrives; may raise Garbage.
            word: The word for the marks.

        Raises:
            ConnectionLost: It could not be sent.
        """
        self._receive = receive
        try:
            for part in _framed(request, word, None):
                await self._channel.send(part)
                self.heard_at = anyio.current_time()
        except ChannelClosed as error:
            self._lose(f"nothing can be sent: {error}")
        if self.lost is not None:
            raise ConnectionLost(self._target, self.lost)

    async def feed(self, body: bytes) -> None:
        """Send what a command reads; its end may come at any time."""
        with contextlib.suppress(ChannelClosed):
            await self._channel.send(body)

    def end(self) -> None:
        """Tell that the request's last mark has come."""
        self._receive = None

    async def news(self, limit_s: float) -> None:
        """Wait until something arrives, the lane is lost, `wake` is called or the time is over."""
        with anyio.move_on_after(limit_s):
            await self._news.wait()

    def wake(self) -> None:
        """End every `news`."""
        self._news.set()
        self._news = anyio.Event()

    # What arrives -------------------------------------------------------------------------

    async def _read(self) -> str:
        try:
            while data := await self._channel.receive():
                self.heard_at = anyio.current_time()
                if self._receive is None:
                    return "it printed what nobody had asked for"
                self._receive(data)
                self.wake()
        except Garbage as error:
            return f"the far end broke the protocol: {error}"
        except ChannelClosed as error:
            return str(error)
        return await self._channel.exit_report()

    def _lose(self, reason: str) -> None:
        self.lost = self.lost or reason
        self.wake()


def _framed(request: bytes, word: str, body: bytes | None) -> list[bytes]:
    """Return what to send, in parts, so that a large body is not copied."""
    text = b"W=%s; %s; answer $W R $?" % (word.encode(), request)
    short = one_line(text)
    if len(short) <= _LONG:
        parts = [short + b"\n"]
    else:
        parts = [b'eval "$(${take}%d <&3)"\n' % len(text), text]
    if body is not None:
        parts += [body, b"\n"]
    joined = b"".join(parts) if sum(map(len, parts)) <= _RUN else None
    return parts if joined is None else [joined]


class _Answer:
    """What has come of the answer to one request."""

    def __init__(self, word: str, limit: int, on_data: Callable[[bytes], None] | None) -> None:
        self.ended = False
        self.last = False
        self._reader = MarkReader(word)
        self._reply = Reply()
        self._room = limit
        self._parts: list[bytes] = []
        self._reasons: list[bytes] = []
        self._take = on_data or self._parts.append

    def feed(self, chunk: bytes) -> None:
        for item in self._reader.feed(chunk):
            if self.ended:
                self.ended = False  # whatever said so, it was not the script
                raise Garbage("something after the answer")
            if isinstance(item, Mark):
                self._mark(item)
                continue
            self._room -= len(item)
            if self._room < 0:
                raise Garbage("a longer answer than was asked for")
            if self._reply.failed_midway:
                self._reasons.append(item)
            else:
                self._take(item)

    def _mark(self, mark: Mark) -> None:
        if mark.letter == "F" and not self._reply.failed_midway:
            self._reply.failed_midway = True
        elif mark.letter in "RD" and mark.number < 256:
            self.ended = True
            self.last = mark.letter == "D"
            self._reply.status = mark.number
        else:
            raise Garbage(f"an unexpected mark {mark.letter}")

    def reply(self) -> Reply:
        """Return the whole."""
        self._reply.data = b"".join(self._parts) if len(self._parts) != 1 else self._parts[0]
        self._reply.reason = b"".join(self._reasons)
        return self._reply


def new_word() -> str:
    """Return a word for marks that nothing could have foreseen."""
    return secrets.token_hex(10)


def number(text: bytes) -> int:
    """Return a number that the far end printed.

    Raises:
        Garbage: It is none, or has more digits than any size.
    """
    if not re.fullmatch(rb"\s*\d{1,20}\s*", text):
        raise Garbage(f"{text[:80]!r} is not a number")
    return int(text)
