"""The one exception that engine code raises on purpose: a code and raw arguments, never prose."""

import errno


class Fault(Exception):
    """A condition that the near end turns into one of its own errors.

    Args:
        code: One of CODES.
        args: What the code's entry in CODES lists; paths are bytes.
    """

    def __init__(self, code, *args):
        super().__init__(code, *args)
        self.code = code
        self.arguments = list(args)


#: Every code that may cross, with the arguments that go with it.
CODES = {
    "not_found": ("path", "nearest or None", "names"),
    "denied": ("path", "detail"),
    "is_directory": ("path", "names", "total or None"),
    "not_directory": ("path", "detail"),
    "exists": ("path", "detail"),
    "not_regular": ("path", "detail"),
    "outside_root": ("path", "detail"),
    "storage_full": ("path", "detail"),
    "path": ("path", "detail"),  # any other condition of the operating system about a path
    "changed": ("path",),
    "too_large": ("what", "size", "limit"),
    "invalid_pattern": ("pattern", "reason", "position or None"),
    "search_timeout": ("seconds",),
    "unsupported": ("operation", "reason"),
    "unavailable": ("reason",),  # nothing was done, and later it may work
    "cancelled": (),
    "bad_request": ("reason",),
    "internal": ("traceback",),
}

_BY_ERRNO = {
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EROFS: "denied",
    errno.ENOTDIR: "not_directory",
    errno.EEXIST: "exists",
    errno.ENOSPC: "storage_full",
    errno.EDQUOT: "storage_full",
    errno.EFBIG: "storage_full",
    errno.EXDEV: "outside_root",
}


def fault_from_os_error(error, path):
    """Turn an OSError about `path` (bytes) into a Fault.

    ENOENT and EISDIR carry names that only a look at the folder can tell: see suggest.py.
    """
    if error.errno == errno.ENOENT:
        return Fault("not_found", path, None, [])
    if error.errno == errno.EISDIR:
        return Fault("is_directory", path, [], None)
    return Fault(_BY_ERRNO.get(error.errno, "path"), path, error.strerror or str(error))
