"""The walk of a tree under its ignore rules, in the order of the paths; and the tree on disk.

A tree is any object with these methods; paths are bytes below its root, b"" for the root itself:

- `scan(path)`: the (name, kind) of each entry of a folder, in any order; kind is "directory",
  "file", "symlink", or another word for what is neither read nor entered.
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
    """Yield (path, kind) of all below the root that no rule leaves out, sorted by path.

    A folder's path ends with "/" and comes before what it holds. `.git` is always left out.
    Symlinks are not followed. A folder below the root that cannot be read is noted.

    Args:
        tree: See the module.
        unreadable: Unreadable that gets what cannot be read.
        may_hold: Function of a folder's path (without "/" at its end); the folder is entered when
            it returns true. None to enter all.
        on_ignored: Called with (path, kind) of what is left out, but not of what that holds.
        on_rules: Called with the content of each .gitignore below the root; with None for one that
            is no plain file and therefore says nothing.

    Raises:
        OSError: The root cannot be listed.
    """
    rules = ignore.rules_above(tree.above())
    stack = [(b"", *_enter(tree, b"", rules, unreadable, on_rules))]
    while stack:
        prefix, entries, rules = stack[-1]
        for key, kind in entries:
            path = prefix + key
            if kind == "directory":
                bare, name = path[:-1], key[:-1]
                left_out = name == b".git" or (rules and rules.ignored(bare, name, True))
            else:
                left_out = key == b".git" or (rules and rules.ignored(path, key, False))
            if left_out:
                if on_ignored is not None:
                    on_ignored(path, kind)
                continue
            yield path, kind
            if kind == "directory" and (may_hold is None or may_hold(bare)):
                try:
                    stack.append((path, *_enter(tree, path, rules, unreadable, on_rules)))
                    break
                except OSError as error:
                    unreadable.add(bare, error)
        else:
            stack.pop()


def _enter(tree, prefix, rules, unreadable, on_rules):
    """Return (iterator of sorted entries, rules that hold) for a folder.

    A folder's name is given with the "/" that it has in longer paths, so that names sort as paths.
    """
    entries = [
        (name + b"/", kind) if kind == "directory" else (name, kind)
        for name, kind in tree.scan(prefix[:-1])
    ]
    entries.sort()
    at = bisect.bisect_left(entries, (b".gitignore", ""))
    if entries[at : at + 1] and entries[at][0] == b".gitignore":
        content = _rules_in(tree, prefix, entries[at][1], unreadable)
        if content is not None:
            rules = ignore.IgnoreRules(content, prefix, rules)
        if on_rules is not None:
            on_rules(content)
    return iter(entries), rules


def _rules_in(tree, prefix, kind, unreadable):
    if kind != "file":
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
            return list(listing.scan(directory))
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
            return os.stat(path, dir_fd=self._root, follow_symlinks=False).st_size
        except OSError:
            return None

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
                below = os.open(path[:cut], os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
                folder, old = below, folder
                if old != self._root:
                    os.close(old)
                path = path[cut + 1 :]
            return os.open(path, flags, dir_fd=folder)
        finally:
            if folder != self._root:
                os.close(folder)


def _scan_by_name(folder):
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                kind = "file"
            elif entry.is_dir(follow_symlinks=False):
                kind = "directory"
            else:
                kind = "symlink" if entry.is_symlink() else "other"
            found.append((entry.name, kind))
    return found
