"""One call through its five steps: a value goes into each, a value comes out, nothing is raised.

    prepare_arguments -> validate_arguments -> ask_before_hooks -> execute_call -> ask_after_hooks

The first three make `Prepared` or `Refused`, the others a result: every way ends in one, of which
the scheduler makes the call's message. Only KeyboardInterrupt gets out.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from toolkit.arguments import (
    InvalidArguments,
    default_prepare_arguments,
    did_you_mean,
    read_arguments,
    validate_tool_arguments,
)
from toolkit.cancellation import cancellation_requested, is_cancellation
from toolkit.failures import error_text, leaves, pass_interrupt
from toolkit.hooks import (
    AfterToolCall,
    AfterToolCallHook,
    BeforeToolCall,
    BeforeToolCallHook,
    Block,
    ReplaceArguments,
    ToolResultOverride,
    hook_name,
)
from toolkit.invoke import invoke
from toolkit.json_values import copy_json, preview
from toolkit.results import BadResult, Notes, checked_result, error_result, failure_result

if TYPE_CHECKING:
    from toolkit.abort import AbortSignal
    from toolkit.calls import ToolCall
    from toolkit.tool import AgentTool, AgentToolResult
    from toolkit.updates import Updates

__all__ = [
    "Pipeline",
    "Prepared",
    "Refused",
    "ask_after_hooks",
    "execute_call",
    "prepare_call",
]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """What all calls of a runner go through."""

    tools: Mapping[str, AgentTool[Any]]
    before_tool_call: tuple[BeforeToolCallHook, ...] = ()
    after_tool_call: tuple[AfterToolCallHook, ...] = ()


@dataclass(frozen=True, slots=True)
class Arguments:
    """A call whose tool is known and whose arguments are still to be validated."""

    call: ToolCall
    tool: AgentTool[Any]
    arguments: Any
    notes: Notes


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that may run."""

    call: ToolCall
    tool: AgentTool[Any]
    params: BaseModel
    notes: Notes


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that must not run, and what its model is told."""

    call: ToolCall
    result: AgentToolResult
    notes: Notes = field(default_factory=dict)


async def prepare_call(
    call: ToolCall, pipeline: Pipeline, signal: AbortSignal
) -> Prepared | Refused:
    """Take a call through all steps before execution."""
    tool = pipeline.tools.get(call.name)
    if tool is None:
        return Refused(call, _unknown_tool(call.name, pipeline.tools))
    arguments = prepare_arguments(call, tool)
    if isinstance(arguments, Refused):
        return arguments
    prepared = validate_arguments(arguments)
    if isinstance(prepared, Refused):
        return prepared
    return await ask_before_hooks(prepared, pipeline.before_tool_call, signal)


def prepare_arguments(call: ToolCall, tool: AgentTool[Any]) -> Arguments | Refused:
    """Step 1: make up for what models are known to get wrong, on a copy."""
    notes: Notes = {}
    try:
        arguments, repaired = read_arguments(call.arguments)
        if tool.prepare_arguments is not None:
            arguments = tool.prepare_arguments(arguments)
        if isinstance(arguments, dict):
            arguments, repaired_inside = default_prepare_arguments(arguments, tool.parameters)
            repaired = repaired or repaired_inside
        if repaired:
            notes = {"arguments_repaired": _repair_note(arguments)}
        return Arguments(call, tool, arguments, notes)
    except BaseException as error:
        pass_interrupt(error)
        return Refused(call, _invalid_arguments(call, error), notes)


def validate_arguments(step: Arguments) -> Prepared | Refused:
    """Step 2: hold the arguments against the tool's model, strictly."""
    try:
        params = validate_tool_arguments(step.arguments, step.tool.parameters)
    except BaseException as error:
        pass_interrupt(error)
        return Refused(step.call, _invalid_arguments(step.call, error), step.notes)
    return Prepared(step.call, step.tool, params, step.notes)


async def ask_before_hooks(
    prepared: Prepared, hooks: tuple[BeforeToolCallHook, ...], signal: AbortSignal
) -> Prepared | Refused:
    """Step 3: let each hook pass, change or block the call; the first block wins."""
    for hook in hooks:
        context = BeforeToolCall(prepared.call, prepared.tool, prepared.params, signal)
        try:
            decision = hook(context)
            if inspect.isawaitable(decision):
                decision = await decision
        except BaseException as error:
            pass_interrupt(error)
            text = f"blocked: {hook_name(hook)} raised {_told(error)}"
            return Refused(prepared.call, error_result(text, "blocked"), prepared.notes)
        step = _decide(prepared, hook, decision)
        if isinstance(step, Refused):
            return step
        prepared = step
    return prepared


def _decide(prepared: Prepared, hook: BeforeToolCallHook, decision: Any) -> Prepared | Refused:
    if decision is None or decision is True:
        return prepared
    if decision is False:
        decision = Block()
    if isinstance(decision, Block):
        result = error_result(str(decision.reason), "blocked", terminate=decision.terminate is True)
        return Refused(prepared.call, result, prepared.notes)
    if isinstance(decision, ReplaceArguments):
        return _with_arguments(prepared, hook, decision.arguments)
    text = f"blocked: {hook_name(hook)} returned {preview(decision, max_chars=80)}, no decision"
    return Refused(prepared.call, error_result(text, "blocked"), prepared.notes)


def _with_arguments(prepared: Prepared, hook: BeforeToolCallHook, new: Any) -> Prepared | Refused:
    try:
        if isinstance(new, BaseModel):
            new = new.model_dump(mode="json", by_alias=True)
        params = validate_tool_arguments(copy_json(dict(new)), prepared.tool.parameters)
    except BaseException as error:
        pass_interrupt(error)
        text = f"blocked: {hook_name(hook)} put in arguments that do not fit:\n{error_text(error)}"
        return Refused(prepared.call, error_result(text, "blocked"), prepared.notes)
    return replace(prepared, params=params)


async def execute_call(
    prepared: Prepared, signal: AbortSignal, updates: Updates
) -> AgentToolResult:
    """Step 4: run the tool; what it raises becomes an error with exactly the text it gave."""
    tool = prepared.tool
    try:
        try:
            returned = await invoke(
                tool.execute, prepared.call.id, prepared.params, signal, updates
            )
        finally:
            updates.close()
        return checked_result(returned, tool.name)
    except BaseException as error:
        pass_interrupt(error)
        if not is_cancellation(error):
            return _failure(error)
        if cancellation_requested():
            return _cancelled(tool.name, signal, updates)
        text = f"{type(error).__name__}: {tool.name} was cancelled, but nobody asked for it"
        return error_result(text, "internal")


def _cancelled(name: str, signal: AbortSignal, updates: Updates) -> AgentToolResult:
    """Return what a call had shown when it was cancelled."""
    result = error_result(f"{signal.reason or 'aborted'}; {name} was cancelled", "aborted")
    last = updates.last
    if last is None:
        return result
    return replace(result, content=[*last.content, *result.content], details=last.details)


def _failure(error: BaseException) -> AgentToolResult:
    """Tell of what went wrong; a group on its way out of a cancelled scope holds more than that."""
    told = [leaf for leaf in leaves(error) if not is_cancellation(leaf)]
    return failure_result(told[0] if len(told) == 1 else BaseExceptionGroup("", told))


async def ask_after_hooks(
    prepared: Prepared,
    result: AgentToolResult,
    hooks: tuple[AfterToolCallHook, ...],
    signal: AbortSignal,
) -> AgentToolResult:
    """Step 5: let each hook change fields of the result, of failed calls too."""
    for hook in hooks:
        context = AfterToolCall(prepared.call, prepared.tool, prepared.params, signal, result)
        try:
            override = hook(context)
            if inspect.isawaitable(override):
                override = await override
            result = _override(result, override, hook)
        except BaseException as error:
            pass_interrupt(error)
            # Its text is not told: it may quote what the hook was there to hide.
            _log.error("after hook %s raised", hook_name(hook), exc_info=error)
            text = f"the result is withheld: {hook_name(hook)} raised {type(error).__name__}"
            result = error_result(text, "internal")
    return result


def _override(result: AgentToolResult, override: Any, hook: AfterToolCallHook) -> AgentToolResult:
    if override is None:
        return result
    if not isinstance(override, ToolResultOverride):
        raise BadResult(f"{hook_name(hook)} returned no ToolResultOverride")
    return checked_result(override.apply(result), hook_name(hook))


def _unknown_tool(name: str, tools: Mapping[str, AgentTool[Any]]) -> AgentToolResult:
    names = ", ".join(sorted(tools)) or "none"
    text = f"unknown tool {name[:100]!r}{did_you_mean(name, tools)} (tools: {names})"
    return error_result(text, "unknown_tool")


def _invalid_arguments(call: ToolCall, error: BaseException) -> AgentToolResult:
    problems = error if isinstance(error, InvalidArguments) else f"arguments: {_told(error)}"
    lines = "\n".join(f"  {line}" for line in str(problems).split("\n"))
    text = f"invalid arguments for {call.name}:\n{lines}\nreceived: {preview(call.arguments)}"
    return error_result(text, "invalid_arguments")


def _repair_note(arguments: Any) -> str:
    read_as = preview(arguments, max_chars=300)
    return f"note: the arguments were not valid JSON and were repaired; they were read as {read_as}"


def _told(error: BaseException) -> str:
    """Return an error's type and text; the type once when that is all there is."""
    name, text = type(error).__name__, error_text(error)
    return text if text.startswith(name) else f"{name}: {text}"
