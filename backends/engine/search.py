"""The searches that run where the files are, as functions and as the work of a process.

`grep` finds lines by pattern, `find` names by glob. Both walk the tree themselves, so that the same
files are looked at whatever engine matches them; ripgrep, where there is one, is only handed the
files (see rg.py). Results come in order of path.
"""

import os
import stat
import traceback

from backends.engine import frames, rg
from backends.engine.beneath import open_place
from backends.engine.faults import Fault
from backends.engine.finding import find
from backends.engine.grepping import grep
from backends.engine.reading import open_regular
from backends.engine.suggest import fault_about, faults_about
from backends.engine.walk import OsTree

__all__ = ["find", "grep", "worker_main"]


def worker_main(kind, args, out_fd):
    """Run one search as the whole work of a process; return its exit code.

    Args:
        kind: "grep" or "find".
        args: The query, its path under "path"; "root" and "with_kept" as `open_place` takes them,
            if at all; for grep, "rg" may be False to do without ripgrep.
        out_fd: Gets frames with request id 0: PARTs, then one RESULT or FAULT.
    """

    def write(kind, value):
        data = frames.encode_frame(kind, 0, frames.encode_value(value))
        while data:
            data = data[os.write(out_fd, data) :]

    def emit(part):
        if "paths" in part:  # thousands: as one value, which no name can have a NUL in
            part = {"paths": b"\0".join(part["paths"])}
        write(frames.PART, part)

    try:
        write(frames.RESULT, _search_path(kind, _as_text(args), emit))
        return 0
    except Fault as fault:
        write(frames.FAULT, [fault.code, fault.arguments])
    except BrokenPipeError:
        pass  # nobody listens any more
    except Exception:
        write(frames.FAULT, ["internal", [traceback.format_exc()[-4000:]]])
    return 1


def _as_text(args):
    """Return the arguments with patterns as text; they may have crossed as bytes."""
    return {
        name: value.decode("utf-8", "surrogateescape")
        if name in ("pattern", "glob") and isinstance(value, bytes)
        else value
        for name, value in args.items()
    }


def _search_path(kind, args, emit):
    place = open_place(args.get("root"), args.get("with_kept", False))
    try:
        return _search_in(place, kind, args, emit)
    finally:
        place.close()


def _search_in(place, kind, args, emit):
    path = args["path"]
    with faults_about(place, path):
        mode = place.stat(path).st_mode
    if stat.S_ISDIR(mode):
        tree, file = OsTree(place, path), None
    elif kind == "find":
        raise Fault("not_directory", path, "")
    else:
        tree = OneFile(place, path)
        file = tree.name
    try:
        if kind == "find":
            return find(tree, args, emit)
        # ripgrep opens files by their paths, which may lead elsewhere by then.
        uses_rg = args.get("rg", True) and args.get("root") is None
        program = rg.find_program() if uses_rg else None
        return grep(tree, args, emit, None, file, program)
    except OSError as error:
        raise fault_about(place, path, error)
    finally:
        tree.close()


class OneFile:
    """A tree that is one file, named outright.

    Args:
        place: The Place that the path belongs to.
        path: Bytes path of the file; symlinks are followed.

    Raises:
        Fault: It cannot be opened, or is no regular file.
    """

    def __init__(self, place, path):
        self._place = place
        self._file = path
        self.path, self.name = os.path.split(place.expand(path))
        with faults_about(place, path):
            os.close(open_regular(place, path)[0])

    def close(self):
        """Do nothing: the file is open only while it is read."""

    def read(self, path):
        """Yield the chunks of the file."""
        fd, _ = open_regular(self._place, self._file)
        with os.fdopen(fd, "rb", 0) as file:
            chunk = file.read(1 << 20)
            while chunk:
                yield chunk
                chunk = file.read(1 << 20)

    def size(self, path):
        """Return the size of the file in bytes."""
        return self._place.stat(self._file).st_size
