"""How a path becomes a descriptor: the one module that knows where "/" and "~" are.

Every file function takes a Place and a bytes path, absolute or beginning with "~/". Nothing else
in the engine opens a path by name, so that confinement (see beneath.py) is a matter of the Place.
"""

import errno
import os
import stat

from backends.engine.faults import Fault

# O_PATH needs no read permission on a folder; where the system lacks it, a plain open has to do.
O_PATH = getattr(os, "O_PATH", os.O_RDONLY)
_HAS_O_PATH = hasattr(os, "O_PATH")
#: As many links in a row as Linux itself follows.
MAX_LINKS = 40
#: Longer paths are refused by Linux too; this keeps them out of the fault that says so.
MAX_PATH_BYTES = 4095


class Place:
    """The files of a machine.

    Args:
        root: Absolute bytes path of the folder that paths are opened from.
        home: Absolute bytes path that "~" stands for; None for that of the user who runs the
            engine.
    """

    def __init__(self, root=b"/", home=None):
        self._home = home
        self._fd = os.open(root, O_PATH | os.O_DIRECTORY)

    def close(self):
        """Close the root's descriptor; fine if done before."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def home(self):
        """Return the absolute path that "~" stands for."""
        if self._home is None:
            self._home = _user_home()
        return self._home

    def expand(self, path):
        """Return `path` (bytes) as an absolute path, "~" replaced.

        Raises:
            Fault: "path" when it is empty, too long, holds NUL, or is neither absolute nor under
                "~".
        """
        if not path:
            raise Fault("path", path, "the path is empty")
        if len(path) > MAX_PATH_BYTES:
            says = "the path has %d bytes, over the limit of %d" % (len(path), MAX_PATH_BYTES)
            raise Fault("path", path[:MAX_PATH_BYTES], says)
        if b"\0" in path:
            raise Fault("path", path, "the path holds a NUL byte")
        if path.startswith(b"/"):
            return path
        if path == b"~" or path.startswith(b"~/"):
            return (self.home().rstrip(b"/") + path[1:]) or b"/"
        raise Fault("path", path, "the path is neither absolute nor under ~/")

    def open(self, path, flags, mode=0o666):
        """Open `path`, through symlinks unless `flags` say otherwise; return a descriptor."""
        return os.open(self._relative(path), flags, mode, dir_fd=self._fd)

    def open_directory(self, path):
        """Open a folder for reading its names; return a descriptor."""
        return self.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def stat(self, path):
        """Return the status of what is at `path`, through symlinks."""
        return os.stat(self._relative(path), dir_fd=self._fd)

    def lstat(self, path):
        """Return the status of `path` itself."""
        return os.stat(self._relative(path), dir_fd=self._fd, follow_symlinks=False)

    def stat_beside(self, directory, folder, name):
        """Return the status of `name` in a folder that is open, through symlinks.

        Args:
            directory: The folder's descriptor.
            folder: Its path.
            name: One name in it.
        """
        return os.stat(name, dir_fd=directory)

    def mkdir(self, path):
        """Make one folder, 0777 less the umask."""
        os.mkdir(self._relative(path), dir_fd=self._fd)

    def parent(self, path):
        """Return (descriptor, name): the folder that holds `path`, and its last part.

        The descriptor is for use as `dir_fd`; the caller closes it. The name is b"" when `path`
        ends with "/", and may be b"." or b"..".
        """
        folder, _, name = self.expand(path).rpartition(b"/")
        return self.open(folder or b"/", O_PATH | os.O_DIRECTORY), name

    def follow(self, path):
        """Return (descriptor, name) as `parent` does, of what `path` leads to.

        Symlinks in the last place are followed by hand, each relative to the folder that was
        opened for it, so that what is done to the name later can't be led elsewhere. What the
        last link points to need not exist.

        Raises:
            OSError: ELOOP for too many links; EACCES for a link that somebody else put into a
                shared folder such as /tmp (what Linux calls protected symlinks).
        """
        folder, name = self.parent(path)
        for _ in range(MAX_LINKS):
            try:
                text = read_link(folder, name) if name else None
                if text is None:
                    return folder, name
                above = folder
                folder, name = self._beside(above, text)
                os.close(above)
            except BaseException:
                os.close(folder)
                raise
        os.close(folder)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def open_below(self, directory, path, flags):
        """Open what an open folder holds; only the last part of `path` can't be a symlink.

        Args:
            directory: The folder's descriptor.
            path: Relative bytes path below it, without ".."; at most 4,000 bytes.
            flags: As `open` takes, O_NOFOLLOW among them.
        """
        return os.open(path, flags, dir_fd=directory)

    def _beside(self, folder, text):
        """Return (descriptor, name) of what a link in `folder` with this text points to."""
        if text.startswith(b"/"):
            return self.parent(text)
        above, _, name = text.rpartition(b"/")
        return os.open(above or b".", O_PATH | os.O_DIRECTORY, dir_fd=folder), name

    def _relative(self, path):
        """Return `path` as seen from the root's descriptor."""
        return self.expand(path).lstrip(b"/") or b"."


def _user_home():
    home = os.fsencode(os.environ.get("HOME", ""))
    if home.startswith(b"/"):
        return home
    try:
        import pwd

        home = os.fsencode(pwd.getpwuid(os.getuid()).pw_dir)
    except (ImportError, KeyError):
        pass
    return home if home.startswith(b"/") else b"/"


def read_link(folder, name):
    """Return the text of the symlink `name` in `folder`, or None if it is not one (or missing)."""
    if not _HAS_O_PATH:
        try:
            return os.readlink(name, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise
    try:
        link = os.open(name, O_PATH | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(link)
        if not stat.S_ISLNK(status.st_mode):
            return None
        _refuse_planted(os.fstat(folder), status)
        # Read through the descriptor: this is the very link whose owner was looked at.
        return os.readlink(b"", dir_fd=link)
    finally:
        os.close(link)


def _refuse_planted(folder, link):
    """Raise EACCES for another user's link in a folder that everybody may write to."""
    shared = stat.S_ISVTX | stat.S_IWOTH
    if folder.st_mode & shared != shared:
        return
    if link.st_uid not in (os.geteuid(), folder.st_uid):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))
