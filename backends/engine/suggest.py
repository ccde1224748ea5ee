"""What an error about a path can say to help: the closest names, what a folder holds."""

import errno
import os
import stat
from contextlib import suppress

from backends.engine.faults import Fault, fault_from_os_error

try:
    import unicodedata
except ImportError:  # some minimal Pythons
    unicodedata = None

#: Names that a "not_found" fault carries at most.
MAX_CLOSEST = 8
#: Names that an "is_directory" fault carries at most.
MAX_HELD = 10
# Bounds the time spent on an error in a folder with millions of names.
_MAX_SCANNED = 20000
# Edit distance is exact but slow; shared pairs of letters choose who gets that far.
_MAX_MEASURED = 32
_MAX_MEASURED_CHARS = 80

_LOOKALIKES = {
    ord("\u2018"): "'",
    ord("\u2019"): "'",
    ord("\u201c"): '"',
    ord("\u201d"): '"',
    ord("\u2013"): "-",
    ord("\u2014"): "-",
}


class faults_about:  # noqa: N801 - used as a function; a generator costs three times as much
    """Turn an OSError in the block into the Fault about `path` that says most."""

    def __init__(self, place, path):
        self._place = place
        self._path = path

    def __enter__(self):
        """Do nothing."""

    def __exit__(self, _kind, error, _traceback):
        """Raise the Fault, if there was an OSError."""
        if isinstance(error, OSError):
            raise fault_about(self._place, self._path, error)


def fault_about(place, path, error):
    """Return the Fault for an OSError about `path`, filled with what a look around tells."""
    fault = fault_from_os_error(error, path)
    if fault.code == "not_found":
        return not_found(place, path)
    if fault.code == "is_directory":
        return is_directory(place, path)
    if fault.code == "not_directory":
        return Fault("not_directory", path, _file_part(place, path))
    if error.errno == errno.ELOOP:
        return Fault("path", path, "too many levels of symbolic links")
    if error.errno == errno.ENAMETOOLONG:
        return Fault("path", path, "the name is too long for the target's file system")
    return fault


def not_found(place, path):
    """Return a "not_found" Fault with the nearest folder and the closest names in it.

    The folder is the beginning of `path` as it was given. A broken symlink where the missing name
    would be stands first, as "name@ -> target".
    """
    folder, missing = path.rstrip(b"/"), b""
    while folder not in (b"", b"~"):
        folder, _, missing = folder.rpartition(b"/")
        try:
            directory = place.open_directory(folder or b"/")
        except (OSError, Fault):
            if _exists(place, folder or b"/"):
                break  # it may not be read, so nothing can be said about what it holds
            continue
        try:
            names = _closest_in(place, directory, folder, missing)
            return Fault("not_found", path, folder or b"/", names)
        except OSError:
            break
        finally:
            os.close(directory)
    return Fault("not_found", path, None, [])


def is_directory(place, path):
    """Return an "is_directory" Fault with the first names of the folder and their number."""
    try:
        directory = place.open_directory(path)
    except (OSError, Fault):
        return Fault("is_directory", path, [], None)
    try:
        names = names_in(directory)
        shown = sorted(names, key=name_order)[:MAX_HELD]
        marked = [_marked(place, directory, path, name) for name in shown]
        return Fault("is_directory", path, marked, len(names))
    except OSError:
        return Fault("is_directory", path, [], None)
    finally:
        os.close(directory)


def names_in(directory):
    """Return the names (bytes) in an open folder, in no order."""
    return [os.fsencode(name) for name in os.listdir(directory)]


def name_order(name):
    """Return what names are sorted by everywhere: without regard to case, then by code point.

    Args:
        name: bytes, or text in which lone surrogates stand for bytes that are not UTF-8.
    """
    text = name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name
    return text.casefold(), text


def closest(name, names, limit=MAX_CLOSEST):
    """Return the `limit` of `names` that are most like `name`, the most alike first.

    Args:
        name: What is missing; bytes or text.
        names: What there is, of the same type; a "/" at the end is not compared.
        limit: Most names wanted.
    """
    wanted = _folded(name)
    wanted_pairs = _pairs(wanted)
    scored = []
    for candidate in names:
        folded = _folded(candidate)
        pairs = _pairs(folded)
        common = len(wanted_pairs & pairs)
        scored.append((-2.0 * common / (len(wanted_pairs) + len(pairs)), candidate, folded))
    scored.sort(key=lambda item: (item[0], name_order(item[1])))
    measured = max(limit, _MAX_MEASURED)
    best = [
        (dice - _likeness(wanted, folded), name_order(candidate), candidate)
        for dice, candidate, folded in scored[:measured]
    ]
    best.sort()
    return [candidate for _, _, candidate in best[:limit]]


def _closest_in(place, directory, folder, missing):
    names = names_in(directory)[:_MAX_SCANNED]
    broken = []
    if missing in names:
        names.remove(missing)
        with suppress(OSError):  # it may have appeared since
            broken = [missing + b"@ -> " + os.readlink(missing, dir_fd=directory)]
    found = closest(missing, names, MAX_CLOSEST - len(broken))
    return broken + [_marked(place, directory, folder, name) for name in found]


def _marked(place, directory, folder, name):
    """Return the name, with "/" after it if it is a folder."""
    try:
        status = place.stat_beside(directory, folder, name)
    except (OSError, Fault):
        return name
    return name + b"/" if stat.S_ISDIR(status.st_mode) else name


def _file_part(place, path):
    """Say which part of `path` is a file, or "" when that is the whole of it."""
    at = path.find(b"/", 1)
    while at != -1:
        part = path[:at]
        try:
            if not stat.S_ISDIR(place.stat(part).st_mode):
                return "%s is a file, not a folder" % part.decode("utf-8", "backslashreplace")
        except (OSError, Fault) as error:
            if getattr(error, "errno", None) != errno.EXDEV:  # above a root folder
                break
        at = path.find(b"/", at + 1)
    return ""


def _exists(place, path):
    try:
        place.stat(path)
    except (OSError, Fault):
        return False
    return True


def _folded(name):
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
    text = text.rstrip("/")
    if unicodedata is not None:
        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.translate(_LOOKALIKES).casefold().split())


def _pairs(text):
    framed = "\0" + text + "\0"
    return {framed[at : at + 2] for at in range(len(framed) - 1)}


def _likeness(one, other):
    """Return 1.0 for equal texts down to 0.0, by edit distance with swapped neighbours."""
    one = one[:_MAX_MEASURED_CHARS]
    other = other[:_MAX_MEASURED_CHARS]
    longest = max(len(one), len(other))
    if not longest:
        return 1.0
    before, row = [], list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        last, before, row = before, row, [i]
        for j, right in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (left != right))
            if i > 1 and j > 1 and left == other[j - 2] and one[i - 2] == right:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return 1.0 - float(row[-1]) / longest
