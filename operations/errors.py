"""The faults an operation can report: conditions by name, raw values inside, text on demand."""

from __future__ import annotations

__all__ = [
    "BackendUnavailable",
    "ConnectionLost",
    "FileChanged",
    "InvalidPattern",
    "NotRegularFile",
    "OperationError",
    "OperationUnsupported",
    "OutsideRoot",
    "PathDenied",
    "PathError",
    "PathExists",
    "PathIsDirectory",
    "PathNotDirectory",
    "PathNotFound",
    "SearchTimeout",
    "StorageFull",
    "TooLarge",
]


class OperationError(Exception):
    """Base of every fault that an operation raises.

    Subclasses pass their raw arguments to `Exception.__init__`, so that they can be pickled, and
    build the sentence in `__str__`.
    """


class PathError(OperationError):
    """A fault about one path.

    Args:
        path: The path as the operation received it.
        detail: What the target said ("Permission denied"), or "".
    """

    _says = "cannot be used"

    def __init__(self, path: str, detail: str = "") -> None:
        super().__init__(path, detail)
        self.path = path
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.path}: {self.detail or self._says}"


class PathNotFound(PathError, FileNotFoundError):
    """Nothing is at the path.

    Args:
        path: The path as the operation received it.
        nearest: The closest folder above it that exists, or None when the backend did not look.
        names: Names in that folder, those most like the missing one first; folders end with "/".
    """

    def __init__(self, path: str, nearest: str | None = None, names: tuple[str, ...] = ()) -> None:
        OperationError.__init__(self, path, nearest, names)
        self.path = path
        self.detail = ""
        self.nearest = nearest
        self.names = names

    def __str__(self) -> str:
        text = f"{self.path}: no such file or folder"
        if self.nearest is None:
            return text
        held = ", ".join(self.names) if self.names else "nothing like it"
        return f"{text}; {self.nearest} has {held}"


class PathDenied(PathError, PermissionError):
    """The user that operations run as may not do this to the path."""

    _says = "permission denied"


class PathIsDirectory(PathError, IsADirectoryError):
    """The path is a folder where a file is wanted.

    Args:
        path: The path as the operation received it.
        names: Some of the folder's names, sorted; folders end with "/".
        total: How many names the folder has, or None when the backend did not look.
    """

    def __init__(self, path: str, names: tuple[str, ...] = (), total: int | None = None) -> None:
        OperationError.__init__(self, path, names, total)
        self.path = path
        self.detail = ""
        self.names = names
        self.total = total

    def __str__(self) -> str:
        text = f"{self.path}: is a folder"
        if self.total is None:
            return text
        if not self.total:
            return f"{text}; it is empty"
        more = f" and {self.total - len(self.names)} more" if self.total > len(self.names) else ""
        return f"{text}; it has {', '.join(self.names)}{more}"


class PathNotDirectory(PathError, NotADirectoryError):
    """The path, or a part above it, is a file where a folder is wanted.

    `detail` names that part when it is not the whole path.
    """

    _says = "is not a folder"


class PathExists(PathError, FileExistsError):
    """Something is already at the path."""

    _says = "already exists"


class NotRegularFile(PathError, OSError):
    """The path is a FIFO, device or socket, which is never opened; `detail` says which."""

    _says = "is not a regular file"


class OutsideRoot(PathError, PermissionError):
    """The path leads out of the folder that the backend is confined to."""

    _says = "is outside the root folder"


class StorageFull(PathError, OSError):
    """The target has no room (disk or quota) for what was to be written; nothing was changed."""

    _says = "no space left on the target"


class FileChanged(OperationError):
    """A file is no longer in the version that the caller had read; nothing was written.

    Args:
        path: The path as the operation received it.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: changed since it was read"


class TooLarge(OperationError):
    """Something is over a limit.

    Args:
        what: The thing, as "command" or a path.
        size: Its size in bytes.
        limit: The most that is accepted, in bytes.
    """

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(what, size, limit)
        self.what = what
        self.size = size
        self.limit = limit

    def __str__(self) -> str:
        return f"{self.what}: {self.size} bytes is over the limit of {self.limit} bytes"


class InvalidPattern(OperationError):
    """A pattern cannot be used.

    Args:
        pattern: The pattern.
        reason: What is wrong with it and what would be right.
        position: 0-based character where the fault begins, or None.
    """

    def __init__(self, pattern: str, reason: str, position: int | None = None) -> None:
        super().__init__(pattern, reason, position)
        self.pattern = pattern
        self.reason = reason
        self.position = position

    def __str__(self) -> str:
        at = "" if self.position is None else f" at character {self.position}"
        return f"invalid pattern {self.pattern!r}{at}: {self.reason}"


class SearchTimeout(OperationError):
    """A search was ended by its time limit.

    Args:
        timeout_s: The limit in seconds.
    """

    def __init__(self, timeout_s: float) -> None:
        super().__init__(timeout_s)
        self.timeout_s = timeout_s

    def __str__(self) -> str:
        return (
            f"the search did not end within {self.timeout_s:g} seconds; "
            "use a narrower path or glob, or a simpler pattern"
        )


class BackendUnavailable(OperationError):
    """The target cannot be reached; nothing was done.

    Args:
        target: The target as the user named it.
        reason: Why, as a sentence part.
    """

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(target, reason)
        self.target = target
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.target}: {self.reason}"


class ConnectionLost(OperationError):
    """The connection ended during the operation, which may or may not have happened.

    Args:
        target: The target as the user named it.
        reason: What was seen ("the engine ended with exit status 1").
    """

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(target, reason)
        self.target = target
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self.target}: connection lost ({self.reason}); "
            "the operation may or may not have happened, so look before repeating it"
        )


class OperationUnsupported(OperationError):
    """The target cannot do this kind of operation; nothing was done.

    Args:
        operation: The operation's name.
        reason: Why not, as a sentence part.
    """

    def __init__(self, operation: str, reason: str) -> None:
        super().__init__(operation, reason)
        self.operation = operation
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.operation} is not supported here: {self.reason}"
