"""Take plain values apart that came from the far end, which is not trusted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "MalformedReply",
    "count",
    "fields_of",
    "items_of",
    "line_number",
    "list_of",
    "number_when",
    "one_of",
    "seconds",
    "shown",
    "text",
    "word",
    "words",
]

_MAX_WORDS = 1000
_MAX_WORD_CHARS = 200
_MAX_INT = (1 << 63) - 1

Choice = TypeVar("Choice", bound=str)


class MalformedReply(ValueError):
    """The far end sent a value that its promise does not allow."""


def fields_of(value: object) -> dict[str, object]:
    """Return a dict."""
    if type(value) is not dict:
        raise MalformedReply(f"{shown(value)} is not a set of fields")
    return value


def list_of(value: object) -> list[object]:
    """Return a list."""
    if type(value) is not list:
        raise MalformedReply(f"{shown(value)} is not a list")
    return value


def items_of(value: object, count: int) -> list[object]:
    """Return a list of exactly `count` items."""
    items = list_of(value)
    if len(items) != count:
        raise MalformedReply(f"a list of {len(items)} where {count} are due")
    return items


def count(fields: dict[str, object], name: str, default: int | None = None) -> int:
    """Return a field that is an int of 0 or more in 64 bits; `default` where it is missing."""
    value = fields.get(name, default)
    if type(value) is not int or not 0 <= value <= _MAX_INT:
        raise MalformedReply(f"{name} is {shown(value)}")
    return value


def number_when(fields: dict[str, object], name: str, most: int, *, wanted: bool) -> int | None:
    """Return a field of 0 to `most` that is there exactly when it is wanted."""
    value = fields.get(name)
    if not wanted and value is None:
        return None
    if not wanted or count(fields, name) > most:
        raise MalformedReply(f"{name} is {shown(value)} in a command that ended another way")
    return count(fields, name)


def line_number(value: object) -> int:
    """Return an int of 1 or more in 64 bits."""
    if type(value) is not int or not 1 <= value <= _MAX_INT:
        raise MalformedReply(f"{shown(value)} is not a line number")
    return value


def seconds(value: object) -> float:
    """Return a finite number of 0 or more."""
    if type(value) is int and 0 <= value <= _MAX_INT:
        return float(value)
    if type(value) is float and math.isfinite(value) and value >= 0:
        return value
    raise MalformedReply(f"{shown(value)} is not a time")


def one_of(value: object, choices: Sequence[Choice]) -> Choice:
    """Return the one of `choices` that `value` is."""
    for choice in choices:
        if type(value) is str and value == choice:
            return choice
    raise MalformedReply(f"{shown(value)} is none of {', '.join(choices)}")


def text(value: object) -> str:
    """Return text of any length."""
    if type(value) is not str:
        raise MalformedReply(f"{shown(value)} is not text")
    return value


def word(value: object) -> str:
    """Return a short text."""
    short = text(value)
    if len(short) > _MAX_WORD_CHARS:
        raise MalformedReply(f"a text of {len(short)} characters where a word is due")
    return short


def words(value: object) -> tuple[str, ...]:
    """Return a bounded list of short texts."""
    items = list_of(value)
    if len(items) > _MAX_WORDS:
        raise MalformedReply(f"{len(items)} names")
    return tuple(word(item) for item in items)


def shown(value: object) -> str:
    """Return a bounded picture of what came."""
    if isinstance(value, str | bytes):
        return repr(value[:80])
    if value is None or isinstance(value, bool | float):
        return repr(value)
    if isinstance(value, int):
        return repr(value) if abs(value) <= _MAX_INT else "a number of more than 64 bits"
    return f"a {type(value).__name__}"
