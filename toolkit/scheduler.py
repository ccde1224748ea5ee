"""Who of a batch runs when, what an abort does, and one message for each call in the end.

Phase 1 prepares the calls in order, phase 2 runs the allowed ones together under a limit, phase 3
hands over the messages in the order of the calls. One sequential tool makes the whole batch
sequential: the three phases for each call in turn.

Two look after a batch. The driver takes the calls through their phases in a task of the runner. The
supervisor waits in the caller's own task, so that it can answer even when a call or a hook hangs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from toolkit.batch import Batch, BatchResult, Environment, RunningCall
from toolkit.cancellation import cancellation_requested, forget_stray_cancellation
from toolkit.pipeline import Refused, ask_after_hooks, execute_call, prepare_call
from toolkit.results import error_result, stopped_result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.abort import AbortSignal
    from toolkit.calls import ToolCall
    from toolkit.pipeline import Pipeline, Prepared
    from toolkit.tool import AgentToolResult

__all__ = ["is_sequential", "run_batch"]

_LEAKED = "left a cancel scope or a task group open, which was closed; close it where it is opened"


def is_sequential(calls: Sequence[ToolCall], pipeline: Pipeline) -> bool:
    """Return True when one of the calls is of a tool that vetoes running together."""
    tools = pipeline.tools
    return any(
        call.name in tools and tools[call.name].execution_mode == "sequential" for call in calls
    )


async def run_batch(
    calls: Sequence[ToolCall],
    environment: Environment,
    *,
    sequential: bool,
    signal: AbortSignal | None = None,
) -> BatchResult:
    """Run calls to one message each; nothing that a tool, hook or listener does gets out.

    Args:
        calls: In the model's order; ids should differ, and a clash is reported in the messages.
        environment: The runner's.
        sequential: Run them one after the other.
        signal: Ends the batch early: running calls are asked to stop, and cancelled after the
            grace; the rest is not started.
    """
    batch = Batch(calls, environment, signal)
    forget = batch.signal.subscribe(lambda: environment.post(batch.notify))
    try:
        if batch.calls:
            batch.spawn(_drive, batch, sequential)
            await _supervise(batch)
    finally:
        forget()
    for running in batch.calls:
        batch.tell_message(running)
    if batch.interrupt is not None:
        raise batch.interrupt
    await environment.listeners.flush()
    return batch.result()


# The driver.


async def _drive(batch: Batch, sequential: bool) -> None:  # noqa: FBT001 - spawn takes no names
    with batch.driver_scope:
        batch.driver_innermost = batch.environment.scopes.innermost()
        try:
            await (_one_by_one(batch) if sequential else _together(batch))
        finally:
            _must_stop(batch)


async def _together(batch: Batch) -> None:
    for running in batch.calls:
        if batch.signal.is_set():
            return
        await _prepare(batch, running)
    for running in batch.calls:
        _start(batch, running)


async def _one_by_one(batch: Batch) -> None:
    for running in batch.calls:
        if batch.signal.is_set():
            return
        await _prepare(batch, running)
        if running.message is None:
            running.settled = anyio.Event()
            _start(batch, running)
            await running.settled.wait()
        batch.tell_message(running)


async def _prepare(batch: Batch, running: RunningCall) -> None:
    """Steps 1 to 3, in the driver's task."""
    running.state = "preparing"
    running.clock_in()
    try:
        batch.tell_start(running)
        step = await prepare_call(running.call, batch.environment.pipeline, batch.signal)
        if batch.environment.scopes.close_inside(batch.driver_innermost):
            step = Refused(
                running.call, error_result(f"blocked: a before hook {_LEAKED}", "blocked")
            )
        if not batch.environment.trio:
            await forget_stray_cancellation()
    except BaseException as error:
        step = Refused(running.call, batch.crashed(error))
    running.clock_out()
    running.notes = {**step.notes, **running.notes}
    if batch.signal.is_set() or (isinstance(step, Refused) and _must_stop(batch)):
        batch.settle(running, batch.not_started())
    elif isinstance(step, Refused):
        batch.settle(running, step.result)
    else:
        running.prepared = step
        running.state = "waiting"


def _must_stop(batch: Batch) -> bool:
    """Return True when nothing new may be started; tell the supervisor if the runner is closing."""
    if not batch.signal.is_set() and cancellation_requested():
        batch.controller.abort("the runner was closed")
    return batch.signal.is_set()


def _start(batch: Batch, running: RunningCall) -> None:
    def begin() -> None:
        running.state = "running"
        batch.spawn(_run, batch, running)

    batch.environment.slots.add(begin, lambda: running.state == "waiting")


async def _run(batch: Batch, running: RunningCall) -> None:
    """Steps 4 and 5, in a task of the call's own."""
    running.clock_in()
    batch.environment.slots.begun()
    try:
        result = await _execute(batch, running)
        if not batch.environment.trio:
            await forget_stray_cancellation()
    except BaseException as error:
        result = batch.crashed(error)
    batch.settle(running, result)


async def _execute(batch: Batch, running: RunningCall) -> AgentToolResult:
    if _must_stop(batch):
        return batch.not_started()
    prepared, signal = running.prepared, batch.signal
    assert prepared is not None
    scopes = batch.environment.scopes
    running.updates = batch.updates_of(running)
    with anyio.CancelScope() as scope:
        running.scope = scope
        inside = scopes.innermost()
        result = await execute_call(prepared, signal, running.updates)
        if scopes.close_inside(inside):
            result = error_result(f"{running.call.name} {_LEAKED}", "internal")
        running.executed = True
        if signal.is_set():
            result = stopped_result(result, batch.stop_kind, batch.stop_reason)
        if running.message is not None or not batch.environment.pipeline.after_tool_call:
            return result
        if not scope.cancel_called:
            return await _ask_after(batch, prepared, result)
    # The cancelled scope is left behind: the hooks see the result of a cancelled call too.
    with anyio.CancelScope() as running.scope:
        return await _ask_after(batch, prepared, result)
    raise AssertionError  # for the type checker: hooks keep their cancellation to themselves


async def _ask_after(batch: Batch, prepared: Prepared, result: AgentToolResult) -> AgentToolResult:
    environment = batch.environment
    inside = environment.scopes.innermost()
    hooks = environment.pipeline.after_tool_call
    result = await ask_after_hooks(prepared, result, hooks, batch.signal)
    if environment.scopes.close_inside(inside):
        return error_result(f"the result is withheld: an after hook {_LEAKED}", "internal")
    return result


# The supervisor.


async def _supervise(batch: Batch) -> None:
    try:
        await _wait(batch, until=batch.signal.is_set)
        if batch.unsettled and batch.interrupt is None:
            await _stop(batch)
        if batch.interrupt is not None:
            await _clear_away(batch)
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await _clear_away(batch)
        raise


async def _wait(
    batch: Batch, timeout_s: float | None = None, until: Callable[[], bool] = lambda: False
) -> None:
    """Wait until all calls are settled, or until something else is the case."""
    with anyio.move_on_after(timeout_s):
        while batch.unsettled and not until():
            batch.changed = anyio.Event()
            await batch.changed.wait()


async def _stop(batch: Batch) -> None:
    """See a batch to its end after an abort: let calls end, cancel them, then go without them."""
    _settle_waiting(batch)
    await _wait(batch, batch.environment.grace_s)
    _cancel_all(batch)
    await _wait(batch, batch.environment.grace_s)
    for running in batch.calls:
        if running.message is None:
            batch.settle(running, await _give_up(batch, running))


async def _clear_away(batch: Batch) -> None:
    """End a batch whose caller goes away: cancel all at once, but let it be cleaned up."""
    batch.controller.abort("the caller was cancelled")
    _settle_waiting(batch)
    _cancel_all(batch)
    await _wait(batch, batch.environment.grace_s)
    for running in batch.calls:
        batch.settle(running, batch.left_behind(running))


def _settle_waiting(batch: Batch) -> None:
    for running in batch.calls:
        if running.state == "waiting":
            batch.settle(running, batch.not_started())


def _cancel_all(batch: Batch) -> None:
    batch.driver_scope.cancel()
    for running in batch.calls:
        if running.message is None and running.scope is not None:
            running.scope.cancel()


async def _give_up(batch: Batch, running: RunningCall) -> AgentToolResult:
    """Return the result of a call that does not end; what it does later is dropped."""
    result = batch.left_behind(running)
    hooks = batch.environment.pipeline.after_tool_call
    if running.prepared is None or running.updates is None:
        return result
    running.updates.close()
    withheld = error_result("the result is withheld: an after hook does not end", batch.stop_kind)
    if running.executed:
        return withheld
    with anyio.move_on_after(batch.environment.grace_s):
        return await ask_after_hooks(running.prepared, result, hooks, batch.signal)
    return withheld
