"""What a model's path means on the target, and faults told in the model's own words."""

from __future__ import annotations

import posixpath
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import operations
from toolkit.failures import ToolFailure, error_kind
from toolkit.texts.text import escape_name
from toolkit.texts.truncate import over_limit, utf8_size

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = [
    "Found",
    "at_existing",
    "check_cwd",
    "join_given",
    "path_key",
    "quote_for_shell",
    "resolve_path",
    "retell",
]

T = TypeVar("T")

_MOST_FOLDED_PARTS = 8
#: What Linux takes; a longer one leads nowhere, and would only be repeated in the message.
_MAX_PATH_BYTES = 4096
_SAME = str.maketrans(
    {"\u2019": "'", "\u2018": "'"}
    | {chr(code): " " for code in (0x00A0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)}
)


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """What an operation gave, and the name that was there.

    Attributes:
        value: The operation's result.
        path: The path that it was called with.
        note: What to tell when that is not the name as it was given, else "".
    """

    value: T
    path: str
    note: str = ""


def check_cwd(cwd: str) -> str:
    """Return a tool's working folder as given.

    Raises:
        ValueError: It is neither absolute nor in the target's home.
    """
    if not cwd.startswith("/") and cwd != "~" and not cwd.startswith("~/"):
        raise ValueError(
            f"cwd must be an absolute path on the target or begin with ~/, not {cwd!r}"
        )
    return cwd


def resolve_path(given: str, cwd: str) -> str:
    """Return the path for an operation: absolute, or in the target's home.

    `~` and `~/x` are left for the target to expand, a leading "@" is dropped, `file://` URLs are
    decoded, and relative paths are taken from `cwd`. ".." is left to the target too, which knows
    its symlinks.

    Raises:
        ToolFailure: The path is empty, has a NUL, or is a URL of another machine.
    """
    path = given[1:] if given.startswith("@") and len(given) > 1 else given
    return _from_cwd(given, path, cwd)


def path_key(path: str) -> str:
    """Return the lexically normal form of a resolved path: the same for `a/b` and `a/./b`."""
    return posixpath.normpath(path)


async def at_existing(
    given: str, cwd: str, attempt: Callable[[str], Awaitable[T]], *, noun: str = "file"
) -> Found[T]:
    """Run an operation on something that exists.

    The exact name wins, with a leading "@" too. Where nothing is there, a name is taken that
    differs only by Unicode blanks, a curly apostrophe or its Unicode normal form, if it is the
    only one. Costs one trip unless the exact name is missing.

    Args:
        given: The path as the model gave it.
        cwd: The tool's working folder.
        attempt: The operation, called with a resolved path.
        noun: What is looked for, for the message: "file", "folder", "file or folder".

    Raises:
        ToolFailure: The operation failed; told with the path as given.
        OperationUnsupported: As the operation raised it.
    """
    path = resolve_path(given, cwd)
    try:
        if given.startswith("@") and len(given) > 1:
            try:
                exact = _from_cwd(given, given, cwd)
                return Found(await attempt(exact), exact)
            except operations.PathNotFound:
                pass
        return await _tolerant(given, path, attempt)
    except operations.OperationUnsupported:
        raise
    except operations.OperationError as error:
        raise retell(error, given, cwd, noun=noun) from error


def retell(
    error: operations.OperationError, given: str, cwd: str, *, noun: str = "file"
) -> ToolFailure:
    """Say what an operation's fault means in terms of the path that the model gave."""
    details = {"path": given}
    if given == "." and isinstance(error, operations.PathNotFound | operations.PathNotDirectory):
        given = f"the working folder {cwd}"
    if isinstance(error, operations.PathNotFound):
        text = f"{given}: no such {noun}"
        if error.nearest is not None:
            held = ", ".join(map(escape_name, error.names)) or "nothing like it"
            text += f"; {_relative(error.nearest, given, cwd)} has {held}"
    elif isinstance(error, operations.PathIsDirectory):
        text = f"{given}: is a folder, not a file{_holding(error)}"
    elif isinstance(error, operations.PathNotDirectory) and not error.detail:
        text = f"{given}: is a file, not a folder"
    elif isinstance(error, operations.TooLarge):
        what = given if error.what.startswith(("/", "~")) else error.what
        text = f"{what}: {over_limit(error.size, error.limit)}"
    elif isinstance(error, operations.PathError | operations.FileChanged):
        said = str(error).removeprefix(error.path)
        # Another part of the path may be named in it, as absolute as the operation got it.
        text = given + said.replace(f" {cwd.rstrip('/')}/", " ", 1)
    else:
        text = str(error)
    return ToolFailure(text, kind=error_kind(error), details=details)


def join_given(folder: str | None, relative: str) -> str:
    """Return the path, as the model would give it, of something inside the folder that it gave."""
    if folder is None or folder in (".", "./"):
        return relative
    return posixpath.join(folder.removeprefix("./"), relative)


def quote_for_shell(path: str) -> str:
    """Quote a path for a command line; `~/` stays open for the shell to expand."""
    import shlex

    if path.startswith("~/"):
        return "~/" + shlex.quote(path[2:])
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def _from_cwd(given: str, path: str, cwd: str) -> str:
    if path[:7].lower() == "file://":
        path = _from_url(path)
    if not path.strip():
        raise ToolFailure("the path is empty", kind="invalid_arguments")
    if "\x00" in path:
        raise ToolFailure(f"{given[:200]!r}: a path cannot have a NUL", kind="invalid_arguments")
    if (size := utf8_size(path)) > _MAX_PATH_BYTES:
        raise ToolFailure(
            f"{given[:60]}...: the path has {size} bytes, over the limit of {_MAX_PATH_BYTES}",
            kind="invalid_arguments",
        )
    if path == "~" or path.startswith(("/", "~/")):
        return path
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return cwd if path in ("", ".") else posixpath.join(cwd, path)


def _from_url(url: str) -> str:
    from urllib.parse import unquote_to_bytes

    host, slash, rest = url[7:].partition("/")
    if host.lower() not in ("", "localhost") or not slash:
        raise ToolFailure(
            f"{url}: only file:// URLs of this machine (file:///path) are accepted",
            kind="invalid_arguments",
        )
    try:
        return "/" + unquote_to_bytes(rest).decode()
    except UnicodeDecodeError:
        raise ToolFailure(f"{url}: is not UTF-8 once decoded", kind="invalid_arguments") from None


async def _tolerant(given: str, path: str, attempt: Callable[[str], Awaitable[T]]) -> Found[T]:
    first: operations.PathNotFound | None = None
    tried = path
    for _ in range(_MOST_FOLDED_PARTS):
        try:
            value = await attempt(tried)
        except operations.PathNotFound as error:
            first = first or error
            other = _other_name(tried, error)
            if other is None:
                raise first from None
            tried = other
        else:
            if tried == path:
                return Found(value, path)
            name = escape_name(posixpath.basename(tried.rstrip("/")))
            note = (
                f"{given} is not there; {name}, which differs in blanks, apostrophes or accents, is"
            )
            return Found(value, tried, note)
    raise first or operations.PathNotFound(path)


def _other_name(path: str, error: operations.PathNotFound) -> str | None:
    """Return `path` with the missing part as it is spelt on the target, if just one name fits."""
    if error.nearest is None:
        return None
    folder = error.nearest.rstrip("/") + "/"
    if not path.startswith(folder):
        return None
    part, slash, rest = path[len(folder) :].lstrip("/").partition("/")
    names = {name.rstrip("/") for name in error.names}
    fitting = [name for name in names if name != part and _folded(name) == _folded(part)]
    return folder + fitting[0] + slash + rest if len(fitting) == 1 else None


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).translate(_SAME)


def _relative(folder: str, given: str, cwd: str) -> str:
    """Name a folder as the model would: relative to the working folder if its path was."""
    if given.lstrip("@").startswith(("/", "~/", "file://")) or given == "~":
        return escape_name(folder)
    if folder.rstrip("/") == cwd.rstrip("/"):
        return "the working folder"
    inside = folder.removeprefix(cwd.rstrip("/") + "/")
    return escape_name(inside.rstrip("/") or "/")


def _holding(error: operations.PathIsDirectory) -> str:
    if error.total is None:
        return ""
    if not error.total:
        return "; it is empty"
    left = error.total - len(error.names)
    more = f" and {left} more" if left > 0 else ""
    return f"; it has {', '.join(map(escape_name, error.names))}{more}"
