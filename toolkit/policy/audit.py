"""A log of decisions and effects in which no line can be changed unnoticed.

Each line is a JSON object that holds the hash of the line before it. So the hash of the last line
(the head) stands for all of them. A chain shows edits, not a cut tail: whoever can write the file
can drop its last lines, or make a whole new one. Keep the head elsewhere, and verify against that.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import anyio
from anyio.to_thread import run_sync

from toolkit.json_values import copy_json, preview, valid_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.hooks import AfterToolCall, BeforeToolCall
    from toolkit.policy.decisions import Decision

__all__ = ["AuditError", "AuditLog", "Verified", "verify"]

#: What the first line has in place of the hash of the one before.
GENESIS = "0" * 64
_MOST_TEXT = 2000
_MOST_LINE_BYTES = 64 * 1024


class AuditError(Exception):
    """A log cannot be continued, or cannot be read.

    Args:
        file: The log.
        problem: What is wrong and what to do.
    """

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(file, problem)
        self.file = file
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.file}: {self.problem}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What a look at a log has shown.

    Attributes:
        entries: How many lines hold, from the first.
        head: The hash of the last of them.
        problem: What is wrong with the next, or with the head; "" when all holds.
    """

    entries: int
    head: str
    problem: str = ""


class AuditLog:
    """A log that is open for writing; a context manager. One process at a time can hold it.

    Args:
        path: The file, on this machine; an existing one is verified and continued.
        redact: Applied to every text that is logged.

    Raises:
        AuditError: The file does not hold, or is held by another process.
        OSError: It cannot be opened.
    """

    def __init__(self, path: Path | str, *, redact: Callable[[str], str] | None = None) -> None:
        self._redact = redact or (lambda text: text)
        self._lock = anyio.Lock()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(path, flags, 0o600)
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise AuditError(
                    str(path), "is in use by another run; give each its own"
                ) from error
            found = _continued(path)
        except BaseException:
            os.close(self._file)
            raise
        self._entries = found.entries
        self._head = found.head

    @property
    def head(self) -> str:
        """The hash of the last line; keep it where the log's writer cannot reach."""
        return self._head

    @property
    def entries(self) -> int:
        """How many lines there are."""
        return self._entries

    def close(self) -> None:
        """Close the file; closing again does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def decision(
        self, context: BeforeToolCall, decision: Decision, action: str, text: str, target: str
    ) -> None:
        """Log what was decided on a call.

        Raises:
            OSError: It cannot be written. The call must not run then, which raising sees to.
        """
        await self._append(
            {
                "kind": "decision",
                "call": context.call.id,
                "tool": context.tool.name,
                "target": target,
                "action": action,
                "source": decision.source,
                "act": decision.act.shown,
                "text": text,
                "arguments": context.arguments,
            }
        )

    async def effect(self, context: AfterToolCall) -> None:
        """Log how a call has ended.

        Raises:
            OSError: It cannot be written.
        """
        result = context.result
        await self._append(
            {
                "kind": "effect",
                "call": context.call.id,
                "tool": context.tool.name,
                "error": (result.error_kind or "failed") if result.is_error else None,
                "details": result.details,
            }
        )

    async def _append(self, entry: dict[str, Any]) -> None:
        # A call that is being cancelled has had its effect all the same.
        with anyio.CancelScope(shield=True):
            async with self._lock:
                await run_sync(self._write, self._shown(entry))

    def _shown(self, value: Any, depth: int = 0) -> Any:
        """Return a value for the log: redacted, long texts as their beginning and a hash."""
        if isinstance(value, str):
            text = self._redact(valid_text(value))
            if len(text) <= _MOST_TEXT:
                return text
            digest = hashlib.sha256(text.encode()).hexdigest()
            return f"{text[:_MOST_TEXT]}... [{len(text)} characters, SHA-256 {digest}]"
        if isinstance(value, dict) and depth < 8:
            return {str(key): self._shown(each, depth + 1) for key, each in value.items()}
        if isinstance(value, list | tuple) and depth < 8:
            return [self._shown(each, depth + 1) for each in value]
        return value if value is None or isinstance(value, bool | int | float) else preview(value)

    def _write(self, entry: dict[str, Any]) -> None:
        line = {"number": self._entries + 1, "time": int(time.time() * 1000), **entry}
        line["previous"] = self._head
        body = _canonical(line)
        if len(body) > _MOST_LINE_BYTES:
            for key in ("arguments", "details"):
                if key in line:
                    text = _canonical(line[key]).decode()
                    digest = hashlib.sha256(text.encode()).hexdigest()
                    line[key] = f"[{len(text)} characters, SHA-256 {digest}]"
            body = _canonical(line)
        head = hashlib.sha256(body).hexdigest()
        data = _canonical({**line, "hash": head}) + b"\n"
        start = os.fstat(self._file).st_size
        written = 0
        try:
            written = os.write(self._file, data)
        finally:
            if written != len(data):
                os.ftruncate(self._file, start)  # half a line would break the chain
        if written != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._entries += 1
        self._head = head


def verify(path: Path | str, head: str | None = None) -> Verified:
    """Read a log and check every line against the one before.

    Args:
        path: The file.
        head: The hash that the log had when it was known to be whole. It may have grown since:
            some line must have it.

    Raises:
        OSError: The file cannot be read.
    """
    entries, last = 0, GENESIS
    seen = head is None or head == GENESIS
    with Path(path).open("rb") as file:
        while line := file.readline(2 * _MOST_LINE_BYTES + 1):
            problem = _check(line, entries + 1, last)
            if isinstance(problem, tuple):
                return Verified(entries=entries, head=last, problem=problem[0])
            entries, last = entries + 1, problem
            seen = seen or last == head
    if not seen:
        said = f"no line has the hash {head}: lines were cut off, or this is another log"
        return Verified(entries=entries, head=last, problem=said)
    return Verified(entries=entries, head=last)


def _continued(path: Path | str) -> Verified:
    found = verify(path)
    if found.problem:
        raise AuditError(str(path), f"{found.problem}; keep it aside and begin a new one")
    return found


def _check(line: bytes, number: int, previous: str) -> str | tuple[str]:
    """Return the line's hash, or what is wrong with it."""
    if not line.endswith(b"\n"):
        return (f"line {number} is not whole",)
    try:
        entry = json.loads(line)
        given = entry.pop("hash")
        same = line == _canonical({**entry, "hash": given}) + b"\n"
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return (f"line {number} is no entry of an audit log",)
    if not same:
        return (f"line {number} is not as it was written",)
    if entry.get("number") != number or entry.get("previous") != previous:
        return (f"line {number} does not follow the line before it: lines were moved or removed",)
    if hashlib.sha256(_canonical(entry)).hexdigest() != given:
        return (f"line {number} was changed",)
    return str(given)


def _canonical(value: Any) -> bytes:
    return json.dumps(copy_json(value), ensure_ascii=True, separators=(",", ":")).encode()
