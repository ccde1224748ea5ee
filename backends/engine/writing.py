"""Replace whole files, all or nothing, and make folders."""

import errno
import hashlib
import os
import stat
import threading
from contextlib import contextmanager

from backends.engine.attributes import keep_attributes
from backends.engine.faults import Fault
from backends.engine.place import MAX_LINKS
from backends.engine.reading import CHUNK_BYTES, identity, refuse_irregular
from backends.engine.received import Spool, Temporary, overwrite
from backends.engine.suggest import faults_about, is_directory

_OPEN_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
# A bind-mounted file cannot be renamed over; some layered file systems say EXDEV instead.
_MOUNTED = (errno.EBUSY, errno.EXDEV)


class BytesContent:
    """Content that is in memory already."""

    def __init__(self, data):
        self.size = len(data)
        self._data = data

    def chunks(self):
        """Yield the content."""
        if self._data:
            yield self._data


def replace_file(place, path, content, *, make_parents=False, expected=None, durable=False):
    """Make `content` the whole content of the file at `path`, all or nothing.

    Args:
        place: Where `path` is.
        path: Bytes.
        content: Has `size` (bytes in all) and `chunks()`, an iterator of bytes that may block,
            and may raise to abort: then nothing is changed.
        make_parents: Make missing folders above it first.
        expected: None, or [device, inode, digest] that the file must still have.
        durable: Sync the file and its folder before returning.

    Returns:
        {"created", "atomic", "reason"}, as `operations.values.WriteResult`.

    Raises:
        Fault: As `operations.write.ReplaceOperations.replace_file` says; "bad_request" when
            `content` is not as long as it said.
    """
    with faults_about(place, path):
        for _ in range(MAX_LINKS):
            folder, name = _resolve(place, path, make_parents, expected)
            try:
                first = _look(folder, name)
                # A symlink can only be there if it came after the path was followed.
                if first is None or not stat.S_ISLNK(first.st_mode):
                    replacement = _Replacement(place, path, folder, name, expected, durable)
                    return replacement.run(content, first)
            finally:
                os.close(folder)
        raise Fault("changed", path)


def make_directory(place, path):
    """Make a folder and those above it; an existing folder is fine.

    Raises:
        Fault: As `operations.write.WriteOperations.make_directory` says.
    """
    with faults_about(place, path):
        _make_folders(place, place.expand(path))


def _resolve(place, path, make_parents, expected):
    """Return (folder's descriptor, name) of the file that `path` leads to."""
    if place.expand(path).endswith(b"/"):
        raise is_directory(place, path)
    try:
        folder, name = place.follow(path)
    except FileNotFoundError:
        if expected is not None:
            raise Fault("changed", path)
        if not make_parents:
            raise
        _make_folders(place, place.expand(path).rpartition(b"/")[0])
        folder, name = place.follow(path)
    if name in (b"", b".", b".."):
        os.close(folder)
        raise is_directory(place, path)
    return folder, name


def _look(folder, name):
    """Return the status of the name itself, or None when nothing is there."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _make_folders(place, path):
    """Make the folder at an absolute path and those above it."""
    path = path.rstrip(b"/")
    missing = []
    while path:
        try:
            status = place.stat(path)
        except FileNotFoundError:
            missing.append(path)
            path = path.rpartition(b"/")[0].rstrip(b"/")
            continue
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        break
    for folder in reversed(missing):
        try:
            place.mkdir(folder)
        except FileExistsError:  # somebody else made it, or it is a broken symlink
            if not stat.S_ISDIR(place.stat(folder).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))


class _Replacement:
    """One file about to be replaced.

    Everything is done relative to the folder's descriptor and never through a symlink in the
    last place, so that whatever the path is changed to meanwhile, nothing else is written.
    """

    def __init__(self, place, path, folder, name, expected, durable):
        self._place = place
        self._path = path
        self._folder = folder
        self._name = name
        self._expected = expected
        self._durable = durable

    def run(self, content, first):
        """Receive the content, then put it in place; `first` is the status of what is there."""
        if first is not None:
            refuse_irregular(self._place, self._path, first)
            self._check_writable()
        self._check_identity(first)
        received, reason = self._open_received(first)
        try:
            self._receive(content, received)
            with self._locked() as status:
                self._check_identity(status)
                if reason is None:
                    return self._rename(received, status, first)
                return self._overwrite(received, status, reason)
        finally:
            received.close()

    def _check_writable(self):
        """Raise unless the existing file may be written: a rename would not ask."""
        effective = os.access in os.supports_effective_ids
        if os.access(self._name, os.W_OK, dir_fd=self._folder, effective_ids=effective):
            return
        os.close(os.open(self._name, os.O_WRONLY | _OPEN_FLAGS, dir_fd=self._folder))

    def _check_identity(self, status):
        if self._expected is None:
            return
        if status is None or list(identity(status)) != list(self._expected[:2]):
            raise Fault("changed", self._path)

    def _open_received(self, first):
        """Return (where the content goes, reason to write in place or None)."""
        if first is not None and first.st_nlink > 1:
            return Spool(self._folder), "hard_links"
        try:
            # What replaces a private file must be private from its first byte on; a new file
            # gets its mode from the system, which knows the umask and the folder's defaults.
            return Temporary(self._folder, 0o666 if first is None else 0o600), None
        except OSError as error:
            # /proc says that there is no such file when it is asked for a new one.
            if first is None or error.errno not in (*_REFUSED, errno.ENOENT):
                raise
            return Spool(self._folder), "folder_not_writable"

    def _receive(self, content, received):
        for chunk in content.chunks():
            received.write(chunk)
        if received.size != content.size:
            reason = "%d bytes of content were announced, %d came" % (content.size, received.size)
            raise Fault("bad_request", reason)

    @contextmanager
    def _locked(self):
        """Hold the lock of the file that is there now; give its status, None for no file."""
        while True:
            before = _look(self._folder, self._name)
            with _file_lock(self._lock_key(before)):
                status = _look(self._folder, self._name)
                if self._lock_key(status) == self._lock_key(before):
                    yield status
                    return

    def _lock_key(self, status):
        if status is None:
            return (*identity(os.fstat(self._folder)), self._name)
        return identity(status)

    def _rename(self, temporary, status, first):
        """Put the temporary file in place, or write in place where that would change the file."""
        reason = self._prepare(temporary, status, first)
        if reason is None:
            try:
                with _synced_folder(self._folder if self._durable else None):
                    temporary.rename(self._name)
                return {"created": status is None, "atomic": True, "reason": None}
            except OSError as error:
                if status is None or error.errno not in _MOUNTED + _REFUSED:
                    raise
                reason = "mount_point" if error.errno in _MOUNTED else "folder_not_writable"
        return self._overwrite(temporary, status, reason)

    def _prepare(self, temporary, status, first):
        """Give the temporary file all but its name; return a reason why that cannot be."""
        if status is not None and stat.S_ISREG(status.st_mode):
            if status.st_nlink > 1:
                return "hard_links"
            fd = self._open_existing(status)
            try:
                self._check_digest(fd)
                reason = keep_attributes(fd, temporary.fd)
            finally:
                os.close(fd)
            if reason is not None:
                return reason
        elif first is not None:  # it went away meanwhile, and comes back as it was
            os.fchmod(temporary.fd, stat.S_IMODE(first.st_mode))
        if self._durable:
            os.fsync(temporary.fd)
        else:
            os.close(os.dup(temporary.fd))  # NFS tells of a full disk when a descriptor is closed
        return None

    def _overwrite(self, received, status, reason):
        if status is None or not stat.S_ISREG(status.st_mode):
            raise Fault("changed", self._path)
        if self._expected is not None:
            fd = self._open_existing(status)
            try:
                self._check_digest(fd)
            finally:
                os.close(fd)
        overwrite(self._folder, self._name, status, received, self._path, self._durable)
        return {"created": False, "atomic": False, "reason": reason}

    def _open_existing(self, status):
        """Open the file with this status: for reading, or writing where only that is allowed."""
        try:
            fd = os.open(self._name, os.O_RDONLY | _OPEN_FLAGS, dir_fd=self._folder)
        except PermissionError:
            if self._expected is not None:
                raise
            fd = os.open(self._name, os.O_WRONLY | _OPEN_FLAGS, dir_fd=self._folder)
        except OSError as error:
            if error.errno == errno.ELOOP:  # it has become a symlink since
                raise Fault("changed", self._path)
            raise
        if identity(os.fstat(fd)) != identity(status):
            os.close(fd)
            raise Fault("changed", self._path)
        return fd

    def _check_digest(self, fd):
        if self._expected is None:
            return
        sha = hashlib.sha256()
        while True:
            chunk = os.read(fd, CHUNK_BYTES)
            if not chunk:
                break
            sha.update(chunk)
        if sha.digest() != bytes(self._expected[2]):
            raise Fault("changed", self._path)


@contextmanager
def _synced_folder(folder):
    """Make what the block does to names in a folder survive a power cut; None does nothing."""
    if folder is None:
        yield
        return
    # Opened first: a folder that may not be read must be an error before anything has changed.
    fd = os.open(b".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
    try:
        yield
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that has nothing to sync
            raise
    finally:
        os.close(fd)


# One lock per file that is being replaced right now: key -> [lock, how many want it].
_locks = {}
_locks_guard = threading.Lock()


@contextmanager
def _file_lock(key):
    with _locks_guard:
        entry = _locks.setdefault(key, [threading.Lock(), 0])
        entry[1] += 1
    try:
        with entry[0]:
            yield
    finally:
        with _locks_guard:
            entry[1] -= 1
            if not entry[1]:
                del _locks[key]
