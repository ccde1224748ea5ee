"""Start the engine on a target that has nothing but Python: its argv, and its own sources."""

from __future__ import annotations

import functools
import shlex
import zlib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from backends.engine import frames

__all__ = ["PYTHONS", "argv", "payload", "shell_argv", "shell_line"]

#: Where Python 3 is looked for on a target, in turn.
PYTHONS = ("python3", "/usr/libexec/platform-python")

#: Reads three blocks, each behind ten digits of length: the importer, the modules, the settings.
#: The near end sends nothing further until the hello, so what this file object reads ahead is
#: nothing. One line without quote ', backslash, $ or !, so that every login shell can carry it.
_SOURCE = (
    'import os,sys,zlib;f=os.fdopen(0,"rb",closefd=False);'
    'sys.version_info<(3,6) and sys.exit("the engine needs Python 3.6");'
    "r=lambda:f.read(int(f.read(10)));"
    "exec(zlib.decompress(r()));install(zlib.decompress(r()));"
    "from backends.engine import frames,serve;serve.main(frames.decode_value(r()))"
)


def argv(python: str = PYTHONS[0]) -> list[str]:
    """Return the program that becomes the engine once `payload` is written to its stdin.

    It runs isolated (`-I -S`): nothing in the working folder, in the user's site directory or in
    the environment can put a module in front of the standard library's.
    """
    return [python, "-I", "-S", "-c", _SOURCE]


def shell_argv() -> list[str]:
    """Return a program that does the same once it has found Python by the target's own shell.

    It tries each of PYTHONS and ends with status 127 when there is none.
    """
    tries = "; ".join(
        f'command -v {python} >/dev/null 2>&1 && exec {python} -I -S -c "$1"' for python in PYTHONS
    )
    return ["/bin/sh", "-c", f"{tries}; echo no python3 here >&2; exit 127", "sh", _SOURCE]


def shell_line() -> str:
    """Return `shell_argv` as one command line for a target's login shell, whichever it is."""
    return "exec " + shlex.join(shell_argv())


def payload(settings: Mapping[str, Any]) -> bytes:
    """Return what to write first on the engine's stdin: its sources, then its settings.

    Args:
        settings: Plain values; see `backends.engine.serve.main`.
    """
    return _sources() + _block(frames.encode_value(dict(settings)))


@functools.cache
def _sources() -> bytes:
    engine = resources.files("backends.engine")
    sources = {
        file.name.removesuffix(".py"): file.read_bytes()
        for file in engine.iterdir()
        if file.name.endswith(".py")
    }
    importer = sources.pop("importer")
    fields = [b"backends/", b"", b"backends.engine/", sources.pop("__init__")]
    for name in sorted(sources):
        fields += [f"backends.engine.{name}".encode(), sources[name]]
    return _block(zlib.compress(importer, 9)) + _block(zlib.compress(b"\0".join(fields), 9))


def _block(data: bytes) -> bytes:
    return b"%010d" % len(data) + data
