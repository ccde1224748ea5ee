"""Secrets out of what a model and a listener get to see.

Results, updates and events are redacted; the output that is kept on the target is not, and neither
is what a command does with a secret.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from toolkit.calls import TextContent
from toolkit.events import MessageEnd, MessageStart, ToolExecutionEnd, ToolExecutionUpdate
from toolkit.hooks import AfterToolCall, ToolResultOverride
from toolkit.policy.secrets import BLOCK_BEGIN, BLOCK_END, SECRET_PATTERNS

if TYPE_CHECKING:
    from toolkit.abort import AbortSignal
    from toolkit.events import Event, Listener
    from toolkit.tool import AgentTool, AgentToolResult, OnUpdate

__all__ = ["Redactor"]

#: Shorter values would be found in everything.
_LEAST_VALUE_CHARS = 6
#: This much of a value, at the edge of a text, is taken for its beginning or end.
_LEAST_PART_CHARS = 4
_MOST_DEPTH = 64
_MOST_WORD = 4096
#: What a secret that an update has not shown to its end may look like.
_WORD = re.compile(r"[^\s'\"<>()]+")
_CUT_FRONT = re.compile(r"\A[A-Za-z0-9_+/=.~-]{16,4096}")


class Redactor:
    """Replaces secrets by "[redacted: what it was]".

    `after` is an after hook for results; `tools` wraps tools so that their updates are redacted
    too; `listener` wraps a listener, so that it also sees no secret that a model wrote itself.

    Args:
        values: Secrets by name, as {"API_KEY": "..."}; values under 6 characters are refused,
            since they would be found everywhere.
        patterns: Whether the documented forms of keys and tokens are secrets too.

    Raises:
        ValueError: A value is too short.
    """

    def __init__(self, values: Mapping[str, str] | None = None, *, patterns: bool = True) -> None:
        self._values: dict[str, str] = {}
        for name, value in (values or {}).items():
            # Each line too: a listing may show them apart.
            for part in {value, *value.split("\n")}:
                if len(part.strip()) >= _LEAST_VALUE_CHARS:
                    self._values[part] = name
            if len(value.strip()) < _LEAST_VALUE_CHARS:
                raise ValueError(
                    f"the value of {name} has fewer than {_LEAST_VALUE_CHARS} characters; it would "
                    "be found everywhere"
                )
        longest_first = sorted(self._values, key=len, reverse=True)
        self._exact = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        self._patterns = SECRET_PATTERNS if patterns else ()
        self._blocks = patterns

    @classmethod
    def of_variables(cls, names: Iterable[str], environ: Mapping[str, str]) -> Redactor:
        """Return one for the values of environment variables; those that are not set have none.

        Raises:
            ValueError: A value is too short.
        """
        return cls({name: environ[name] for name in names if environ.get(name)})

    def text(self, text: str) -> str:
        """Return a whole text without its secrets."""
        if self._exact is not None:
            text = self._exact.sub(lambda found: _mark(self._values[found[0]]), text)
        if self._blocks and "PRIVATE KEY" in text:
            text = _without_blocks(text)
        for name, pattern in self._patterns:
            text = pattern.sub(lambda found, name=name: _replaced(found, name), text)  # type: ignore[misc]
        return text

    def cut_text(self, text: str, *, front: bool, back: bool) -> str:
        """Return a text without its secrets, also those of which it holds only an end.

        Args:
            text: The text.
            front: Whether something stood before it that was left out.
            back: Whether more of it will come.
        """
        text = self.text(text)
        if back:
            text = self._without_end(text)
        if front:
            text = self._without_beginning(text)
        return text

    def _without_end(self, text: str) -> str:
        for value, name in self._values.items():
            for size in range(min(len(value) - 1, len(text)), _LEAST_PART_CHARS - 1, -1):
                if text.endswith(value[:size]):
                    return text[: len(text) - size] + _mark(name)
        # Read backwards, since a search for the last word would try every place before it.
        if self._patterns and (found := _WORD.match(text[: -_MOST_WORD - 1 : -1])):
            return text[: len(text) - found.end()] + "..."
        return text

    def _without_beginning(self, text: str) -> str:
        for value, name in self._values.items():
            for size in range(min(len(value) - 1, len(text)), _LEAST_PART_CHARS - 1, -1):
                if text.startswith(value[-size:]):
                    return _mark(name) + text[size:]
        return _CUT_FRONT.sub("...", text) if self._patterns else text

    def value(self, value: Any, depth: int = 0) -> Any:
        """Return a JSON value in which every text, keys too, is without its secrets."""
        if isinstance(value, str):
            return self.text(value)
        if depth > _MOST_DEPTH:
            return "[redacted: nested too deeply]"
        if isinstance(value, Mapping):
            return {self.text(str(k)): self.value(v, depth + 1) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(each, depth + 1) for each in value]
        return value

    def result(self, result: AgentToolResult, *, more: bool = False) -> AgentToolResult:
        """Return a result without its secrets.

        Args:
            result: The result, or an update.
            more: True for an update, whose last word may not be whole yet.
        """
        front = bool((result.details or {}).get("truncation"))
        content = [
            TextContent(text=self.cut_text(block.text, front=front, back=more))
            if isinstance(block, TextContent)
            else block
            for block in result.content
        ]
        return replace(
            result,
            content=content,
            details=self.value(result.details),
            structured_content=self.value(result.structured_content),
        )

    def after(self, context: AfterToolCall) -> ToolResultOverride:
        """Redact a result; an after hook, best the last one."""
        clean = self.result(context.result)
        return ToolResultOverride(
            content=clean.content,
            details=clean.details,
            structured_content=clean.structured_content,
        )

    def tools(self, tools: Iterable[AgentTool[Any]]) -> list[AgentTool[Any]]:
        """Return the tools with their updates redacted."""
        return [replace(tool, execute=self._execute(tool.execute)) for tool in tools]

    def _execute(self, execute: Callable[..., Any]) -> Callable[..., Any]:
        def redacting(on_update: OnUpdate) -> OnUpdate:
            return lambda update: on_update(self.result(update, more=True))

        if not inspect.iscoroutinefunction(execute):

            def plain(call_id: str, params: Any, signal: AbortSignal, on_update: OnUpdate) -> Any:
                return execute(call_id, params, signal, redacting(on_update))

            return plain

        async def wrapped(
            call_id: str, params: Any, signal: AbortSignal, on_update: OnUpdate
        ) -> Any:
            return await execute(call_id, params, signal, redacting(on_update))

        return wrapped

    def listener(self, listener: Listener) -> Listener:
        """Return a listener that hands on every event without its secrets, arguments too."""

        def redacting(event: Event) -> Any:
            return listener(self.event(event))

        redacting.__name__ = getattr(listener, "__name__", type(listener).__name__)
        return redacting

    def event(self, event: Event) -> Event:
        """Return an event without its secrets."""
        if isinstance(event, MessageStart | MessageEnd):
            message = event.message
            blocks = [
                TextContent(text=self.text(block.text)) if isinstance(block, TextContent) else block
                for block in message.content
            ]
            update = {
                "content": blocks,
                "details": self.value(message.details),
                "structured_content": self.value(message.structured_content),
            }
            return replace(event, message=message.model_copy(update=update))
        if isinstance(event, ToolExecutionEnd):
            return replace(event, result=self.result(event.result))
        args = self.value(event.args)
        if isinstance(event, ToolExecutionUpdate):
            shown = self.result(event.partial_result, more=True)
            return replace(event, args=args, partial_result=shown)
        return replace(event, args=args)


def _mark(name: str) -> str:
    return f"[redacted: {name}]"


def _replaced(found: re.Match[str], name: str) -> str:
    if not found.re.groups:
        return _mark(name)
    start, end = found.span(1)
    offset = found.start()
    return found[0][: start - offset] + _mark(name) + found[0][end - offset :]


def _without_blocks(text: str) -> str:
    """Replace private keys; one of which an end is missing reaches to the text's own end."""
    parts: list[str] = []
    at = 0
    end = BLOCK_END.search(text)
    begin = BLOCK_BEGIN.search(text)
    if end is not None and (begin is None or end.start() < begin.start()):
        parts.append(_mark("private key"))
        at = end.end()
    while begin := BLOCK_BEGIN.search(text, at):
        parts += [text[at : begin.start()], _mark("private key")]
        end = BLOCK_END.search(text, begin.end())
        at = len(text) if end is None else end.end()
    return "".join(parts) + text[at:]
