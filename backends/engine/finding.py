"""Find names by glob."""

import posixpath

from backends.engine.glob import compile_glob
from backends.engine.pace import Clock, in_parts
from backends.engine.walk import Unreadable, runs

#: Names between two looks at the clock.
_CHECK_EVERY = 256
#: Bounds of the second look, into ignored folders, for a name that was found nowhere else.
_MOST_FOLDERS = 10000
_MOST_ENTRIES = 200000


def find(tree, query, emit, cancelled=None):
    """Find names below a tree; return the summary (see GlobResult for its keys).

    Args:
        tree: See walk.py.
        query: "pattern", "limit", "timeout_s".
        emit: Called with parts: {"seen", "found"} now and then, in the end {"paths": [bytes]} in
            order, folders ending with "/".
        cancelled: Function that returns true when nobody wants the result any more.

    Raises:
        Fault: "invalid_pattern", "search_timeout" or "cancelled".
        OSError: The root cannot be read.
    """
    return _Find(tree, query, emit, cancelled).run()


def _size(path):
    return len(path) + 5


def _bare(path):
    """Return (path without "/" at its end, whether it had one, as folders' paths have)."""
    return (path[:-1], True) if path.endswith(b"/") else (path, False)


class _Find:
    def __init__(self, tree, query, emit, cancelled):
        self._tree = tree
        self._glob = compile_glob(query["pattern"])
        self._limit = query.get("limit", 1000)
        self._clock = Clock(query.get("timeout_s"), cancelled)
        self._emit = emit
        self._unreadable = Unreadable()
        self._found = []
        self._ignored = 0
        self._ignored_folders = []

    def run(self):
        self._walk()
        if not self._found and not self._ignored and self._glob.literal is not None:
            self._ignored = self._below_ignored()
        for part in in_parts(self._found[: self._limit], _size):
            self._emit({"paths": part})
        return {
            "more": len(self._found) > self._limit,
            "ignored": 0 if self._found else self._ignored,
            "unreadable": self._unreadable.paths,
            "unreadable_total": self._unreadable.total,
        }

    def _walk(self):
        may_hold = self._glob.may_hold if self._glob.anchored else None
        seen, next_check = 0, 0
        for prefix, keys, _ in runs(self._tree, self._unreadable, may_hold, self._note_ignored):
            self._found += self._glob.matching(prefix, keys)
            if len(self._found) > self._limit:
                return
            seen += len(keys)
            if seen > next_check:
                next_check = seen + _CHECK_EVERY
                self._clock.check()
                if self._clock.news():
                    self._emit({"seen": seen, "found": len(self._found)})

    def _note_ignored(self, path):
        if self._found:
            return
        bare, is_directory = _bare(path)
        self._ignored += self._glob.match(bare, is_directory)
        is_git = bare == b".git" or bare.endswith(b"/.git")
        if is_directory and not is_git and len(self._ignored_folders) < _MOST_FOLDERS:
            self._ignored_folders.append(bare)

    def _below_ignored(self):
        """Return how often a pattern without wildcards fits in folders that are ignored."""
        if self._glob.anchored:
            folder = posixpath.dirname(self._glob.literal)
            if any((folder + b"/").startswith(top + b"/") for top in self._ignored_folders):
                return sum(1 for fits, _ in self._scan(folder) if fits)
            return 0
        count = seen = 0
        folders = self._ignored_folders[::-1]
        while folders and seen < _MOST_ENTRIES:
            self._clock.check()
            for fits, folder in self._scan(folders.pop()):
                seen += 1
                count += fits
                if folder is not None:
                    folders.append(folder)
        return count

    def _scan(self, folder):
        """Yield (whether it fits, its path if it is a folder) of what an ignored folder holds."""
        try:
            keys, _ = self._tree.scan(folder)
        except OSError:
            return
        for key in keys:
            bare, is_directory = _bare(folder + b"/" + key)
            yield self._glob.match(bare, is_directory), bare if is_directory else None
