"""`toolkit call`: one tool call from the command line."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Literal, get_args

from toolkit import AgentTool, TextContent, ToolCall, ToolResultMessage, ToolRunner, coding_tools
from toolkit.cli.output import Output
from toolkit.cli.session import EXIT_UNREACHABLE, EXIT_USAGE, abort_on_interrupt

if TYPE_CHECKING:
    from backends.targets import Backend

__all__ = ["call_once", "message_text", "parse_pairs"]


async def call_once(
    backend: Backend,
    name: str,
    pairs: list[str],
    args: str | None,
    output: Literal["text", "json"],
) -> int:
    """Run one call and print its result.

    Returns:
        0, 1 if the result is an error, 2 for malformed arguments, 3 if the target was unreachable.
    """
    tools = coding_tools(backend)
    try:
        arguments: Any = parse_arguments(args, pairs, tools, name)
    except ValueError as error:
        print(f"toolkit: {error}", file=sys.stderr)
        return EXIT_USAGE
    async with abort_on_interrupt() as interrupt, ToolRunner(tools) as runner:
        call = ToolCall(id="1", name=name, arguments=arguments)
        (message,) = await runner.run([call], signal=interrupt.signal)
    out = Output(utf8=output == "json")
    out.line(message.to_json() if output == "json" else message_text(message))
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

    Args:
        pairs: Each KEY=VALUE.
        schema: The tool's arguments model, or None: every value is then text.

    Raises:
        ValueError: One has no "=" or no key.
    """
    fields = schema.model_fields if schema is not None else {}
    arguments: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ValueError(f"argument {pair!r} is not KEY=VALUE (as in path=src/main.py)")
        field = fields.get(key)
        arguments[key] = value if field is None else _typed(value, field.annotation)
    return arguments


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
