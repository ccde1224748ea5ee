"""`toolkit check`: what a target offers, and which promises are weaker there."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import anyio

from operations import BackendUnavailable, ConnectionLost, OperationError
from toolkit.cli.output import Output
from toolkit.cli.report import Report, as_json
from toolkit.cli.report_text import as_text
from toolkit.cli.session import EXIT_UNREACHABLE, TargetFailed, Where, complain, open_session
from toolkit.cli.shown import named
from toolkit.cli.survey import survey

if TYPE_CHECKING:
    from backends.targets import Backend

__all__ = ["check_target"]

_PINGS = 20
#: A slow target is asked fewer times.
_PINGS_S = 5.0


@runtime_checkable
class _Describes(Protocol):
    async def describe(self) -> dict[str, dict[str, Any]]: ...


async def check_target(
    target: str,
    cwd: str | None,
    output: Literal["text", "json"],
    remove_kept: bool,  # noqa: FBT001
) -> int:
    """Ask a target what it has and print it.

    Args:
        target: A target's URL.
        cwd: Working folder on the target; None for the target's own.
        output: How to print it.
        remove_kept: Also remove what commands have left there.

    Returns:
        0, 2 for a target that is malformed, 3 for one that is unreachable, or was lost meanwhile.
    """
    out = Output(utf8=output == "json")
    started = time.perf_counter()
    try:
        async with open_session(target, Where(cwd=cwd)) as backend:
            connect_ms = (time.perf_counter() - started) * 1000
            report = await _look(backend, target, connect_ms, remove_kept=remove_kept)
    except TargetFailed as error:
        if output == "json":
            told = {"target": named(target), "reachable": False, "error": str(error)}
            out.line(json.dumps(told))
            return out.exit_code(error.exit_code)
        return complain(str(error), error.exit_code)
    for line in [json.dumps(as_json(report))] if output == "json" else as_text(report):
        out.line(line)
    return out.exit_code(0)


async def _look(backend: Backend, target: str, connect_ms: float, *, remove_kept: bool) -> Report:
    found, unasked = None, None
    facts = backend.facts
    cwd = backend.cwd
    if facts is not None and cwd.startswith("~"):
        cwd = facts.home + cwd[1:]
    if facts is None or facts.platform != "memory":  # whose commands are scripts of the user's
        try:
            found = await survey(backend, cwd, remove_kept=remove_kept)
        except (BackendUnavailable, ConnectionLost) as error:
            raise TargetFailed(str(error), EXIT_UNREACHABLE) from error
        except OperationError as error:
            unasked = str(error)
    pings_ms = await _ping(backend)
    about: dict[str, dict[str, Any]] = {}
    if isinstance(backend, _Describes):
        try:
            about = await backend.describe()
        except OperationError as error:
            unasked = unasked or str(error)
    return Report(
        target=named(target),
        cwd=cwd,
        # Asked again: on this machine the engine starts with the first command.
        facts=backend.facts,
        found=found,
        unasked=unasked,
        about=about,
        connect_ms=connect_ms,
        pings_ms=pings_ms,
    )


async def _ping(backend: Backend) -> list[float]:
    took_ms: list[float] = []
    with anyio.move_on_after(_PINGS_S):
        for _ in range(_PINGS):
            started = time.perf_counter()
            try:
                await backend.exists("/")
            except OperationError:
                break
            took_ms.append((time.perf_counter() - started) * 1000)
    return took_ms
