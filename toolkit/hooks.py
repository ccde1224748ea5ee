"""The two places where a product has its say on a call: before it runs and after it has run."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from toolkit.tool import AgentToolResult

if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolkit.abort import AbortSignal
    from toolkit.calls import ErrorKind, ImageContent, TextContent, ToolCall
    from toolkit.tool import AgentTool

__all__ = [
    "UNCHANGED",
    "AfterToolCall",
    "AfterToolCallHook",
    "BeforeToolCall",
    "BeforeToolCallHook",
    "Block",
    "ReplaceArguments",
    "ToolResultOverride",
    "Unchanged",
    "hook_name",
]


@dataclass(frozen=True, slots=True)
class BeforeToolCall:
    """What a before hook is shown.

    Attributes:
        call: The call as it came in.
        tool: The tool that will run.
        params: The validated arguments, for looking at; `ReplaceArguments` is how to change them.
        signal: Set when the batch is to end early.
    """

    call: ToolCall
    tool: AgentTool[Any]
    params: BaseModel
    signal: AbortSignal

    @property
    def arguments(self) -> dict[str, Any]:
        """The validated arguments as a new JSON object, with defaults filled in."""
        return self.params.model_dump(mode="json", by_alias=True)


@dataclass(frozen=True, slots=True)
class AfterToolCall:
    """What an after hook is shown: `BeforeToolCall`, and the result so far.

    Attributes:
        result: What the tool gave, as the hooks before this one have left it; errors too.
    """

    call: ToolCall
    tool: AgentTool[Any]
    params: BaseModel
    signal: AbortSignal
    result: AgentToolResult

    @property
    def arguments(self) -> dict[str, Any]:
        """The validated arguments as a new JSON object, with defaults filled in."""
        return self.params.model_dump(mode="json", by_alias=True)


@dataclass(frozen=True, slots=True)
class Block:
    """Keep the call from running.

    Attributes:
        reason: What the model is told.
        terminate: Ask for the end of the agent's loop.
    """

    reason: str = "a hook does not allow this call"
    terminate: bool = False


@dataclass(frozen=True, slots=True)
class ReplaceArguments:
    """Run the call with other arguments, which are validated as the first ones were.

    Attributes:
        arguments: All of them, as a JSON object or as the tool's arguments model.
    """

    arguments: Mapping[str, Any] | BaseModel


class Unchanged(enum.Enum):
    """The type of `UNCHANGED`."""

    UNCHANGED = "unchanged"


#: Leaves a field of a result as it is.
UNCHANGED: Literal[Unchanged.UNCHANGED] = Unchanged.UNCHANGED


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultOverride:
    """Change fields of a result: what is left out stays, None (or an empty list) clears.

    Attributes:
        content: Blocks for the model; None clears them.
        details: Facts for programs; None clears them.
        is_error: Whether the result is an error.
        error_kind: What sort of error; None is "failed".
        structured_content: The result for programs; None clears it.
        terminate: Ask for the end of the agent's loop, or take that back.
    """

    content: Sequence[TextContent | ImageContent] | Unchanged | None = UNCHANGED
    details: dict[str, Any] | Unchanged | None = UNCHANGED
    is_error: bool | Unchanged = UNCHANGED
    error_kind: ErrorKind | Unchanged | None = UNCHANGED
    structured_content: Any = UNCHANGED
    terminate: bool | Unchanged = UNCHANGED

    def apply(self, result: AgentToolResult) -> AgentToolResult:
        """Return `result` with the given fields in place of its own."""

        def pick(new: Any, old: Any) -> Any:
            return old if new is UNCHANGED else new

        content = pick(self.content, result.content)
        return AgentToolResult(
            [] if content is None else content,
            pick(self.details, result.details),
            pick(self.is_error, result.is_error),
            pick(self.error_kind, result.error_kind),
            pick(self.structured_content, result.structured_content),
            pick(self.terminate, result.terminate),
        )


#: What a before hook may say. None and True let the call go on; False blocks it.
BeforeDecision = Block | ReplaceArguments | bool | None

#: A plain or async function. One that raises, or gives back anything else, blocks the call.
BeforeToolCallHook = Callable[[BeforeToolCall], BeforeDecision | Awaitable[BeforeDecision]]

#: A plain or async function. When it raises, or gives back anything else, the result is withheld
#: and an error takes its place: a hook that was to redact must not fail open.
AfterToolCallHook = Callable[
    [AfterToolCall], ToolResultOverride | Awaitable[ToolResultOverride | None] | None
]


def hook_name(hook: Callable[..., Any]) -> str:
    """Return what to call a hook in a message."""
    name = getattr(hook, "__name__", None)
    return name if isinstance(name, str) else type(hook).__name__
