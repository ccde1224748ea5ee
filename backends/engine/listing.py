"""List folders, and tell what is at a path."""

import errno
import heapq
import os
import stat
import sys

from backends.engine.suggest import fault_about, faults_about, name_order

_KINDS = (
    (stat.S_ISREG, "file"),
    (stat.S_ISDIR, "directory"),
    (stat.S_ISLNK, "symlink"),
    (stat.S_ISFIFO, "fifo"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)
_NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def list_directory(place, path, limit):
    """Return the entries of one folder.

    Args:
        place: Where `path` is.
        path: Bytes; a folder, through symlinks.
        limit: Most entries wanted, the first ones in the order of `name_order`.

    Returns:
        {"total": names in the folder, "entries": [[name, kind, link target or None, broken]]},
        where kind is one of `operations.values.EntryKind`.

    Raises:
        Fault: As `operations.ls.LsOperations.list_directory` says.
    """
    with faults_about(place, path):
        directory = place.open_directory(path)
        try:
            names = list(scan(directory))
            first = heapq.nsmallest(limit, names, key=lambda item: name_order(item[0]))
            entries = [_entry(place, directory, path, name, kind) for name, kind in first]
        finally:
            os.close(directory)
    return {"total": len(names), "entries": entries}


def exists(place, path):
    """Return True if something is at `path`, through symlinks.

    Raises:
        Fault: It cannot be told, as for a folder that may not be entered.
    """
    return _mode(place, path) is not None


def is_directory(place, path):
    """Return True if a folder is at `path`, through symlinks; False for anything else there.

    Raises:
        Fault: As `operations.grep.GrepOperations.is_directory` says.
    """
    with faults_about(place, path):
        return stat.S_ISDIR(place.stat(path).st_mode)


def scan(directory):
    """Yield (name, kind) of each entry of an open folder, in no order; one look each at most."""
    if sys.version_info < (3, 7):  # scandir takes no descriptor there
        for name in os.listdir(directory):
            yield os.fsencode(name), _kind_of_name(directory, name)
        return
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_symlink():
                kind = "symlink"
            elif entry.is_dir(follow_symlinks=False):
                kind = "directory"
            elif entry.is_file(follow_symlinks=False):
                kind = "file"
            else:
                kind = _kind_of_name(directory, entry.name)
            yield os.fsencode(entry.name), kind


def _kind_of_name(directory, name):
    try:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except OSError:  # gone since, or in a folder that may be read but not entered
        return "other"
    for is_kind, kind in _KINDS:
        if is_kind(mode):
            return kind
    return "other"


def _entry(place, directory, folder, name, kind):
    if kind != "symlink":
        return [name, kind, None, False]
    try:
        target = os.readlink(name, dir_fd=directory)
    except OSError:
        return [name, kind, None, False]
    try:
        place.stat_beside(directory, folder, name)
        broken = False
    except OSError as error:
        broken = error.errno in _NOTHING_THERE
    return [name, kind, target, broken]


def _mode(place, path):
    """Return the mode of what is at `path`, or None when nothing is."""
    try:
        return place.stat(path).st_mode
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise fault_about(place, path, error)
