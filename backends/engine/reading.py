"""Read files: whole, by lines, or only what tells their kind."""

import hashlib
import os
import stat

from backends.engine.content import image_mime_type
from backends.engine.faults import Fault
from backends.engine.lines import scan_lines
from backends.engine.suggest import faults_about, is_directory

#: Stays in the processor's cache, and is large enough that the loop around it costs nothing.
CHUNK_BYTES = 1 << 18

_KINDS = (
    (stat.S_ISFIFO, "is a FIFO"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISCHR, "is a character device"),
    (stat.S_ISBLK, "is a block device"),
)


def access(place, path):
    """Check that `path` is a regular file, through symlinks, that may be read.

    Raises:
        Fault: As `operations.read.ReadOperations.access` says.
    """
    with faults_about(place, path):
        os.close(open_regular(place, path)[0])


def read_file(place, path, write, limit, *, digest=False, cancelled=None, chunk_bytes=CHUNK_BYTES):
    """Hand the whole content to `write(chunk)`, in chunks.

    Args:
        place: Where `path` is.
        path: Bytes.
        write: Takes each chunk; what it raises ends the reading.
        limit: Most bytes accepted.
        digest: Whether to compute the SHA-256 of what was handed over.
        cancelled: Called once per chunk; a true value ends the reading.
        chunk_bytes: Most bytes of a chunk.

    Returns:
        {"device", "inode", "digest"}; the digest is None unless asked for.

    Raises:
        Fault: "too_large" (before the first chunk when the file tells its size), "cancelled", or
            as `access`.
    """
    with faults_about(place, path):
        fd, status = open_regular(place, path)
    try:
        if status.st_size > limit:
            raise Fault("too_large", path, status.st_size, limit)
        sha = hashlib.sha256() if digest else None
        done = 0
        for chunk in _chunks(place, path, fd, status.st_size, chunk_bytes):
            if cancelled is not None and cancelled():
                raise Fault("cancelled")
            done += len(chunk)
            if done > limit:
                raise Fault("too_large", path, done, limit)
            if sha is not None:
                sha.update(chunk)
            write(chunk)
    finally:
        os.close(fd)
    device, inode = identity(status)
    return {"device": device, "inode": inode, "digest": sha.digest() if sha else None}


def read_lines(place, path, start, max_lines, max_bytes, progress=None, cancelled=None):
    """Return a window of whole lines; see `scan_lines` for arguments and result.

    Raises:
        Fault: "cancelled", or as `access`.
    """
    with faults_about(place, path):
        fd, status = open_regular(place, path)
    try:
        # A file that tells no size (as in /proc) still has its content.
        size = status.st_size or None
        chunks = _chunks(place, path, fd, status.st_size)
        return scan_lines(chunks, start, max_lines, max_bytes, progress, cancelled, size)
    finally:
        os.close(fd)


def detect_image_mime_type(place, path):
    """Return the type of the image at `path`, by its content, or None if it is not one.

    Raises:
        Fault: As `access`.
    """
    with faults_about(place, path):
        fd, _ = open_regular(place, path)
        try:
            return image_mime_type(os.read(fd, 64))
        finally:
            os.close(fd)


def open_regular(place, path):
    """Open a regular file for reading; return (descriptor, status).

    What is something else is not opened: that alone can hang, or rewind a tape.

    Raises:
        OSError: It cannot be opened.
        Fault: "is_directory" or "not_regular".
    """
    refuse_irregular(place, path, place.stat(path))
    # The file may have become a FIFO since.
    fd = place.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        status = os.fstat(fd)
        refuse_irregular(place, path, status)
    except BaseException:
        os.close(fd)
        raise
    return fd, status


def refuse_irregular(place, path, status):
    """Raise a Fault unless `status` is that of a regular file."""
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise is_directory(place, path)
    for is_kind, says in _KINDS:
        if is_kind(mode):
            raise Fault("not_regular", path, says)
    raise Fault("not_regular", path, "")


def identity(status):
    """Return (device, inode) as numbers that fit the wire's signed 64 bits.

    Some file systems number files with hashes that need all 64.
    """
    mask = (1 << 63) - 1
    return status.st_dev & mask, status.st_ino & mask


def _chunks(place, path, fd, size, chunk_bytes=CHUNK_BYTES):
    """Yield the content to its end, whatever size the file told."""
    # One byte more than expected, so that the first read also shows the end of a small file.
    wanted = min(max(size + 1, 4096), chunk_bytes)
    while True:
        with faults_about(place, path):
            chunk = os.read(fd, wanted)
        if not chunk:
            return
        yield chunk
