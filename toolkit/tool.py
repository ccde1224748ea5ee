"""The three layers of a tool: describe itself, be run, be shown and extended."""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal

from pydantic import BaseModel
from typing_extensions import TypeVar

from toolkit.calls import ErrorKind, ImageContent, TextContent
from toolkit.invoke import invoke

if TYPE_CHECKING:
    from rich.console import RenderableType

    from toolkit.abort import AbortSignal

__all__ = [
    "AgentTool",
    "AgentToolResult",
    "ExecutionMode",
    "OnUpdate",
    "Tool",
    "ToolDefinition",
    "wrap_tool_definition",
]

P = TypeVar("P", bound=BaseModel, default=Any)

ExecutionMode = Literal["sequential", "parallel"]


@dataclass(frozen=True, slots=True)
class AgentToolResult:
    """What a tool gives back, and what it shows while it runs.

    Attributes:
        content: Blocks for the model, in order.
        details: Facts for programs and displays, a JSON object, or None.
        is_error: True when the tool did not do what was asked but has more to show than a text.
        error_kind: What sort of error; "failed" when `is_error` and none is named.
        structured_content: The result for programs, any JSON value, or None.
        terminate: Ask for the end of the agent's loop; it ends when every result of a batch asks.
    """

    content: Sequence[TextContent | ImageContent]
    details: dict[str, Any] | None = None
    is_error: bool = False
    error_kind: ErrorKind | None = None
    structured_content: Any = None
    terminate: bool = False

    @classmethod
    def text(
        cls,
        text: str,
        *,
        details: dict[str, Any] | None = None,
        is_error: bool = False,
        error_kind: ErrorKind | None = None,
        structured_content: Any = None,
        terminate: bool = False,
    ) -> AgentToolResult:
        """Return a result whose content is one block of text."""
        return cls(
            [TextContent(text=text)], details, is_error, error_kind, structured_content, terminate
        )


#: Takes what a running tool has so far: a whole picture each time, which replaces the one before.
#: It may be called from any thread, never blocks and never raises; once the tool has ended it does
#: nothing.
OnUpdate = Callable[[AgentToolResult], None]

_schemas: weakref.WeakKeyDictionary[type[BaseModel], dict[str, Any]] = weakref.WeakKeyDictionary()


def json_schema(parameters: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of an arguments model, made once per model (282 us); do not change it.

    Raises:
        pydantic.errors.PydanticUserError: A field has a type that JSON schema cannot describe.
    """
    schema = _schemas.get(parameters)
    if schema is None:
        schema = _schemas[parameters] = parameters.model_json_schema()
    return schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Generic[P]):
    """The first layer: what a model is told.

    Attributes:
        name: The name that a model calls it by.
        description: What it does, for the model.
        parameters: The model of its arguments; unknown arguments are refused whatever its
            configuration says, unless that is `extra="allow"`.
    """

    name: str
    description: str
    parameters: type[P]

    def describe(self) -> dict[str, Any]:
        """Return `{"name", "description", "parameters"}`, the latter as JSON schema."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": json_schema(self.parameters),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTool(Tool[P]):
    """The second layer: what a pipeline runs.

    Attributes:
        label: The name for people.
        execute: `await execute(tool_call_id, params, signal, on_update)` does the work. It raises
            (best a `ToolFailure`) or returns a result with `is_error` when it could not. A plain
            function runs in a worker thread.
        prepare_arguments: Gets a copy of the arguments object and returns the one to go on with:
            the place for quirks of models that only this tool knows (general ones are dealt with
            before validation anyway). It may raise.
        execution_mode: "sequential" makes every batch with a call of this tool sequential.
    """

    label: str
    execute: Callable[[str, P, AbortSignal, OnUpdate], Awaitable[AgentToolResult]]
    prepare_arguments: Callable[[Any], Any] | None = None
    execution_mode: ExecutionMode | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition(Tool[P]):
    """The third layer: what a product shows and extends.

    Attributes:
        label: The name for people.
        execute: As `AgentTool.execute`, with the context as the fifth argument: whatever the
            context factory gave, None without one.
        prepare_arguments: As in `AgentTool`.
        execution_mode: As in `AgentTool`.
        prompt_snippet: One line on the tool for the system prompt.
        prompt_guidelines: Sentences on how to use it well, for the system prompt.
        render_call: `render_call(params)` gives what a console of rich prints for a call: text or
            a renderable, one line or little more.
        render_result: `render_result(params, result)` gives the same for a result, also for one
            that is not complete; it takes `max_lines=`, the most lines of its body.
    """

    label: str
    execute: Callable[[str, P, AbortSignal, OnUpdate, Any], Awaitable[AgentToolResult]]
    prepare_arguments: Callable[[Any], Any] | None = None
    execution_mode: ExecutionMode | None = None
    prompt_snippet: str | None = None
    prompt_guidelines: Sequence[str] = field(default=())
    render_call: Callable[[P], RenderableType] | None = None
    render_result: Callable[..., RenderableType] | None = None


def wrap_tool_definition(
    definition: ToolDefinition[P], context_factory: Callable[[], Any] | None = None
) -> AgentTool[P]:
    """Turn a definition into a tool that a pipeline can run.

    Args:
        definition: The third layer.
        context_factory: Called anew for each execution; what it gives is the context. The
            pipeline never learns of it.
    """

    async def execute(
        tool_call_id: str, params: P, signal: AbortSignal, on_update: OnUpdate
    ) -> AgentToolResult:
        context = None if context_factory is None else context_factory()
        returned: AgentToolResult = await invoke(
            definition.execute, tool_call_id, params, signal, on_update, context
        )
        return returned

    return AgentTool(
        name=definition.name,
        label=definition.label,
        description=definition.description,
        parameters=definition.parameters,
        prepare_arguments=definition.prepare_arguments,
        execution_mode=definition.execution_mode,
        execute=execute,
    )
