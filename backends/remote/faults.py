"""From the engine's (code, arguments) to the errors of `operations`: one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.remote import checks
from backends.remote.checks import MalformedReply
from backends.remote.convert import path_text
from operations.errors import (
    BackendUnavailable,
    FileChanged,
    InvalidPattern,
    NotRegularFile,
    OperationError,
    OperationUnsupported,
    OutsideRoot,
    PathDenied,
    PathError,
    PathExists,
    PathIsDirectory,
    PathNotDirectory,
    PathNotFound,
    SearchTimeout,
    StorageFull,
    TooLarge,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["error_from_fault"]

_MAX_NAMES = 100
_MAX_CHARS = 4000
_MAX_INT = (1 << 63) - 1


def error_from_fault(code: object, arguments: object) -> OperationError:
    """Return the error that a fault of the engine stands for.

    What makes no sense (the far end is not trusted) becomes a plain OperationError that says so.

    Args:
        code: One of `backends.engine.faults.CODES`.
        arguments: A list of what goes with it.
    """
    make = _TABLE.get(code) if isinstance(code, str) else None
    if make is None or not isinstance(arguments, list):
        return OperationError(f"the target answered with an unknown fault {checks.shown(code)}")
    try:
        return make(*arguments)
    except (MalformedReply, TypeError):
        return OperationError(f"the target answered with a malformed fault {code!r}")


def _not_found(path: object, nearest: object, names: object) -> OperationError:
    folder = None if nearest is None else path_text(nearest)
    return PathNotFound(path_text(path), folder, _names(names))


def _is_directory(path: object, names: object, total: object) -> OperationError:
    count = None if total is None else _integer(total)
    return PathIsDirectory(path_text(path), _names(names), count)


def _path_error(error: type[PathError]) -> Callable[..., OperationError]:
    def make(path: object, detail: object) -> OperationError:
        return error(path_text(path), _text(detail))

    return make


def _changed(path: object) -> OperationError:
    return FileChanged(path_text(path))


def _too_large(what: object, size: object, limit: object) -> OperationError:
    name = path_text(what) if isinstance(what, bytes) else _text(what)
    return TooLarge(name, _integer(size), _integer(limit))


def _invalid_pattern(pattern: object, reason: object, position: object) -> OperationError:
    at = None if position is None else _integer(position)
    shown = path_text(pattern) if isinstance(pattern, bytes) else _text(pattern)
    return InvalidPattern(shown, _text(reason), at)


def _search_timeout(seconds: object) -> OperationError:
    return SearchTimeout(checks.seconds(seconds))


def _unsupported(operation: object, reason: object) -> OperationError:
    return OperationUnsupported(_text(operation), _text(reason))


def _unavailable(reason: object) -> OperationError:
    return BackendUnavailable("the target", _text(reason))


def _cancelled() -> OperationError:
    return OperationError("the operation was cancelled")


def _bad_request(reason: object) -> OperationError:
    return OperationError(f"the target refused the request: {_text(reason)}")


def _internal(trace: object) -> OperationError:
    """Show the end of the far traceback, which names the exception."""
    return OperationError(f"internal error on the target: {_text(trace).strip()}")


_TABLE: dict[str, Callable[..., OperationError]] = {
    "not_found": _not_found,
    "denied": _path_error(PathDenied),
    "is_directory": _is_directory,
    "not_directory": _path_error(PathNotDirectory),
    "exists": _path_error(PathExists),
    "not_regular": _path_error(NotRegularFile),
    "outside_root": _path_error(OutsideRoot),
    "storage_full": _path_error(StorageFull),
    "path": _path_error(PathError),
    "changed": _changed,
    "too_large": _too_large,
    "invalid_pattern": _invalid_pattern,
    "search_timeout": _search_timeout,
    "unsupported": _unsupported,
    "unavailable": _unavailable,
    "cancelled": _cancelled,
    "bad_request": _bad_request,
    "internal": _internal,
}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise MalformedReply("something that is not text")
    return value if len(value) <= _MAX_CHARS else "..." + value[-_MAX_CHARS:]


def _integer(value: object) -> int:
    if type(value) is not int or not 0 <= value <= _MAX_INT:
        raise MalformedReply("something that is not a size")
    return value


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > _MAX_NAMES:
        raise MalformedReply("something that is not a list of names")
    return tuple(path_text(name) for name in value)
