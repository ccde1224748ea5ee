"""Files for output that is too long to show: where they are, who may read them, when they go."""

import errno
import fcntl
import os
import re
import stat
import time

#: Seconds after which a session's files may be swept, once nobody holds the session.
KEPT_S = 24 * 3600
_ATTEMPTS = 3
_KEPT = re.compile(rb"/remotehands-[0-9]+(-[0-9a-f]{16})?/[0-9a-f]{16}/output-[0-9]+\.log\Z")
#: Of a memory limit, what files in memory may take: what is over the limit gets processes killed.
_SHARE_OF_MEMORY = 4
_MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class KeptOutput:
    """The folder of one session's kept output; made when it is first needed.

    Args:
        stays: Leave the files for KEPT_S instead of removing them in `close`.
        on_folder: Called with the folder's path when it has been made.
    """

    def __init__(self, stays=False, on_folder=None):
        self._stays = stays
        self._on_folder = on_folder
        self._path = None
        self._fd = None
        self._count = 0
        self._room = None

    def claim(self, size):
        """Count bytes that are about to be kept.

        Raises:
            OSError: They may not: the files are in memory, which has a limit.
        """
        if self._room is None:
            return
        if size > self._room:
            raise OSError(errno.ENOSPC, "kept output is in memory here, and has used up its share")
        self._room -= size

    def give_back(self, size):
        """Take back what was counted for a file that was removed."""
        if self._room is not None:
            self._room += size

    def create(self):
        """Make a new file; return its descriptor and its path (bytes).

        Raises:
            OSError: No folder for it can be written.
        """
        if self._fd is not None and not os.fstat(self._fd).st_nlink:
            # A command has cleaned up /tmp, and this session's folder with it.
            os.close(self._fd)
            self._fd = None
        if self._fd is None:
            self._open()
        self._count += 1
        name = b"output-%d.log" % self._count
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, 0o600, dir_fd=self._fd), self._path + b"/" + name

    def close(self):
        """Remove the files, unless they stay; let go of the session."""
        if self._fd is None:
            return
        if not self._stays:
            remove(self._path)
        os.close(self._fd)  # which ends the lock
        self._fd = None

    def _open(self):
        failure = OSError(errno.ENOENT, "no folder for temporary files")
        for parent in _parents():
            try:
                self._path = _make_session(parent)
            except OSError as error:
                failure = error
                continue
            self._fd = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            # Held for as long as this process lives, seen across containers that share the folder.
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._room = _memory_for_files() if _is_in_memory(self._path) else None
            if self._on_folder is not None:
                self._on_folder(self._path)
            return
        raise failure


def open_kept(path, flags):
    """Open a kept output of this user by its path; None when it is not one.

    Raises:
        OSError: It is one, and cannot be opened.
    """
    if flags & (os.O_WRONLY | os.O_RDWR) or not _KEPT.search(path):
        return None
    base, session, name = path.rsplit(b"/", 2)
    if not _is_private(base):
        return None
    folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(folder).st_uid != os.geteuid():
            return None  # swapped since
        # A session's folder and its files are this user's alone: nobody puts links into them.
        return os.open(session + b"/" + name, flags | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)


def remove(folder):
    """Remove a session's folder with its files, and the folder above it if that is empty now."""
    try:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
        os.rmdir(os.path.dirname(folder))
    except OSError:
        pass  # gone already, or another session is beside it


def _is_in_memory(path):
    """Tell whether a path is on a file system that takes memory, as a container's /tmp may be."""
    longest, kind = b"", b""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            for line in file:
                mount, _, rest = line.partition(b" - ")
                point = mount.split()[4]
                if (path + b"/").startswith(point.rstrip(b"/") + b"/") and point >= longest:
                    longest, kind = point, rest.split()[0]
    except (OSError, IndexError):
        return False
    return kind in (b"tmpfs", b"ramfs")


def _memory_for_files():
    """Return how many bytes of the memory that this process may take can go to files, or None."""
    for path in _MEMORY_LIMITS:
        try:
            with open(path) as file:
                limit = file.read(32).strip()
        except OSError:
            continue
        # Without a limit the first says "max", the second a number beyond all memory.
        if limit.isdigit() and len(limit) < 16:
            return int(limit) // _SHARE_OF_MEMORY
    return None


def _parents():
    configured = os.environb.get(b"TMPDIR")
    folders = [configured] if configured and configured.startswith(b"/") else []
    return folders + [folder for folder in (b"/tmp", b"/var/tmp") if folder not in folders]


def _make_session(parent):
    """Make a folder for this session below `parent`, which anybody may write to."""
    base = os.path.join(parent, b"remotehands-%d" % os.geteuid())
    session = os.urandom(8).hex().encode("ascii")
    for _ in range(_ATTEMPTS):
        _make_private(base)
        if not _is_private(base):
            # Somebody else was there first: take a name that nobody can have guessed.
            base += b"-" + session
            continue
        _sweep(base)
        try:
            path = os.path.join(base, session)
            os.mkdir(path, 0o700)
            return path
        except FileNotFoundError:
            pass  # the last session there has just removed it
    raise OSError(errno.EACCES, "no private folder in " + os.fsdecode(parent))


def _make_private(path):
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass


def _is_private(path):
    """Tell whether this is a folder (no symlink) that belongs to this user alone."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    mine = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return mine and not stat.S_IMODE(status.st_mode) & 0o077


def _sweep(base):
    """Remove sessions that are old and that no process holds."""
    for name in os.listdir(base):
        path = os.path.join(base, name)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            if time.time() - os.fstat(fd).st_mtime > KEPT_S:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(path)
        except OSError:
            pass  # a living session
        finally:
            os.close(fd)
