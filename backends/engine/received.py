"""Hold content that has been received in full but is not in place yet, and write it in place."""

import binascii
import errno
import os
import stat
from contextlib import suppress

from backends.engine.faults import Fault
from backends.engine.place import O_PATH

#: Begins the name of every temporary file; only a SIGKILL or a power cut can leave one behind.
TEMPORARY_PREFIX = b".remotehands-"

_CHUNK_BYTES = 1 << 20
_IN_MEMORY_BYTES = 8 << 20
_SPOOL_FOLDERS = (b"/tmp", b"/var/tmp", b"/dev/shm")
_NO_FALLOCATE = (
    errno.EOPNOTSUPP,
    errno.ENOTSUP,
    errno.ENOSYS,
    errno.EINVAL,
    errno.ENODEV,
    errno.EBADF,
)


class Temporary:
    """A file beside the one to replace, to be renamed over it.

    Args:
        folder: Descriptor of the folder.
        mode: Mode before the umask.
    """

    def __init__(self, folder, mode):
        self._folder = folder
        self.size = 0
        self.fd, self._name = create_temporary(folder, mode)

    def write(self, chunk):
        """Add content."""
        write_all(self.fd, chunk)
        self.size += len(chunk)

    def chunks(self):
        """Yield the content from the start."""
        return _read_back(self.fd)

    def rename(self, name):
        """Put the file in the place of `name` in its folder."""
        os.rename(self._name, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._name = None

    def close(self):
        """Forget the file; remove it unless it was renamed."""
        os.close(self.fd)
        if self._name is not None:
            # It may be gone, or its folder take no changes any more: nothing is left to do then.
            with suppress(OSError):
                os.unlink(self._name, dir_fd=self._folder)


class Spool:
    """Content in memory while it is small, else in a file without a name.

    Args:
        folder: Descriptor of the folder of the target, the last resort for that file.
    """

    def __init__(self, folder):
        self._folder = folder
        self._parts = []
        self._fd = None
        self.size = 0

    def write(self, chunk):
        """Add content."""
        self.size += len(chunk)
        if self._fd is None:
            self._parts.append(chunk)
            if self.size <= _IN_MEMORY_BYTES:
                return
            self._fd = _open_unnamed(self._folder)
            chunk = b"".join(self._parts)
            self._parts = []
        write_all(self._fd, chunk)

    def chunks(self):
        """Yield the content from the start."""
        return iter(self._parts) if self._fd is None else _read_back(self._fd)

    def close(self):
        """Forget the content."""
        self._parts = []
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def overwrite(folder, name, status, content, path, durable):
    """Write `content` over the existing file itself, room for it being reserved first.

    Args:
        folder: Descriptor of the folder.
        name: The file's name in it.
        status: What the file was when the decision was made.
        content: Has `size` and `chunks()`, and is all there: nothing is waited for.
        path: Names the file in a Fault.
        durable: Sync it before returning.

    Raises:
        OSError: It cannot be opened for writing, or there is no room; nothing was changed.
        Fault: "changed" when the name leads to another file by now.
    """
    try:
        fd = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:  # it has become a symlink since
            raise Fault("changed", path)
        raise
    try:
        now = os.fstat(fd)
        if (now.st_dev, now.st_ino) != (status.st_dev, status.st_ino):
            raise Fault("changed", path)
        _reserve(fd, now.st_size, content.size)
        os.lseek(fd, 0, os.SEEK_SET)
        for chunk in content.chunks():
            write_all(fd, chunk)
        os.ftruncate(fd, content.size)
        _restore_mode(fd, stat.S_IMODE(now.st_mode))
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)


def create_temporary(folder, mode):
    """Create a new hidden file with a name that cannot be guessed; return (descriptor, name)."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    while True:
        name = TEMPORARY_PREFIX + binascii.hexlify(os.urandom(8))
        try:
            return os.open(name, flags, mode, dir_fd=folder), name
        except FileExistsError:
            pass


def write_all(fd, data):
    """Write all of `data`."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _read_back(fd):
    position = 0
    while True:
        chunk = os.pread(fd, _CHUNK_BYTES, position)
        if not chunk:
            return
        position += len(chunk)
        yield chunk


def _open_unnamed(folder):
    """Return a descriptor of a file that is in no folder any more."""
    told = os.fsencode(os.environ.get("TMPDIR", ""))
    for place in (told, *_SPOOL_FOLDERS):
        if not place.startswith(b"/"):
            continue
        try:
            spool_folder = os.open(place, O_PATH | os.O_DIRECTORY)
        except OSError:
            continue
        try:
            return _create_unnamed(spool_folder)
        except OSError:
            continue
        finally:
            os.close(spool_folder)
    return _create_unnamed(folder)


def _create_unnamed(folder):
    fd, name = create_temporary(folder, 0o600)
    os.unlink(name, dir_fd=folder)
    return fd


def _reserve(fd, old_size, new_size):
    """Make sure that writing `new_size` bytes will find room, or raise with nothing changed."""
    if not os.fstatvfs(fd).f_blocks:
        return  # as /proc and /sys, where a write is a message: nothing may be sent before it
    try:
        if new_size and not _fallocate(fd, new_size):
            os.lseek(fd, 0, os.SEEK_END)
            for at in range(old_size, new_size, _CHUNK_BYTES):
                write_all(fd, bytes(min(_CHUNK_BYTES, new_size - at)))
    except OSError:
        os.ftruncate(fd, old_size)
        raise


def _fallocate(fd, size):
    """Reserve `size` bytes, holes included; return False where the file system cannot."""
    if not hasattr(os, "posix_fallocate"):
        return False
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as error:
        if error.errno in _NO_FALLOCATE:
            return False
        raise
    return True


def _restore_mode(fd, mode):
    """Give back the setuid and setgid bits, which writing takes away from most users."""
    if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
        with suppress(OSError):
            os.fchmod(fd, mode)
