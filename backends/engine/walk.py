"""The walk of a tree under its ignore rules, in the order of the paths; and the tree on disk.

A tree is any object with these methods; paths are bytes below its root, b"" for the root itself:

- `scan(path)`: the names in a folder, in any order, those of folders with "/" at their end; and
  the kind by name of what is neither folder nor file: "symlink", or another word for what is
  neither read nor entered. `keyed` makes the two of pairs.
- `read(path)`: the chunks of a file's content, in order; a symlink is not followed.
- `above()`: the (lead, content) of each .gitignore above the root, outermost first, up to the top
  of the git work tree; lead is the root's path below that file's folder, ending with "/".

`scan` and `read` raise OSError for what cannot be read.
"""

import bisect
import errno
import os

from backends.engine import ignore, listing
from backends.engine.faults import Fault
from backends.engine.place import O_PATH
from backends.engine.suggest import faults_about

MAX_UNREADABLE = 20
#: What a file says when it was removed, or became something else, after its folder was listed.
GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
#: Linux takes no longer path than 4,095 bytes at once.
_MAX_PATH = 4000
_READ_FLAGS = (
    os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | getattr(os, "O_CLOEXEC", 0)
)
# A scan by name gives names as bytes, twice as fast as a scan of a descriptor gives text.
_HAS_PROC = os.path.isdir("/proc/self/fd")
_FIRST_READ = 1 << 16
_CHUNK = 1 << 20
_LONGEST_RUN = 1000
_SLASH = ord("/")


class Unreadable:
    """The paths that a walk could not read: how many, and the first ones in order."""

    def __init__(self):
        self.paths = []
        self.total = 0

    def add(self, path, error):
        """Note a path, unless the OSError tells that it is simply gone."""
        if error.errno in GONE:
            return
        self.total += 1
        bisect.insort(self.paths, path)
        del self.paths[MAX_UNREADABLE:]


def walk(tree, unreadable, may_hold=None, on_ignored=None, on_rules=None):
    """Yield (path, kind) of all that `runs` yields, one by one; for its arguments see there."""
    for prefix, keys, kinds in runs(tree, unreadable, may_hold, on_ignored, on_rules):
        for key in keys:
            kind = "directory" if key[-1] == _SLASH else kinds.get(key, "file")
            yield prefix + key, kind


def runs(tree, unreadable, may_hold=None, on_ignored=None, on_rules=None):
    """Yield all below the root that no rule leaves out, sorted by path, in runs of neighbours.

    Each run is (prefix, keys, kinds): the path of a folder ("" or ending with "/"), up to 1,000
    names in it in order, and the kind by name of those that are neither folder nor file. A folder's
    name ends with "/" and is the last of its run: what it holds comes next.

    `.git` is always left out. Symlinks are not followed. A folder below the root that cannot be
    read is noted.

    Args:
        tree: See the module.
        unreadable: Unreadable that gets what cannot be read.
        may_hold: Function of a folder's path (without "/" at its end); the folder is entered when
            it returns true. None to enter all.
        on_ignored: Called with the path of what is left out (a folder's ends with "/"), but not
            with what that holds.
        on_rules: Called with the content of each .gitignore below the root; with None for one that
            is no plain file and therefore says nothing.

    Raises:
        OSError: The root cannot be listed.
    """
    rules = ignore.rules_above(tree.above())
    stack = [_Folder(tree, b"", rules, unreadable, on_ignored, on_rules)]
    while stack:
        folder = stack[-1]
        keys = folder.next_run()
        if not keys:
            stack.pop()
            continue
        yield folder.prefix, keys, folder.kinds
        last = keys[-1]
        if last[-1] == _SLASH:
            bare = folder.prefix + last[:-1]
            if may_hold is None or may_hold(bare):
                path = folder.prefix + last
                try:
                    below = _Folder(tree, path, folder.rules, unreadable, on_ignored, on_rules)
                except OSError as error:
                    unreadable.add(bare, error)
                else:
                    stack.append(below)


class _Folder:
    """A folder that the walk is in: what it shows, in order, and the rules that hold in it.

    A folder's name has the "/" that it has in longer paths, so that names sort as paths.
    """

    def __init__(self, tree, prefix, rules, unreadable, on_ignored, on_rules):
        self.prefix = prefix
        keys, self.kinds = tree.scan(prefix[:-1])
        keys.sort()
        if _has(keys, b".gitignore"):
            content = _rules_in(tree, prefix, self.kinds, unreadable)
            if content is not None:
                rules = ignore.IgnoreRules(content, prefix, rules)
            if on_rules is not None:
                on_rules(content)
        self.rules = rules
        if rules or _has(keys, b".git") or _has(keys, b".git/"):
            keys = [key for key in keys if not self._leaves_out(key, on_ignored)]
        self._keys = keys
        # Where the runs end: behind each folder.
        self._ends = [at for at, key in enumerate(keys, 1) if key[-1] == _SLASH]
        self._ends.append(len(keys))
        self._ends.reverse()
        self._at = 0

    def next_run(self):
        """Return the names up to the next folder, with it; empty when there are no more."""
        start = self._at
        while self._ends and self._at == start:
            self._at = self._ends.pop()
        if self._at > start + _LONGEST_RUN:
            self._ends.append(self._at)
            self._at = start + _LONGEST_RUN
        return self._keys[start : self._at]

    def _leaves_out(self, key, on_ignored):
        path = self.prefix + key
        if key[-1] == _SLASH:
            name = key[:-1]
            left_out = name == b".git" or (
                self.rules is not None and self.rules.ignored(path[:-1], name, True)
            )
        else:
            left_out = key == b".git" or (
                self.rules is not None and self.rules.ignored(path, key, False)
            )
        if left_out and on_ignored is not None:
            on_ignored(path)
        return left_out


def _has(keys, key):
    at = bisect.bisect_left(keys, key)
    return at < len(keys) and keys[at] == key


def keyed(entries):
    """Return what `scan` returns, for the (name, kind) of each entry of a folder."""
    keys, kinds = [], {}
    for name, kind in entries:
        if kind == "directory":
            keys.append(name + b"/")
        else:
            keys.append(name)
            if kind != "file":
                kinds[name] = kind
    return keys, kinds


def _rules_in(tree, prefix, kinds, unreadable):
    if b".gitignore" in kinds:
        return None
    try:
        return b"".join(tree.read(prefix + b".gitignore"))
    except OSError as error:
        unreadable.add(prefix + b".gitignore", error)
        return None


class OsTree:
    """The tree below a folder on disk.

    Args:
        place: The Place that the path belongs to.
        path: Absolute bytes path of the folder, or one that begins with "~"; symlinks are followed.

    Raises:
        Fault: It cannot be opened.
    """

    def __init__(self, place, path):
        self._place = place
        self.path = place.expand(path)
        with faults_about(place, path):
            self._root = place.open_directory(path)

    def close(self):
        """Close the root's descriptor."""
        os.close(self._root)

    def scan(self, path):
        """See the module."""
        directory = self._open(path or b".", _READ_FLAGS | os.O_DIRECTORY)
        try:
            if _HAS_PROC:
                return _scan_by_name(b"/proc/self/fd/%d" % directory)
            return keyed(listing.scan(directory))
        finally:
            os.close(directory)

    def read(self, path):
        """See the module."""
        fd = self._open(path, _READ_FLAGS)
        try:
            chunk = os.read(fd, _FIRST_READ)
            while chunk:
                yield chunk
                chunk = os.read(fd, _CHUNK)
        finally:
            os.close(fd)

    def size(self, path):
        """Return the size of a file in bytes, or None when it cannot be told."""
        try:
            fd = self._open(path, O_PATH | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            return os.fstat(fd).st_size
        finally:
            os.close(fd)

    def above(self):
        """See the module."""
        folder = os.path.realpath(self.path)
        found = []
        lead = b""
        while not self._is_top(folder):
            folder, name = os.path.split(folder)
            if not name:
                return []  # in no work tree: only the rules from the root on count
            lead = name + b"/" + lead
            content = self._rules_in(folder)
            if content is not None:
                found.append((lead, content))
        return found[::-1]

    def _is_top(self, folder):
        try:
            self._place.lstat(os.path.join(folder, b".git"))
            return True
        except (OSError, Fault):
            return False

    def _rules_in(self, folder):
        try:
            fd = self._place.open(os.path.join(folder, b".gitignore"), _READ_FLAGS)
        except OSError:
            return None
        with os.fdopen(fd, "rb") as file:
            try:
                return file.read(ignore.MAX_BYTES)
            except OSError:
                return None

    def _open(self, path, flags):
        """Open a path below the root, however long; only its last part can't be a symlink."""
        folder = self._root
        try:
            while len(path) > _MAX_PATH:
                cut = path.rindex(b"/", 0, _MAX_PATH)
                below = self._place.open_below(folder, path[:cut], _READ_FLAGS | os.O_DIRECTORY)
                folder, old = below, folder
                if old != self._root:
                    os.close(old)
                path = path[cut + 1 :]
            return self._place.open_below(folder, path, flags)
        finally:
            if folder != self._root:
                os.close(folder)


def _scan_by_name(folder):
    kinds = {}

    def key(entry):
        if entry.is_dir(follow_symlinks=False):
            return entry.name + b"/"
        kinds[entry.name] = "symlink" if entry.is_symlink() else "other"
        return entry.name

    with os.scandir(folder) as entries:
        # Most are files: they take the short way.
        keys = [
            entry.name if entry.is_file(follow_symlinks=False) else key(entry) for entry in entries
        ]
    return keys, kinds
