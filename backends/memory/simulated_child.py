"""One command of a simulated shell, in a process of its own; runs as a script.

`python -I -S -B simulated_child.py OURS THEIRS LIFELINE`: the folders where the packages
`backends` and `just_bash` are, and a descriptor whose other end is closed when nobody needs us any
more. It speaks on stdin and stdout as `simulated_wire` says.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import resource
import select
import sys

__all__ = ["main"]

#: Of addresses; an interpreter takes 60 MiB of them.
_MOST_MEMORY = 512 << 20
#: A function of bash's that calls itself takes a dozen frames of Python's for each call.
_MOST_FRAMES = 6000


def main() -> None:
    """Run the command that stdin tells."""
    _die_with_our_parent(int(sys.argv[3]))
    _bound()
    sys.path.extend(sys.argv[1:3])
    # Their own `__init__` would load the tree's side, and an HTTP client.
    _without_init("backends.memory")
    _without_init("just_bash")
    # Neither a connection, nor a database of this machine, nor patches of the event loop.
    sys.modules.update(dict.fromkeys(("aiohttp", "nest_asyncio", "sqlite3"), None))  # type: ignore[arg-type]
    from backends.memory.simulated_interpreter import run

    run()


def _die_with_our_parent(lifeline: int) -> None:
    """Have the kernel end us when the other end of this pipe is closed, whatever we are busy with.

    A thread that looks for that would wait for the interpreter's lock, which a regular expression
    holds to its end.
    """
    with contextlib.suppress(OSError, AttributeError):  # a system without it
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)  # SIGIO, whose default is to end
    if select.select([lifeline], [], [], 0)[0]:
        sys.exit(1)  # it was closed before


def _bound() -> None:
    bounds = {
        resource.RLIMIT_AS: _MOST_MEMORY,
        resource.RLIMIT_FSIZE: 0,  # no file of this machine takes a byte
        resource.RLIMIT_CORE: 0,
    }
    for name, value in bounds.items():
        with contextlib.suppress(OSError, ValueError):  # not every system has all
            resource.setrlimit(name, (value, value))
    sys.setrecursionlimit(_MOST_FRAMES)


def _without_init(name: str) -> None:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)


if __name__ == "__main__":
    main()
