"""A Place that nothing leads out of: every path is resolved below one folder, when it is used.

The kernel does it in one call where it has openat2 (Linux 5.6); elsewhere, and for what that call
refuses too eagerly (absolute symlinks to what is inside), folder after folder is opened without
following links. Either way what is used is what was looked at, whatever is swapped meanwhile.

What another file system or a bind mount shows below the root counts as outside, as do the links of
/proc. A file that has a second name outside (a hard link) cannot be told from any other.
"""

import errno
import os
import stat
import struct

from backends.engine.kept import open_kept
from backends.engine.place import MAX_LINKS, O_PATH, Place, read_link

_OPENAT2 = 437  # its number on every architecture of Linux but alpha
_RESOLVE_NO_XDEV, _RESOLVE_NO_MAGICLINKS = 0x01, 0x02
_RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH = 0x04, 0x08
_BENEATH = _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS | _RESOLVE_NO_XDEV
_FOLDER = O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Not a folder, or not to be followed: it may be a link.
_MAYBE_LINK = (errno.ENOTDIR, errno.ELOOP)
_NOT_LIKE_THIS = (
    errno.EXDEV, errno.EAGAIN, errno.ELOOP, errno.ENOSYS, errno.EPERM, errno.EINVAL,
)  # fmt: skip
_ATTEMPTS = 8
#: Why a confined target runs no command.
NO_COMMANDS = (
    "file tools are confined to a root folder here, and nothing would confine a command; it takes "
    "unconfined_commands=True to run some all the same"
)


def outside_text(root):
    """Return what is said of a path that leads out of the root folder (bytes)."""
    says = "it leads out of the root folder %s, and nothing outside may be used"
    return says % root.decode("utf-8", "backslashreplace")


def open_place(root=None, with_kept=False):
    """Return the Place of the whole machine, or that of one folder.

    Args:
        root: Absolute bytes path of the folder, or None.
        with_kept: See `ConfinedPlace`.

    Raises:
        OSError: The folder cannot be opened.
    """
    return Place() if root is None else ConfinedPlace(root, with_kept=with_kept)


class ConfinedPlace(Place):
    """The tree below one folder; paths are still absolute ones of the whole machine.

    Methods raise OSError with EXDEV for what is outside.

    Args:
        root: Absolute bytes path of the folder; symlinks in it are followed, now.
        with_kept: Let the kept output of commands be read as well.
    """

    def __init__(self, root, with_kept=False):
        super().__init__(root)
        self._root = root
        # The root goes by the name that it was given and by its real one.
        self._names = [_parts(root), _parts(os.path.realpath(root))]
        self._with_kept = with_kept
        self._mount = _mount(self._fd)

    def open(self, path, flags, mode=0o666):
        """See `Place`."""
        path = self.expand(path)
        try:
            parts = self._below(path)
        except OSError:
            fd = open_kept(path, flags) if self._with_kept else None
            if fd is None:
                raise
            return fd
        fd = _openat2(self._fd, b"/".join(parts) or b".", flags, _BENEATH)
        if fd is not None:
            return fd
        for _ in range(_ATTEMPTS):
            folder, name = self._resolve(parts, follow=not flags & os.O_NOFOLLOW)
            try:
                fd = os.open(name or b".", flags | os.O_NOFOLLOW, mode, dir_fd=folder)
            except OSError as error:
                if error.errno != errno.ELOOP or flags & os.O_NOFOLLOW:
                    raise
                continue
            finally:
                os.close(folder)
            # A link can only be there if it came after the path was followed. O_PATH opens it.
            if not flags & os.O_NOFOLLOW and stat.S_ISLNK(os.fstat(fd).st_mode):
                os.close(fd)
                continue
            return self._checked(fd)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def stat(self, path):
        """See `Place`."""
        return self._status(path, O_PATH)

    def lstat(self, path):
        """See `Place`."""
        return self._status(path, O_PATH | os.O_NOFOLLOW)

    def stat_beside(self, directory, folder, name):
        """See `Place`."""
        return self.stat(folder.rstrip(b"/") + b"/" + name)

    def mkdir(self, path):
        """See `Place`."""
        folder, name = self._resolve(self._below(path), follow=False)
        try:
            os.mkdir(name or b".", dir_fd=folder)
        finally:
            os.close(folder)

    def follow(self, path):
        """See `Place`."""
        return self._resolve(self._below(path), follow=True)

    def open_below(self, directory, path, flags):
        """See `Place`."""
        fd = _openat2(directory, path, flags, _BENEATH | _RESOLVE_NO_SYMLINKS)
        if fd is not None:
            return fd
        folder = os.dup(directory)
        try:
            *above, name = path.split(b"/")
            for part in above:
                old, folder = folder, self._checked(os.open(part, _FOLDER, dir_fd=folder))
                os.close(old)
            return self._checked(os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder))
        finally:
            os.close(folder)

    def _status(self, path, flags):
        fd = self.open(path, flags)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def _below(self, path):
        """Return the parts of a path from the root on."""
        parts = _parts(self.expand(path))
        for name in self._names:
            if parts[: len(name)] == name:
                return parts[len(name) :]
        raise self._outside()

    def _resolve(self, parts, follow):
        """Return (descriptor, name) of the folder that holds what the parts lead to.

        The name is b"" for the folder itself; what has it need not exist. With `follow`, it is no
        symlink. The caller closes the descriptor.
        """
        # The folders from the root to where we are: ".." goes back to one that was opened, so that
        # a folder which somebody moves away meanwhile leads nowhere new.
        opened = [os.dup(self._fd)]
        pending = parts[::-1]
        links = 0
        try:
            while pending:
                part = pending.pop()
                if part == b".":
                    continue
                if part == b"..":
                    os.close(opened.pop())
                    if not opened:
                        raise self._outside()
                    continue
                if pending:
                    try:
                        opened.append(self._checked(os.open(part, _FOLDER, dir_fd=opened[-1])))
                        continue
                    except OSError as error:
                        if error.errno not in _MAYBE_LINK:
                            raise
                    text = read_link(opened[-1], part)
                    if text is None:
                        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
                else:
                    text = read_link(opened[-1], part) if follow else None
                    if text is None:
                        return opened.pop(), part
                links += 1
                if links > MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                if text.startswith(b"/"):
                    pending += self._below(text)[::-1]
                    while len(opened) > 1:
                        os.close(opened.pop())
                else:
                    pending += _parts(text)[::-1]
            return opened.pop(), b""
        finally:
            for fd in opened:
                os.close(fd)

    def _outside(self):
        return OSError(errno.EXDEV, outside_text(self._root))

    def _checked(self, fd):
        """Return the descriptor, unless it is on another mount than the root."""
        if self._mount is not None and _mount(fd) != self._mount:
            os.close(fd)
            raise self._outside()
        return fd


def _parts(path):
    """Return the parts of a path; a "/" at its end is a last part ".", as it wants a folder."""
    parts = [part for part in path.split(b"/") if part]
    return [*parts, b"."] if path.endswith(b"/") and parts else parts


def _mount(fd):
    """Return the number of the mount that a descriptor is on, or None where none is told."""
    try:
        with open("/proc/self/fdinfo/%d" % fd, "rb") as file:
            for line in file:
                if line.startswith(b"mnt_id:"):
                    return int(line.split()[1])
    except OSError:
        pass
    return None


def _find_openat2():
    """Return a function that opens a path below a folder; it returns None for "not like this".

    That is so where the kernel does not know how, for what it says is outside (and so it says of
    more than is), and for what others are renaming: `_resolve` has the last word then.
    """
    try:
        import ctypes

        syscall = ctypes.CDLL(None, use_errno=True).syscall
    except (ImportError, OSError, AttributeError):
        return lambda directory, path, flags, resolve: None

    def openat2(directory, path, flags, resolve):
        how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, resolve)
        while True:
            fd = syscall(_OPENAT2, directory, ctypes.c_char_p(path), ctypes.c_char_p(how), len(how))
            if fd >= 0:
                return fd
            number = ctypes.get_errno()
            if number in _NOT_LIKE_THIS:
                return None
            if number != errno.EINTR:
                raise OSError(number, os.strerror(number))

    return openat2


_openat2 = _find_openat2()
