"""What the script tells about a path becomes the errors that an engine's faults would."""

from __future__ import annotations

from backends.engine.faults import Fault
from backends.engine.suggest import MAX_CLOSEST, MAX_HELD, closest, name_order
from backends.remote.faults import error_from_fault
from backends.remote.shell_script import REFUSALS
from operations import OperationError

__all__ = ["error_of", "refusal"]

_MAX_DETAIL = 200


def error_of(fault: Fault) -> OperationError:
    """Return the error that a fault stands for."""
    return error_from_fault(fault.code, fault.arguments)


def refusal(path: bytes, status: int, told: bytes) -> OperationError:
    """Return the error for a function that refused.

    Args:
        path: The path as the operation received it.
        status: The function's exit status.
        told: What it printed.
    """
    code = REFUSALS.get(status)
    if code is None:
        return OperationError(f"the shell on the target answered with status {status}")
    if code == "not_found":
        return error_of(_not_found(path, told))
    if code == "is_directory":
        return error_of(_is_directory(path, told))
    if code == "changed":
        return error_of(Fault("changed", path))
    if code == "not_directory":
        says = f"{_text(told)} is a file, not a folder" if told and told != path else ""
        return error_of(Fault("not_directory", path, says))
    return error_of(Fault(code, path, _text(told.strip().rpartition(b": ")[2])))


def _not_found(path: bytes, told: bytes) -> Fault:
    """Name the nearest folder as the path was given, and the closest of its names."""
    fields = told.split(b"\0")
    if len(fields) < 3 or not fields[0].isdigit() or len(fields[0]) > 4:
        return Fault("not_found", path, None, [])
    folder, missing = path.rstrip(b"/"), b""
    for _ in range(int(fields[0])):
        if folder in (b"", b"~"):
            return Fault("not_found", path, None, [])
        folder, _, missing = folder.rpartition(b"/")
    link, names = fields[1], [name for name in fields[2:-1] if name.rstrip(b"/") != missing]
    broken = [missing + b"@ -> " + link] if link else []
    found = closest(missing, names, MAX_CLOSEST - len(broken))
    return Fault("not_found", path, folder or b"/", broken + found)


def _is_directory(path: bytes, told: bytes) -> Fault:
    known, *names = told.split(b"\0")[:-1] or [b""]
    if known != b"/":  # what says that a folder can be listed, be it empty
        return Fault("is_directory", path, [], None)
    shown = sorted(names, key=lambda name: name_order(name.rstrip(b"/")))[:MAX_HELD]
    return Fault("is_directory", path, shown, len(names))


def _text(told: bytes) -> str:
    return told[:_MAX_DETAIL].decode("utf-8", "backslashreplace")
