"""JSON as the wire wants it: text that is valid UTF-8, values that can be written, previews."""

from __future__ import annotations

import json
import math
from typing import Any

__all__ = ["MAX_DEPTH", "NotJson", "copy_json", "preview", "valid_text"]

#: Values nested deeper than this are refused: what a model or tool sends is flat, and a recursive
#: reader on the other side must not be brought down by it.
MAX_DEPTH = 64

# An int of more digits than this cannot be read back by Python's own json (sys.int_info).
_MAX_INT_BITS = 4096


class NotJson(ValueError):
    """A value cannot be written as JSON.

    Args:
        path: Where it is, as "edits[0].old_text"; "" for the whole value.
        problem: What is wrong with it.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}" if self.path else self.problem


def valid_text(text: str) -> str:
    r"""Return `text` with every lone surrogate written as an escape such as `\udc80`."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def copy_json(value: Any, *, path: str = "", escape: bool = False) -> Any:
    """Copy a value of dicts, lists, strings, numbers, booleans and None.

    Args:
        value: The value; tuples become lists.
        path: Where it stands, for the error.
        escape: Escape lone surrogates instead of refusing them.

    Returns:
        A copy that shares no dict or list with `value` and that any JSON writer can write.

    Raises:
        NotJson: Something in it is not JSON (another type, NaN, an infinite number, a lone
            surrogate), or it is nested deeper than `MAX_DEPTH` (so a cycle is refused too).
    """
    return _copy(value, path, 0, escape)


def _copy(value: Any, path: str, depth: int, escape: bool) -> Any:  # noqa: FBT001 - on the hot path
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _copy_text(value, path, escape)
    if value is None or kind is bool:
        return value
    if kind is int:
        return _copy_int(value, path)
    if kind is float:
        return _copy_float(value, path)
    if depth >= MAX_DEPTH:
        raise NotJson(_ellipsis(path), f"is nested deeper than {MAX_DEPTH} levels")
    if kind is dict:
        return _copy_dict(value, path, depth, escape)
    if kind is list or kind is tuple:
        return [
            _copy(item, f"{path}[{index}]", depth + 1, escape) for index, item in enumerate(value)
        ]
    return _copy_subclass(value, path, depth, escape)


def _copy_dict(value: dict[Any, Any], path: str, depth: int, escape: bool) -> dict[str, Any]:  # noqa: FBT001
    copied: dict[str, Any] = {}
    for key, item in value.items():
        name = key if type(key) is str and key.isascii() else _key(key, path, escape)
        if type(item) is str and item.isascii():  # the path is made only where it is needed
            copied[name] = item
        else:
            copied[name] = _copy(item, _member(path, key), depth + 1, escape)
    return copied


def _copy_subclass(value: Any, path: str, depth: int, escape: bool) -> Any:  # noqa: FBT001
    """Take subclasses (enums, named tuples, ordered dicts) for what they hold."""
    if isinstance(value, str):
        return _copy_text(str.__str__(value), path, escape)
    plain: Any
    for plain in (int, float, dict, list, tuple):
        if isinstance(value, plain):
            return _copy(plain(value), path, depth, escape)
    raise NotJson(path, f"is {_article(type(value).__name__)}, which is not a JSON value")


def _copy_text(text: str, path: str, escape: bool) -> str:  # noqa: FBT001
    try:
        text.encode()
    except UnicodeEncodeError as error:
        if escape:
            return valid_text(text)
        found = f"\\u{ord(text[error.start]):04x}"
        problem = f"has a lone surrogate ({found}) at character {error.start}, which is not text"
        raise NotJson(path, problem) from None
    return text


def _copy_int(number: int, path: str) -> int:
    if number.bit_length() > _MAX_INT_BITS:
        raise NotJson(path, f"is a number of more than {_MAX_INT_BITS} bits")
    return number


def _copy_float(number: float, path: str) -> float:
    if not math.isfinite(number):
        raise NotJson(path, f"is {number}, which is not a JSON number")
    return number


def _key(key: Any, path: str, escape: bool) -> str:  # noqa: FBT001
    if isinstance(key, str):
        return _copy_text(key, _member(path, key), escape)
    raise NotJson(path, f"has the key {valid_text(repr(key)[:80])}, which is not a string")


def _member(path: str, key: Any) -> str:
    name = valid_text(str(key))
    return f"{path}.{name}" if path else name


def _ellipsis(path: str) -> str:
    return path if len(path) <= 60 else path[:60] + "..."


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def preview(value: Any, *, max_chars: int = 1000) -> str:
    """Show any value at all in little room, as JSON where it is JSON.

    Args:
        value: Anything, also cyclic, huge or not JSON.
        max_chars: The most characters to return.

    Returns:
        Valid text; long strings, long lists and deep levels are cut, which "..." shows.
    """
    try:
        text = json.dumps(_shorten(value, 0), ensure_ascii=False)
    except Exception:  # a foreign dict or list may do anything
        text = _safe_repr(value)
    text = valid_text(text)
    return text if len(text) <= max_chars else f"{text[: max_chars - 3]}..."


def _shorten(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= 200 else f"{value[:200]}... ({len(value)} characters)"
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _MAX_INT_BITS else "(a huge number)"
    if depth >= 6:
        return "..."
    if isinstance(value, dict):
        items = list(value.items())[:20]
        short = {str(_shorten(str(key), 0)): _shorten(item, depth + 1) for key, item in items}
        return short if len(value) <= 20 else {**short, "...": f"{len(value) - 20} more"}
    if isinstance(value, list | tuple):
        shown = [_shorten(item, depth + 1) for item in value[:20]]
        return shown if len(value) <= 20 else [*shown, f"... {len(value) - 20} more"]
    return _safe_repr(value)


def _safe_repr(value: Any) -> str:
    try:
        return repr(value)[:200]
    except KeyboardInterrupt:
        raise
    except BaseException:  # a foreign __repr__ may do anything, sys.exit() too
        return f"({type(value).__name__})"
