"""`toolkit docker prune`: remove what ended processes have left in a Docker engine."""

from __future__ import annotations

import json
from typing import Literal

from operations import BackendUnavailable
from toolkit.cli.output import Output
from toolkit.cli.session import EXIT_UNREACHABLE, complain
from toolkit.cli.shown import shown

__all__ = ["prune_containers"]


async def prune_containers(engine: str | None, output: Literal["text", "json"]) -> int:
    """Remove the containers that ended processes of this machine had started; print their names.

    Args:
        engine: The Docker engine's address; None for the one that `docker` would use.
        output: How to print them.

    Returns:
        0, 3 if no Docker engine answers.
    """
    from backends.docker import prune

    out = Output(utf8=output == "json")
    try:
        removed = await prune(engine)
    except BackendUnavailable as error:
        if output == "json":
            out.line(json.dumps({"removed": [], "error": str(error)}))
            return out.exit_code(EXIT_UNREACHABLE)
        return complain(str(error), EXIT_UNREACHABLE)
    if output == "json":
        out.line(json.dumps({"removed": removed, "error": None}))
        return out.exit_code(0)
    for name in removed:
        out.line(f"removed {shown(name)}")
    if not removed:
        out.line("nothing to remove: no container here was left by a process that has ended")
    return out.exit_code(0)
