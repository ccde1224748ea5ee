"""Give a new file the owner, mode and extended attributes of the one that it replaces."""

import errno
import os
import stat

_UNSUPPORTED = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


def keep_attributes(source, target):
    """Make the open file `target` look like the open file `source` in all but content and times.

    Returns:
        None, or what could not be set: "owner" or "attributes".
    """
    wanted = os.fstat(source)
    have = os.fstat(target)
    mode = stat.S_IMODE(wanted.st_mode)
    if (have.st_uid, have.st_gid) != (wanted.st_uid, wanted.st_gid):
        try:
            os.fchown(target, wanted.st_uid, wanted.st_gid)
        except OSError:
            return "owner"
    try:
        # After the owner, whose change drops capabilities and the setuid bit; the mode last,
        # since an access control list changes it.
        _copy_xattrs(source, target)
        if stat.S_IMODE(os.fstat(target).st_mode) != mode:
            os.fchmod(target, mode)
    except OSError:
        return "attributes"
    # Some systems accept a setgid bit and drop it.
    return None if stat.S_IMODE(os.fstat(target).st_mode) == mode else "attributes"


def _copy_xattrs(source, target):
    wanted = _xattrs(source)
    have = _xattrs(target)
    for name in have:
        if name not in wanted:  # a list inherited from the folder
            os.removexattr(target, name)
    for name, value in wanted.items():
        if have.get(name) != value:
            os.setxattr(target, name, value)


def _xattrs(fd):
    if not hasattr(os, "listxattr"):
        return {}
    try:
        return {name: os.getxattr(fd, name) for name in os.listxattr(fd)}
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return {}
        raise
