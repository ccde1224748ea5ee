"""A call as one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from rich.text import Text

from toolkit.rendering.plain import visible

__all__ = ["argument", "call_line"]

#: What a call does is what the eye looks for, then what it does it to.
_NAME, _OBJECT, _EXTRA = "bold", "cyan", "dim"
_MOST_CHARS = 2000


def call_line(name: str, params: BaseModel | Mapping[str, Any]) -> Text:
    """See `toolkit.rendering.call_view`."""
    line = Text(no_wrap=False, overflow="fold")
    if name == "bash":
        line.append("$ ", _NAME)
        line.append(_cut(argument(params, "command")))
        timeout = argument(params, "timeout")
        return line.append(f"  ({timeout:g} s)", _EXTRA) if _is_number(timeout) else line
    line.append(visible(name), _NAME)
    parts = _PARTS.get(name)
    if parts is None:
        values = params.model_dump() if isinstance(params, BaseModel) else dict(params)
        return line.append(f" {_cut(json.dumps(values, ensure_ascii=False, default=repr))}")
    for text, style in parts(params):
        if text:
            line.append(f" {text}", style)
    return line


def argument(params: BaseModel | Mapping[str, Any], name: str) -> Any:
    """Return an argument, or None where there is none."""
    if isinstance(params, BaseModel):
        return getattr(params, name, None)
    return params.get(name)


def _read(params: Any) -> list[tuple[str, str]]:
    first, limit = argument(params, "offset"), argument(params, "limit")
    span = ""
    if _is_number(first) or _is_number(limit):
        start = first if _is_number(first) else 1
        span = f"from line {start}" if not _is_number(limit) else f"{start}-{start + limit - 1}"
    return [_path(params), (span, _EXTRA)]


def _write(params: Any) -> list[tuple[str, str]]:
    return [_path(params)]


def _edit(params: Any) -> list[tuple[str, str]]:
    edits = argument(params, "edits")
    count = len(edits) if isinstance(edits, list | tuple) else 1
    return [_path(params), (f"{count} edits" if count > 1 else "", _EXTRA)]


def _grep(params: Any) -> list[tuple[str, str]]:
    return [
        (_cut(argument(params, "pattern")), "yellow"),
        *_below(params),
        (_cut(argument(params, "glob")), _EXTRA),
        ("ignoring case" if argument(params, "ignore_case") is True else "", _EXTRA),
    ]


def _find(params: Any) -> list[tuple[str, str]]:
    return [(_cut(argument(params, "pattern")), "yellow"), *_below(params)]


def _ls(params: Any) -> list[tuple[str, str]]:
    return [(_cut(argument(params, "path")) or ".", _OBJECT)]


_PARTS = {
    "read": _read,
    "write": _write,
    "edit": _edit,
    "grep": _grep,
    "find": _find,
    "ls": _ls,
}


def _path(params: Any) -> tuple[str, str]:
    return _cut(argument(params, "path")), _OBJECT


def _below(params: Any) -> list[tuple[str, str]]:
    path = _cut(argument(params, "path"))
    return [("in", _EXTRA), (path, _OBJECT)] if path else []


def _cut(value: Any) -> str:
    if value is None:
        return ""
    text = visible(value if isinstance(value, str) else repr(value), keep="\n\t")
    return text if len(text) <= _MOST_CHARS else text[: _MOST_CHARS - 3] + "..."


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
