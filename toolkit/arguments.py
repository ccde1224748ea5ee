"""Steps 1 and 2 of a call: forgive what models are known to get wrong, then validate strictly."""

from __future__ import annotations

import json
import re
import weakref
from typing import TYPE_CHECKING, Any

from pydantic import AliasChoices, AliasPath, BaseModel, ValidationError
from pydantic_core import to_json

from toolkit.json_values import MAX_DEPTH, NotJson, copy_json, preview, valid_text
from toolkit.shapes import shape_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic_core import ErrorDetails

__all__ = [
    "InvalidArguments",
    "default_prepare_arguments",
    "did_you_mean",
    "read_arguments",
    "validate_tool_arguments",
]

# json_repair was measured at 12 us for each character, on the event loop.
_MAX_REPAIR_CHARS = 32 * 1024


class InvalidArguments(Exception):
    """Arguments cannot be used.

    Args:
        problems: Pairs of a path such as "edits[0].old_text" and what is wrong there.
    """

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__(problems)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(f"{path}: {problem}" for path, problem in self.problems)


def read_arguments(raw: Any) -> tuple[dict[str, Any], bool]:
    """Return a copy of a call's arguments as an object, and whether its text had to be repaired.

    Args:
        raw: What the model sent: an object, JSON text of one (also encoded twice), None or "" for
            no arguments. JSON that is slightly wrong (quotes, commas, a missing bracket at the
            end) is repaired; text that ends within a string is refused, since nobody knows how
            much of it is missing.

    Raises:
        InvalidArguments: It is no object, or something in it is not JSON.
    """
    value, repaired = raw, False
    for _ in range(2):
        if not isinstance(value, str):
            break
        value, damaged = _parse(value, "arguments") if value.strip() else (None, False)
        repaired = repaired or damaged
    if value is None:
        return {}, repaired
    if not isinstance(value, dict):
        raise InvalidArguments(
            [("arguments", f"must be an object, not {preview(value, max_chars=80)}")]
        )
    try:
        return copy_json(value), repaired
    except NotJson as error:
        raise _refusal(error.path or "arguments", error.problem) from None
    except RecursionError:
        raise InvalidArguments(
            [("arguments", f"is nested deeper than {MAX_DEPTH} levels")]
        ) from None


def default_prepare_arguments(
    arguments: dict[str, Any], parameters: type[BaseModel]
) -> tuple[dict[str, Any], bool]:
    """Make what models are known to send into what the schema asks for; leave the rest as it is.

    Names in another case, null for an optional argument that is not nullable, numbers in strings,
    whole numbers with a fraction of zero, JSON text of an array or object, one object where a list
    is wanted; in nested objects too.

    Args:
        arguments: An object from `read_arguments`; it is not changed.
        parameters: The tool's arguments model.

    Returns:
        The arguments to validate, and whether JSON text in them had to be repaired.

    Raises:
        InvalidArguments: JSON text in them holds what is not JSON.
    """
    repairs: list[str] = []

    def parse(text: str) -> Any:
        value, damaged = _parse(text, "arguments")
        if damaged:
            repairs.append(text)
        return copy_json(value)

    try:
        conformed = shape_of(parameters).conform(arguments, parse)
    except NotJson as error:
        raise _refusal("arguments", str(error)) from None
    return conformed, bool(repairs)


def validate_tool_arguments(arguments: Any, parameters: type[BaseModel]) -> BaseModel:
    """Return the arguments as the tool's model, without any conversion.

    Args:
        arguments: What `prepare_arguments` made.
        parameters: The tool's arguments model.

    Raises:
        InvalidArguments: They do not fit; every problem is listed. Names that the model does not
            know are problems at the top level only.
    """
    if not isinstance(arguments, dict):
        raise InvalidArguments(
            [("arguments", f"must be an object, not {preview(arguments, max_chars=80)}")]
        )
    unknown = _unknown_names(arguments, parameters)
    try:
        params = _validate(arguments, parameters)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        if unknown:  # told already, with the names that there are
            problems = [problem for problem in problems if problem["type"] != "extra_forbidden"]
        raise InvalidArguments([*unknown, *map(_problem, problems)]) from None
    if unknown:
        raise InvalidArguments(unknown)
    return params


def _refusal(path: str, problem: str) -> InvalidArguments:
    return InvalidArguments([(path, problem)])


def _validate(arguments: dict[str, Any], parameters: type[BaseModel]) -> BaseModel:
    """Validate strictly by JSON's types: a list is right for a tuple, a string for an enum."""
    try:
        return parameters.model_validate(arguments, strict=True)
    except ValidationError:
        # Strict Python types are stricter than strict JSON types, but ten times as fast.
        return parameters.model_validate_json(to_json(arguments), strict=True)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the closest names, "" when none is close."""
    import difflib

    close = difflib.get_close_matches(name.lower()[:100], list(names), n=2, cutoff=0.5)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


_names: weakref.WeakKeyDictionary[type[BaseModel], tuple[str, ...] | None] = (
    weakref.WeakKeyDictionary()
)


def _unknown_names(arguments: dict[str, Any], parameters: type[BaseModel]) -> list[tuple[str, str]]:
    known = _names.get(parameters, ())
    if known == ():
        known = _names[parameters] = _known_names(parameters)
    if known is None or all(name in known for name in arguments):
        return []
    shown = ", ".join(shape_of(parameters).properties) or "none"
    return [
        (name[:80], f"unknown argument{did_you_mean(name, known)} (known: {shown})")
        for name in arguments
        if name not in known
    ][:10]


def _known_names(parameters: type[BaseModel]) -> tuple[str, ...] | None:
    """Return every name that the model takes at its top level; None when it takes any."""
    if parameters.model_config.get("extra") == "allow":
        return None
    names: list[str] = list(shape_of(parameters).properties)
    for name, info in parameters.model_fields.items():
        alias = info.validation_alias
        choices = alias.choices if isinstance(alias, AliasChoices) else [alias or name]
        names += [
            str(choice.path[0] if isinstance(choice, AliasPath) else choice) for choice in choices
        ]
        names.append(name)
    return tuple(dict.fromkeys(names))


_WORDS = {
    "missing": "is required",
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "finite_number": "must be a finite number",
}


def _problem(error: ErrorDetails) -> tuple[str, str]:
    where = ""
    for part in error["loc"]:
        where += f"[{part}]" if isinstance(part, int) else f".{part}" if where else part
    where = where[:200]  # keys may be of any length
    if error["type"] == "missing":
        return where, _WORDS["missing"]
    said = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    words = _WORDS.get(error["type"], f"{said[:1].lower()}{said[1:]}")
    return where or "arguments", f"{words}, not {preview(error['input'], max_chars=80)}"


def _parse(text: str, path: str) -> tuple[Any, bool]:
    """Return what JSON text holds, and whether it had to be repaired."""
    try:
        return json.loads(text, strict=False), False  # models put raw newlines into strings
    except RecursionError:
        raise _refusal(path, f"is nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        return _repair(text, path, str(error)), True


def _repair(text: str, path: str, reason: str) -> Any:
    if reason.startswith("Unterminated string"):
        raise InvalidArguments(
            [(path, "JSON text that ends within a string; send all of it again")]
        )
    if not re.match(r"\s*[\[{]", text) or len(text) > _MAX_REPAIR_CHARS:
        raise _refusal(path, f"is not JSON ({valid_text(reason)})")
    import json_repair

    try:
        value = json_repair.loads(text, skip_json_loads=True)
    except Exception:  # a parser that guesses may stumble over anything
        value = None
    if not isinstance(value, dict | list):
        raise _refusal(path, f"is not JSON ({valid_text(reason)})")
    return value
