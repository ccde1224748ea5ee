"""What JSON schema asks for, compiled once per model so that arguments can be fitted to it fast."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolkit.tool import json_schema

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Shape", "shape_of"]

#: Reads JSON text; raises when it is none.
Parse = Callable[[str], Any]

_WHOLE = re.compile(r"\s*[+-]?\d{1,18}(\.0+)?\s*", re.ASCII)
_DECIMAL = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*", re.ASCII)


@dataclass(slots=True)
class Shape:
    """One node of a schema.

    Attributes:
        types: JSON types that fit; empty when anything does.
        properties: Shapes of an object's named members.
        folded: Member names by what is left of them without case and underscores.
        required: Members that may not be left out.
        closed: True when other members are refused by the model itself.
        values: Shape of the other members of an object.
        items: Shape of an array's items.
        branches: Alternatives, of which one must fit.
    """

    types: frozenset[str] = frozenset()
    properties: dict[str, Shape] = field(default_factory=dict)
    folded: dict[str, str] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    closed: bool = False
    values: Shape | None = None
    items: Shape | None = None
    branches: tuple[Shape, ...] = ()

    def accepts(self, kind: str) -> bool:
        """Return True when a value of this JSON type may fit."""
        if self.branches:
            return any(branch.accepts(kind) for branch in self.branches)
        return (
            not self.types or kind in self.types or (kind == "integer" and "number" in self.types)
        )

    def conform(self, value: Any, parse: Parse, *, nested: bool = False) -> Any:
        """Return `value` in this shape where one of the known quirks explains it, else as it is.

        Args:
            value: A JSON value; it is not changed.
            parse: Reads JSON text inside strings.
            nested: Drop members that the model refuses, instead of leaving them to validation.
        """
        if self.branches:
            return self._conform_branch(value, parse)
        kind = _json_type(value)
        if not self.accepts(kind):
            value = self._convert(value, kind, parse)
            kind = _json_type(value)
        if kind == "object" and "object" in self.types:
            return self._conform_object(value, parse, nested=nested)
        if kind == "array" and self.items is not None:
            return [self.items.conform(item, parse, nested=True) for item in value]
        return value

    def _conform_branch(self, value: Any, parse: Parse) -> Any:
        kind = _json_type(value)
        fitting = [branch for branch in self.branches if branch.accepts(kind)]
        if fitting:
            best = max(fitting, key=lambda branch: branch._overlap(value))  # noqa: SLF001
            return best.conform(value, parse, nested=True)
        for branch in self.branches:
            converted = branch.conform(value, parse, nested=True)
            if branch.accepts(_json_type(converted)):
                return converted
        return value

    def _overlap(self, value: Any) -> int:
        """Count the members of `value` that this shape knows."""
        return sum(_fold(key) in self.folded for key in value) if isinstance(value, dict) else 0

    def _conform_object(self, value: dict[str, Any], parse: Parse, *, nested: bool) -> Any:
        result: dict[str, Any] = {}
        for key, item in value.items():
            name = self._name(key, value)
            shape = self.properties.get(name)
            if shape is None:
                if not (nested and self.closed):
                    result[name] = item if self.values is None else self.values.conform(item, parse)
            elif item is None and name not in self.required and not shape.accepts("null"):
                continue  # null for "not given"
            else:
                result[name] = shape.conform(item, parse, nested=True)
        return result

    def _name(self, key: str, value: Mapping[str, Any]) -> str:
        if key in self.properties:
            return key
        name = self.folded.get(_fold(key))
        return key if name is None or name in value else name

    def _convert(self, value: Any, kind: str, parse: Parse) -> Any:
        if kind == "number" and "integer" in self.types and value.is_integer():
            return int(value)
        if kind == "object" and "array" in self.types and self._holds_objects():
            return [value]
        if kind == "string":
            return self._convert_text(value, parse)
        return value

    def _convert_text(self, text: str, parse: Parse) -> Any:
        if "integer" in self.types and _WHOLE.fullmatch(text):
            return int(float(text)) if "." in text else int(text)
        if "number" in self.types and _DECIMAL.fullmatch(text):
            return int(text) if _WHOLE.fullmatch(text) and "." not in text else float(text)
        if not {"array", "object"} & self.types or text.lstrip()[:1] not in ("[", "{"):
            return text
        value = parse(text)
        kind = _json_type(value)
        if self.accepts(kind):
            return value
        return [value] if kind == "object" and self._holds_objects() else text

    def _holds_objects(self) -> bool:
        return self.items is not None and self.items.accepts("object")


_shapes: weakref.WeakKeyDictionary[type[BaseModel], Shape] = weakref.WeakKeyDictionary()


def shape_of(parameters: type[BaseModel]) -> Shape:
    """Return the shape of an arguments model, made once per model."""
    shape = _shapes.get(parameters)
    if shape is None:
        schema = json_schema(parameters)
        shape = _shapes[parameters] = _compile(schema, schema.get("$defs", {}), {})
    return shape


def _compile(schema: Any, definitions: Mapping[str, Any], known: dict[str, Shape]) -> Shape:
    if not isinstance(schema, dict):  # true and false are schemas too
        return Shape()
    reference = schema.get("$ref")
    if reference is None:
        return _fill(Shape(), schema, definitions, known)
    name = reference.rpartition("/")[2]
    if name not in known:
        known[name] = Shape()  # in place first: a model may hold itself
        _fill(known[name], definitions.get(name, {}), definitions, known)
    return known[name]


def _fill(
    shape: Shape, schema: Mapping[str, Any], definitions: Mapping[str, Any], known: dict[str, Shape]
) -> Shape:
    alternatives = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf") or ()
    shape.branches = tuple(_compile(item, definitions, known) for item in alternatives)
    named = schema.get("type", ())
    shape.types = frozenset([named] if isinstance(named, str) else named)
    members = schema.get("properties", {})
    shape.properties = {
        name: _compile(member, definitions, known) for name, member in members.items()
    }
    shape.folded = {_fold(name): name for name in shape.properties}
    shape.required = frozenset(schema.get("required", ()))
    other = schema.get("additionalProperties")
    shape.closed = other is False
    shape.values = _compile(other, definitions, known) if isinstance(other, dict) else None
    if "items" in schema:
        shape.items = _compile(schema["items"], definitions, known)
    return shape


def _fold(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


_TYPES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


def _json_type(value: Any) -> str:
    return _TYPES.get(type(value), "other")
