"""ripgrep as the engine that matches, made to find what our own does.

It is asked for a little more than what matches (see `Regex.rg`), and every line that it finds goes
through `Regex.search` before it counts. It either gets files by name, or walks a tree itself where
every ignore rule in it is one that it takes as git does; who calls it has to know.
"""

import binascii
import bisect
import fcntl
import os
import select
import subprocess

from backends.engine import scan
from backends.engine.shell import which

try:
    import json
except ImportError:  # a Python without its larger modules; find_program says so
    json = None

try:
    import resource
except ImportError:
    resource = None

# The separator's option is new in ripgrep 13 and does nothing beside --json: older ones refuse it
# and print nothing, which sends the search to our own engine.
_OPTIONS = [
    "--no-config",
    "--hidden",
    "--no-messages",
    "--no-mmap",
    "--json",
    "--binary",
    "--field-match-separator=:",
]
_BY_NAME = ["--no-ignore"]
_BY_WALK = [
    "--no-ignore-global",
    "--no-ignore-exclude",
    "--no-ignore-dot",
    "--no-ignore-parent",
    "--no-require-git",
    "--glob=!.git",
]
_READ = 1 << 18
_PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031
#: Twelve threads reserve 0.9 GB. ripgrep holds whole lines in memory, so one without end stops it
#: there, and our own means, which cut such a line into pieces, take over.
_MOST_ADDRESSES = 2 << 30
_LONGEST_RECORD = 64 << 20
#: One argument must stay under 128 KiB.
_MAX_PATTERN_BYTES = 100000
_POLL_S = 0.1


def find_program():
    """Return the path of `rg`, or None where it is missing or its output can't be parsed."""
    return which(b"rg") if json else None


class Ripgrep:
    """A ripgrep that looks for one pattern below one folder.

    Args:
        program: Path of `rg`.
        folder: Folder (bytes) that the paths are relative to.
        wanted: scan.Wanted.
        limit: Most lines wanted of one file.
        scan_file: Function of a path that searches it by our own means and returns (lines, 1 if it
            has matches but holds NUL, else 0), or None when it can't be read.
    """

    def __init__(self, program, folder, wanted, limit, scan_file):
        #: False once it has failed: too old, not for this machine, or the pattern is too much.
        self.works = True
        self._program = program
        self._folder = folder
        self._wanted = wanted
        self._limit = limit
        self._scan_file = scan_file
        self._pattern = wanted.regex.rg.encode("utf-8")

    def start_on(self, paths):
        """Start on files (bytes, relative); return what `collect` takes, or None if it can't."""
        # "-" alone would be its standard input.
        return self._start(_BY_NAME, [b"./-" if path == b"-" else path for path in paths])

    def start_on_tree(self):
        """Start on all that it finds below the folder; return what `collect` takes, or None."""
        return self._start(_BY_WALK, [b"./"])

    def _start(self, options, paths):
        if len(self._pattern) > _MAX_PATTERN_BYTES:
            self.works = False
        if not self.works:
            return None
        options = _OPTIONS + options + ["--max-count=%d" % self._limit]
        try:
            process = subprocess.Popen(
                [self._program, *options, "-e", self._pattern, "--", *paths],
                cwd=self._folder,
                env={},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
            )
        except OSError:
            self.works = False
            return None
        _bound(process)
        return process

    def collect(self, process, room, after=None):
        """Return (files, binary, status) of a started process, and end it.

        `files` are the (path, lines) that have matches, by path, as many as it takes for `room`
        lines. `binary` tells how many more have matches and hold NUL. `status` is "done", "partly"
        when some files could not be read, or None when ripgrep did not do its work. Files up to
        the path `after` are left out.
        """
        files = _FirstFiles(room)
        binary = 0
        status = None
        held = []
        try:
            for line in self._output(process):
                if line.startswith(b'{"type":"begin"'):
                    held = []
                elif line.startswith(b'{"type":"match"'):
                    held.append(line)
                elif line.startswith(b'{"type":"end"'):
                    path, is_binary = _end(line)
                    if after is not None and path <= after:
                        continue
                    if is_binary or files.wants(path):
                        lines, is_binary = self._checked(path, held, is_binary)
                        binary += is_binary
                        if lines:
                            files.add(path, lines)
                elif line.endswith(b'"type":"summary"}'):
                    status = "done" if process.wait() < 2 else "partly"
        finally:
            stop(process)
        if status is None:
            self.works = False
        return files.items(), binary, status

    def _checked(self, path, held, is_binary):
        """Return what `scan_file` would for a file, given what ripgrep printed of it."""
        lines = []
        for line in held:
            data = json.loads(line.decode("utf-8"))["data"]
            raw = _bytes(data["lines"])
            raw = scan.without_ending(raw, 0, len(raw) - raw.endswith(b"\n"))
            span = self._wanted.regex.search(raw)
            if span is not None:
                if is_binary:
                    return [], 1
                number = data["line_number"]
                lines.append(scan.Line.around(number, raw, span, self._wanted.max_chars))
        if len(held) >= self._limit:
            # It stopped there, and a NUL or a true match may stand further down.
            return self._scan_file(path) or ([], 0)
        return lines, 0

    def _output(self, process):
        """Yield the lines that the process prints, calling `check` while it is silent."""
        fd = process.stdout.fileno()
        rest, size = [], 0
        while size < _LONGEST_RECORD:
            while not select.select([fd], [], [], _POLL_S)[0]:
                self._wanted.check()
            data = os.read(fd, _READ)
            self._wanted.check()
            if not data:
                return
            first, *lines = data.split(b"\n")
            rest.append(first)
            size += len(first)
            if lines:
                yield b"".join(rest)
                rest = [lines.pop()]
                size = len(rest[0])
                for line in lines:
                    yield line


def _bound(process):
    """Bound what the process can take, and give it room to print, where the system can."""
    try:
        fcntl.fcntl(process.stdout.fileno(), _F_SETPIPE_SZ, _PIPE_BYTES)
    except OSError:
        pass
    if hasattr(resource, "prlimit"):
        try:
            resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
            resource.prlimit(process.pid, resource.RLIMIT_AS, (_MOST_ADDRESSES, _MOST_ADDRESSES))
        except (OSError, ValueError):
            pass  # it has ended, or has a lower limit already


def stop(process):
    """End a started process, whatever it is doing."""
    process.kill()
    process.stdout.close()
    process.wait()


class _FirstFiles:
    """The first files in order of path, as many as it takes for a number of lines."""

    def __init__(self, room):
        self._room = room
        self._paths = []
        self._lines = {}
        self._total = 0

    def wants(self, path):
        return self._total < self._room or path < self._paths[-1]

    def add(self, path, lines):
        bisect.insort(self._paths, path)
        self._lines[path] = lines
        self._total += len(lines)
        while self._total - len(self._lines[self._paths[-1]]) >= self._room:
            self._total -= len(self._lines.pop(self._paths.pop()))

    def items(self):
        return [(path, self._lines[path]) for path in self._paths]


def _end(line):
    """Return (path, binary) of a file's last record."""
    data = json.loads(line.decode("utf-8"))["data"]
    path = _bytes(data["path"])
    return path[2:] if path.startswith(b"./") else path, data["binary_offset"] is not None


def _bytes(value):
    """Return the bytes of a value that is text where it is UTF-8, and base64 where it is not."""
    if "text" in value:
        return value["text"].encode("utf-8")
    return binascii.a2b_base64(value["bytes"])
