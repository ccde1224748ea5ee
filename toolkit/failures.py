"""What an exception says to a model: its text, unchanged, and its kind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import operations
from toolkit.json_values import valid_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolkit.calls import ErrorKind, ImageContent, TextContent

__all__ = ["ToolFailure", "error_kind", "error_text", "leaves", "pass_interrupt"]


class ToolFailure(Exception):
    """A tool's own clear error.

    Args:
        text: What the model is told, exactly.
        kind: What sort of error it is.
        details: Facts for programs, a JSON object.
        content: Blocks to show instead of `text` alone (output that was there before the error).
        structured_content: The result for programs, any JSON value.
    """

    def __init__(
        self,
        text: str,
        *,
        kind: ErrorKind = "failed",
        details: dict[str, Any] | None = None,
        content: Sequence[TextContent | ImageContent] | None = None,
        structured_content: Any = None,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.kind: ErrorKind = kind
        self.details = details
        self.content = content
        self.structured_content = structured_content

    def __str__(self) -> str:
        return self.text


#: What acts on a terminal, and NUL.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

# The first row that fits decides, so a subclass stands before its base.
_KINDS: tuple[tuple[type[BaseException], ErrorKind], ...] = (
    (operations.PathNotFound, "not_found"),
    (operations.PathDenied, "denied"),
    (operations.OutsideRoot, "denied"),
    (operations.FileChanged, "changed"),
    (operations.TooLarge, "too_large"),
    (operations.InvalidPattern, "invalid_arguments"),
    (operations.SearchTimeout, "timeout"),
    (operations.BackendUnavailable, "unavailable"),
    (operations.ConnectionLost, "connection_lost"),
    (operations.OperationUnsupported, "unsupported"),
    (operations.OperationError, "failed"),
    (FileNotFoundError, "not_found"),
    (PermissionError, "denied"),
    (TimeoutError, "timeout"),
    (Exception, "failed"),
)


def error_text(error: BaseException) -> str:
    """Return exactly what the error says; the name of its type when it says nothing.

    In what an operation says, characters that act on a terminal are escaped. A group of errors is
    told by its leaves, one to a line.
    """
    return "\n".join(_leaf_text(leaf) for leaf in leaves(error))


def error_kind(error: BaseException) -> ErrorKind:
    """Return the kind of an error; of a group, what its leaves have in common, else "failed"."""
    kinds = {_leaf_kind(leaf) for leaf in leaves(error)}
    return kinds.pop() if len(kinds) == 1 else "failed"


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors in a group, in order and at any depth; an error alone is its own leaf."""
    pending = [error]
    while pending:
        current = pending.pop()
        if isinstance(current, BaseExceptionGroup):
            pending.extend(reversed(current.exceptions))
        else:
            yield current


def pass_interrupt(error: BaseException) -> None:
    """Raise KeyboardInterrupt if that is what `error` is or holds: it is never a tool's to keep."""
    for leaf in leaves(error):
        if isinstance(leaf, KeyboardInterrupt):
            raise leaf


def _leaf_text(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = valid_text(str(error))
    except KeyboardInterrupt:
        raise
    except BaseException:  # a foreign __str__ may do anything, sys.exit() too
        return name
    if not text.strip():
        return name
    if isinstance(error, operations.OperationError):  # a target may have had a say in it
        text = _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)
    # "3" would not tell that a tool has called sys.exit(3).
    return text if isinstance(error, Exception) else f"{name}: {text}"


def _leaf_kind(error: BaseException) -> ErrorKind:
    if isinstance(error, ToolFailure):
        return error.kind
    # SystemExit, GeneratorExit and cancellations that nobody asked for are no Exception.
    return next((kind for base, kind in _KINDS if isinstance(error, base)), "internal")
