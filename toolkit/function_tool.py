"""A tool from a function with typed arguments, in one call."""

from __future__ import annotations

import inspect
import json
import re
import warnings
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo

from toolkit.invoke import invoke
from toolkit.tool import AgentTool, AgentToolResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.abort import AbortSignal
    from toolkit.tool import ExecutionMode, OnUpdate

__all__ = ["tool_from_function"]

#: Parameters that the pipeline fills in; a model never sees them.
_INJECTED = frozenset({"tool_call_id", "signal", "on_update"})


def tool_from_function(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    label: str | None = None,
    prepare_arguments: Callable[[Any], Any] | None = None,
    execution_mode: ExecutionMode | None = None,
) -> AgentTool[BaseModel]:
    """Make a tool of a function.

    Its arguments model comes from the signature, their descriptions from the section `Args:` of the
    docstring. Parameters called `tool_call_id`, `signal` and `on_update` are filled in by the
    pipeline. A plain function runs in a worker thread.

    Args:
        function: Async or plain. It may return an `AgentToolResult`, a text, None, or any JSON
            value or pydantic model, which is shown as JSON and kept as structured content.
        name: Default: the function's name.
        description: Default: the docstring up to its first section.
        label: Default: the name in words.
        prepare_arguments: As in `AgentTool`.
        execution_mode: As in `AgentTool`.

    Raises:
        TypeError: The signature has `*args`, `**kwargs` or parameters without a name.
    """
    told, argument_texts = _read_docstring(inspect.getdoc(function) or "")
    name = name or str(getattr(function, "__name__", type(function).__name__))
    signature = inspect.signature(function, eval_str=True)
    injected = _INJECTED & signature.parameters.keys()
    parameters = _arguments_model(name, signature, argument_texts)

    async def execute(
        tool_call_id: str, params: BaseModel, signal: AbortSignal, on_update: OnUpdate
    ) -> AgentToolResult:
        given = {"tool_call_id": tool_call_id, "signal": signal, "on_update": on_update}
        arguments = {field: getattr(params, field) for field in type(params).model_fields}
        arguments.update((key, given[key]) for key in injected)
        return _as_result(await invoke(function, **arguments))

    return AgentTool(
        name=name,
        label=label or name.replace("_", " ").capitalize(),
        description=description or told or name,
        parameters=parameters,
        execute=execute,
        prepare_arguments=prepare_arguments,
        execution_mode=execution_mode,
    )


def _arguments_model(
    name: str, signature: inspect.Signature, texts: dict[str, str]
) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        if parameter.name in _INJECTED:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{name}: the parameter {str(parameter)!r} cannot be an argument")
        fields[parameter.name] = _field(parameter, texts.get(parameter.name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an argument may be called "json" or "copy"
        model: type[BaseModel] = create_model(
            f"{name}_arguments",
            __config__=ConfigDict(frozen=True, protected_namespaces=()),
            **fields,
        )
    return model


def _field(parameter: inspect.Parameter, text: str | None) -> tuple[Any, Any]:
    empty = inspect.Parameter.empty
    annotation = Any if parameter.annotation is empty else parameter.annotation
    default = ... if parameter.default is empty else parameter.default
    if isinstance(default, FieldInfo) or text is None:
        return annotation, default
    return annotation, Field(default, description=text)


def _as_result(returned: Any) -> AgentToolResult:
    if isinstance(returned, AgentToolResult):
        return returned
    if returned is None:
        return AgentToolResult.text("(no output)")
    if isinstance(returned, str):
        return AgentToolResult.text(returned)
    if isinstance(returned, BaseModel):
        returned = returned.model_dump(mode="json", by_alias=True)
    return AgentToolResult.text(
        json.dumps(returned, ensure_ascii=False, indent=2), structured_content=returned
    )


_SECTION = re.compile(
    r"^(Args|Arguments|Returns|Raises|Yields|Examples?|Notes?):\s*$", re.MULTILINE
)
_ARGUMENT = re.compile(r"^ {4}\*{0,2}(\w+)(?: \([^)]*\))?:\s*(.*(?:\n {5,}.*)*)", re.MULTILINE)


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return the description, and what a Google style docstring says on each argument."""
    pieces = _SECTION.split(text)
    arguments: dict[str, str] = {}
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        if title in ("Args", "Arguments"):
            arguments = {match[1]: " ".join(match[2].split()) for match in _ARGUMENT.finditer(body)}
    return pieces[0].strip(), arguments
