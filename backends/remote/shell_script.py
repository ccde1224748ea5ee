"""What runs at the far end of a lane: a loop of POSIX sh that evaluates one request after another.

It needs a shell and the usual tools, busybox's at the least, and no file on the target. A request
is one line; what it prints is followed by a mark with a word that was made for it. The script is
fed to the shell line by line and read by `read`, which takes no byte too many, whereas a shell
that runs its own stdin as a script reads ahead.
"""

from __future__ import annotations

import functools
from importlib import resources

__all__ = ["MARK", "REFUSALS", "argv", "loading"]

#: Begins every mark; then come the request's own word, a letter and a number.
MARK = b"\x1e"

# Without quote ', backslash or !, so that any login shell carries it.
_START = 'exec 3<&0 </dev/null; IFS= read -r l <&3 && eval "$l"'

#: Exit statuses of the script's functions, and what they stand for: codes of engine faults.
REFUSALS = {
    20: "not_found",
    21: "is_directory",
    22: "not_directory",
    23: "denied",
    24: "not_regular",
    25: "storage_full",
    26: "path",
    27: "changed",
}

# The first line: reads the rest up to a line with a dot.
_LOADER = (
    rb"N=$(printf '\n.'); N=${N%.}; s=; while IFS= read -r l <&3; do "
    rb'case $l in .) break;; esac; s="$s$N$l"; done; eval "$s"'
)

_PARTS = ("basics", "files", "writing", "commands", "search", "probe")


def argv(name: str) -> tuple[str, ...]:
    """Return the program behind a lane.

    Args:
        name: What the lane can be found by in the target's list of processes.
    """
    return ("/bin/sh", "-c", _START, f"remotehands-{name}.")


def loading(word: str, settings: str = "") -> bytes:
    """Return what to write first on a lane's stdin; it answers with the mark `word` H, its pid.

    Args:
        word: What the lane's hello bears; letters and digits.
        settings: Assignments and definitions for the script, as shell text.
    """
    return b"\n".join(
        [_LOADER, _script(_PARTS), settings.encode(), _script(("loop",)), b".", b""]
    ).replace(b"HELLO", word.encode())


@functools.cache
def _script(names: tuple[str, ...]) -> bytes:
    """Return parts of the script, without what only readers need: a shell reads it byte by byte."""
    folder = resources.files("backends.remote") / "sh"
    texts = [(folder / f"{name}.sh").read_bytes() for name in names]
    lines = [line.strip() for text in texts for line in text.splitlines()]
    return b"\n".join(line for line in lines if line and not line.startswith(b"#"))
