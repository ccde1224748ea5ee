"""`toolkit call`: one tool call from the command line."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from toolkit import (
    AgentTool,
    Listener,
    TextContent,
    ToolCall,
    ToolResultMessage,
    coding_tools,
)
from toolkit.cli.output import Output
from toolkit.cli.screen import Screen, on_terminal
from toolkit.cli.session import (
    EXIT_INTERRUPTED,
    EXIT_UNREACHABLE,
    EXIT_USAGE,
    abort_on_interrupt,
)

if TYPE_CHECKING:
    from backends.targets import Backend
    from toolkit.cli.control import Control
    from toolkit.cli.log import EventLog

__all__ = ["CallFormat", "call_once", "message_text", "parse_pairs"]

#: text: rendered on a terminal, else as message; message: what a model reads; json: all of it.
CallFormat = Literal["text", "message", "json"]


async def call_once(
    backend: Backend,
    name: str,
    pairs: list[str],
    args: str | None,
    output: CallFormat,
    url: str,
    control: Control,
    log: EventLog | None = None,
) -> int:
    """Run one call and print its result; on a terminal, as text, it is shown while it runs too.

    Returns:
        0, 1 if the result is an error, 2 for malformed arguments, 3 if the target was unreachable,
        130 after an interrupt.
    """
    tools = coding_tools(backend)
    try:
        arguments: Any = parse_arguments(args, pairs, tools, name)
    except ValueError as error:
        print(f"toolkit: {error}", file=sys.stderr)
        return EXIT_USAGE
    call = ToolCall(id="1", name=name, arguments=arguments)
    screen = Screen(calls=False, max_lines=None) if output == "text" and on_terminal() else None
    listeners: list[Listener] = [] if log is None else [log.listen]
    if screen is not None:
        listeners.append(screen.listen)
    async with (
        abort_on_interrupt() as interrupt,
        control.runner(backend, url, listeners) as runner,
        nullcontext() if screen is None else screen.live(is_paused=lambda: control.is_asking),
    ):
        (message,) = await runner.run([call], signal=interrupt.signal)
    out = Output(utf8=output == "json")
    if screen is None:
        out.line(message.to_json() if output == "json" else message_text(message))
    if interrupt.signal.is_set():
        return EXIT_INTERRUPTED
    unreachable = message.error_kind == "unavailable"
    return out.exit_code(EXIT_UNREACHABLE if unreachable else int(message.is_error))


def parse_arguments(
    args: str | None, pairs: list[str], tools: list[AgentTool], name: str
) -> dict[str, Any]:
    """Join `--args JSON` and KEY=VALUE pairs; a pair wins over the same key of the object.

    Raises:
        ValueError: One of them is malformed; the message says what would be right.
    """
    arguments: dict[str, Any] = {}
    if args is not None:
        try:
            arguments = json.loads(args)
        except RecursionError:
            raise ValueError("--args is not JSON: it is nested too deeply") from None
        except ValueError as error:
            raise ValueError(f"--args is not JSON: {error}") from None
        if not isinstance(arguments, dict):
            raise ValueError(f"--args must be a JSON object, not {args[:80]!r}")
    schema = next((tool.parameters for tool in tools if tool.name == name), None)
    return {**arguments, **parse_pairs(pairs, schema)}


def parse_pairs(pairs: list[str], schema: Any = None) -> dict[str, Any]:
    """Turn ["limit=5", "path=a"] into {"limit": 5, "path": "a"} by the types of the schema.

    A value "@FILE" is the content of a file of this machine, "-" all of standard input, each as
    UTF-8; "@@x" is the text "@x".

    Args:
        pairs: Each KEY=VALUE.
        schema: The tool's arguments model, or None: every value is then text.

    Raises:
        ValueError: One has no "=" or no key, or what it names cannot be read.
    """
    if sum(pair.endswith("=-") for pair in pairs) > 1:
        raise ValueError("standard input can be the value of one key only")
    fields = schema.model_fields if schema is not None else {}
    arguments: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ValueError(f"argument {pair!r} is not KEY=VALUE (as in path=src/main.py)")
        field = fields.get(key)
        value = _content(key, value)
        arguments[key] = value if field is None else _typed(value, field.annotation)
    return arguments


def _content(key: str, value: str) -> str:
    """Return what a value means: itself, or the content of what it names."""
    if value == "-":
        if sys.stdin is None:
            raise ValueError(f"{key}=-: standard input is closed")
        name, read = "-", sys.stdin.buffer.read
    elif value.startswith("@@"):
        return value[1:]
    elif value.startswith("@") and len(value) > 1:
        name, read = value, Path(value[1:]).read_bytes
    else:
        return value
    try:
        return read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{key}={name}: byte {error.start} is not UTF-8") from None
    except OSError as error:
        right = f"write {key}=@{name} for that text itself"
        raise ValueError(f"{key}={name}: {error.strerror}; {right}") from None


def _typed(value: str, annotation: Any) -> Any:
    """Read JSON where the schema wants something other than text; step 2 judges the rest."""
    if annotation is str or str in get_args(annotation):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def message_text(message: ToolResultMessage) -> str:
    """Return a result as a model would read it, images as a line that tells their size."""
    return "\n".join(
        part.text
        if isinstance(part, TextContent)
        else f"[{part.mime_type}, {len(part.data)} bytes of base64]"
        for part in message.content
    )
