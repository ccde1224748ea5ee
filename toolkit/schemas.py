"""Tools as the model APIs want to be told of them: flat schemas in each vendor's wrapping."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

from toolkit.tool import json_schema

if TYPE_CHECKING:
    from toolkit.tool import Tool

__all__ = ["SCHEMA_FORMATS", "SchemaFormat", "tool_schemas"]

SchemaFormat = Literal["json", "anthropic", "openai", "openai-responses", "gemini", "mcp"]
SCHEMA_FORMATS: tuple[SchemaFormat, ...] = get_args(SchemaFormat)

Schema = dict[str, Any]

#: What strict modes take of JSON schema; bounds are told in words there, and checked here anyway.
_STRICT_KEYS = frozenset({
    *("type", "description", "enum", "const", "anyOf", "items", "properties", "required"),
    "additionalProperties",
})  # fmt: skip
#: What Gemini's own Schema type has.
_GEMINI_KEYS = frozenset({
    *("type", "description", "nullable", "enum", "anyOf", "items", "minItems", "maxItems"),
    *("properties", "required", "minimum", "maximum", "minLength", "maxLength", "pattern"),
})  # fmt: skip
_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "at least {} long",
    "maxLength": "at most {} long",
    "minItems": "at least {} of them",
    "maxItems": "at most {} of them",
}


def tool_schemas(
    tools: Iterable[Tool], schema_format: SchemaFormat = "json", *, strict: bool = False
) -> list[Schema]:
    """Return what a model API gets as its list of tools.

    Args:
        tools: Any layer of tools.
        schema_format: "json": name, description, parameters; "anthropic": the Messages API;
            "openai": Chat Completions; "openai-responses": the Responses API; "gemini": one entry
            with all function declarations; "mcp": what an MCP server lists.
        strict: For modes that hold a model to the schema: every argument is required, those that
            may be left out may be null instead, and bounds stand in the descriptions.

    Returns:
        Plain JSON values, without `$ref`.
    """
    wrap = _WRAPPERS[schema_format]
    wrapped = [wrap(tool, _parameters(tool, strict=strict), strict) for tool in tools]
    return [{"functionDeclarations": wrapped}] if schema_format == "gemini" else wrapped


def _parameters(tool: Tool, *, strict: bool) -> Schema:
    schema = json_schema(tool.parameters)
    flat = _flat(schema, schema.get("$defs", {}))
    flat.pop("description", None)  # it says "Arguments of ..."
    return _strict(flat) if strict else flat


def _flat(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a schema with every reference replaced by what it refers to, and without titles."""
    if isinstance(schema, list):
        return [_flat(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        definition = definitions[schema["$ref"].removeprefix("#/$defs/")]
        # An item's own docstring tells less than what the field says of it.
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return _flat({**definition, **rest}, definitions)
    flat = {
        key: (
            {name: _flat(member, definitions) for name, member in value.items()}
            if key == "properties"
            else _flat(value, definitions)
        )
        for key, value in schema.items()
        if key not in ("$defs", "title")
    }
    return _without_null(flat)


def _without_null(schema: Schema) -> Schema:
    """Return an optional argument's schema as that of its value: it can be left out instead."""
    branches = schema.get("anyOf")
    if branches is None or {"type": "null"} not in branches or schema.get("default", 0) is not None:
        return schema
    others = [branch for branch in branches if branch != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**others[0], **rest} if len(others) == 1 else {**rest, "anyOf": others}


def _strict(schema: Schema) -> Schema:
    """Return a schema in which every argument is required, if need be as null."""
    strict = {key: value for key, value in schema.items() if key in _STRICT_KEYS}
    said = [text.format(schema[bound]) for bound, text in _BOUNDS.items() if bound in schema]
    if schema.get("default") is not None:
        said.append(f"{_as_json(schema['default'])} by default")
    if said:
        description = schema.get("description", "")
        strict["description"] = f"{description} ({', '.join(said)})".strip()
    if "items" in schema:
        strict["items"] = _strict(schema["items"])
    if "anyOf" in schema:
        strict["anyOf"] = [_strict(branch) for branch in schema["anyOf"]]
    if "properties" in schema:
        required = schema.get("required", ())
        strict["properties"] = {
            name: _strict(member) if name in required else _nullable(_strict(member))
            for name, member in schema["properties"].items()
        }
        strict["required"] = list(schema["properties"])
        strict["additionalProperties"] = False
    return strict


def _nullable(schema: Schema) -> Schema:
    """Return a schema that takes null too; as a branch, which every vendor's mode knows."""
    inner = {key: value for key, value in schema.items() if key != "description"}
    outer = {"description": schema["description"]} if "description" in schema else {}
    return {**outer, "anyOf": [*inner.get("anyOf", [inner]), {"type": "null"}]}


def _as_json(value: Any) -> str:
    import json

    return json.dumps(value)


def _json(tool: Tool, parameters: Schema, strict: bool) -> Schema:  # noqa: FBT001
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def _anthropic(tool: Tool, parameters: Schema, strict: bool) -> Schema:  # noqa: FBT001
    told = {"name": tool.name, "description": tool.description, "input_schema": parameters}
    return {**told, "strict": True} if strict else told


def _openai(tool: Tool, parameters: Schema, strict: bool) -> Schema:  # noqa: FBT001
    return {"type": "function", "function": {**_json(tool, parameters, strict), "strict": strict}}


def _openai_responses(tool: Tool, parameters: Schema, strict: bool) -> Schema:  # noqa: FBT001
    return {"type": "function", **_json(tool, parameters, strict), "strict": strict}


def _gemini(tool: Tool, parameters: Schema, strict: bool) -> Schema:  # noqa: FBT001
    return _json(tool, _as_gemini(parameters), strict)


def _as_gemini(schema: Schema) -> Schema:
    """Return a schema in Gemini's dialect: types in capitals, null as a property of its own."""
    told = {key: value for key, value in schema.items() if key in _GEMINI_KEYS}
    if "type" in schema:
        told["type"] = schema["type"].upper()
    if "items" in schema:
        told["items"] = _as_gemini(schema["items"])
    if "anyOf" in schema:
        branches = [branch for branch in schema["anyOf"] if branch != {"type": "null"}]
        if len(branches) < len(schema["anyOf"]):
            told["nullable"] = True
        if len(branches) == 1:
            del told["anyOf"]
            return {**told, **_as_gemini(branches[0])}
        told["anyOf"] = [_as_gemini(branch) for branch in branches]
    if "properties" in schema:
        told["properties"] = {name: _as_gemini(one) for name, one in schema["properties"].items()}
    return told


def _mcp(tool: Tool, parameters: Schema, strict: bool) -> Schema:  # noqa: FBT001
    return {"name": tool.name, "description": tool.description, "inputSchema": parameters}


_WRAPPERS: Mapping[SchemaFormat, Callable[[Tool, Schema, bool], Schema]] = {
    "json": _json,
    "anthropic": _anthropic,
    "openai": _openai,
    "openai-responses": _openai_responses,
    "gemini": _gemini,
    "mcp": _mcp,
}
