"""Schemas in the family that Gemini reads, made from pydantic models and from any JSON Schema.

The result is what the model sees. What this family cannot say (constants that are no strings, free keys, conditions) is
said in a description or left out; arguments are always validated against the full schema.
"""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, TypeGuard, cast

from pydantic import BaseModel

from agent_adapter.errors import ToolSchemaError
from agent_adapter.schema.refs import resolve
from agent_adapter.values import Json, JsonObject

MAX_DEPTH = 64
MAX_NODES = 4_000
_TERSE_DEPTH = 3
"""References within references that are shown of a circular schema which is too big otherwise."""

_TYPES = {
    "string": "STRING",
    "number": "NUMBER",
    "integer": "INTEGER",
    "boolean": "BOOLEAN",
    "array": "ARRAY",
    "object": "OBJECT",
    "null": "NULL",
}
_FORMATS = {
    "STRING": frozenset({"date-time"}),
    "INTEGER": frozenset({"int32", "int64"}),
    "NUMBER": frozenset({"float", "double"}),
}
_BOUNDS = {
    "STRING": ("minLength", "maxLength"),
    "NUMBER": ("minimum", "maximum"),
    "INTEGER": ("minimum", "maximum"),
    "ARRAY": ("minItems", "maxItems"),
    "OBJECT": ("minProperties", "maxProperties"),
}
_NULL: JsonObject = {"type": "NULL"}


class _TooBig(ToolSchemaError):
    """Beyond the limits; less may be shown where the schema is circular."""


def to_gemini_parameters(
    model_or_schema: type[BaseModel] | Mapping[str, Any], *, tool: str | None = None
) -> JsonObject:
    """The `parameters` of a function declaration: an OBJECT schema with upper-case types, without `$ref`.

    The same input gives the same output, keys in the order of the input. A circular reference is followed once more
    and then shown as a plain type. Raises ToolSchemaError, which names the tool and the place, for references that lead
    nowhere, for schemas that are no schemas, and beyond 64 levels or 4,000 parts.
    """
    root = model_or_schema.model_json_schema() if isinstance(model_or_schema, type) else model_or_schema
    try:
        converted = _one_object(_converted(root))
        if converted.get("type") != "OBJECT":
            msg = f"is {converted.get('type', 'a choice')}. The arguments of a tool must be one object"
            raise ToolSchemaError(msg, path="$")  # noqa: TRY301 - the tool's name is added in one place
    except ToolSchemaError as problem:
        raise ToolSchemaError(problem.problem, path=problem.path, tool=tool) from None
    converted.setdefault("properties", {})
    return converted


def _converted(root: Mapping[str, Any]) -> JsonObject:
    converter = _Converter(root)
    try:
        return converter.convert(root, "$")
    except _TooBig:
        if not converter.is_circular:
            raise
        return _Converter(root, terse=True).convert(root, "$")


def _one_object(converted: JsonObject) -> JsonObject:
    """At the top there can be no choice: of several objects every property may be given, what all require must."""
    branches: list[JsonObject] = converted.get("anyOf", [])
    if not branches or any(branch.get("type") != "OBJECT" for branch in branches):
        return {"type": "OBJECT", **converted} if not branches else converted
    told = {key: value for key, value in converted.items() if key == "description"}
    properties = {name: value for branch in branches for name, value in branch.get("properties", {}).items()}
    required = [name for name in properties if all(name in branch.get("required", ()) for branch in branches)]
    return {"type": "OBJECT", **told, "properties": properties} | ({"required": required} if required else {})


class _Converter:
    """One pass over one schema document, bounded in depth and size."""

    def __init__(self, root: Mapping[str, Any], *, terse: bool = False) -> None:
        self._root = root
        self._terse = terse
        self.is_circular = False
        """Whether a reference led back to itself so far."""
        self._following: list[str] = []
        self._depth = 0
        self._nodes = 0

    def convert(self, schema: Any, path: str) -> JsonObject:
        if isinstance(schema, bool):
            return {}
        if not isinstance(schema, Mapping):
            msg = f"is of type {type(schema).__name__}, not a schema"
            raise ToolSchemaError(msg, path=path)
        with self._level(path):
            return self._described(cast("Mapping[str, Any]", schema), path)

    @contextmanager
    def _level(self, path: str) -> Generator[None]:
        self._depth += 1
        self._nodes += 1
        if self._depth > MAX_DEPTH:
            msg = f"is nested more than {MAX_DEPTH} levels deep. Flatten the schema"
            raise _TooBig(msg, path=_short(path))
        if self._nodes > MAX_NODES:
            msg = f"has more than {MAX_NODES} parts once its references are followed. Simplify the schema"
            raise _TooBig(msg, path="$")
        yield
        self._depth -= 1

    def _described(self, schema: Mapping[str, Any], path: str) -> JsonObject:
        converted = self._reference(schema, path) if "$ref" in schema else self._combined(schema, path)
        own: JsonObject = {}
        if isinstance(description := schema.get("description"), str) and description:
            own["description"] = _joined(description, converted.pop("description", None), known=description)
        if schema.get("default") is not None and "anyOf" not in converted and converted.get("type") != "OBJECT":
            own["default"] = schema["default"]
        return converted | own

    # ---- references ------------------------------------------------------------------------------------------------

    def _reference(self, schema: Mapping[str, Any], path: str) -> JsonObject:
        ref = schema["$ref"]
        target = resolve(self._root, ref, path=path)
        siblings = {key: value for key, value in schema.items() if key not in {"$ref", "$defs", "definitions"}}
        if self._is_followed_enough(ref):
            return _named_only(target, ref)
        self._following.append(ref)
        try:
            merged = self._merged([target, siblings], path) if _constrains(siblings) else target
            return self.convert(merged, path)
        finally:
            self._following.pop()

    def _is_followed_enough(self, ref: str) -> bool:
        times = self._following.count(ref)
        self.is_circular |= times > 0
        if self._terse:
            return times > 0 or len(self._following) >= _TERSE_DEPTH
        return times > 1

    # ---- combinations ----------------------------------------------------------------------------------------------

    def _combined(self, schema: Mapping[str, Any], path: str) -> JsonObject:
        if "allOf" in schema:
            rest = {key: value for key, value in schema.items() if key != "allOf"}
            return self.convert(self._merged([rest, *_list(schema, "allOf", path)], path), path)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return self._choice(schema, word, path)
        kinds = _kinds_of(schema)
        if len(kinds) > 1:
            branches = [{**schema, "type": kind} for kind in kinds]
            return self._choice({"anyOf": branches}, "anyOf", path)
        return self._single(schema, kinds[0] if kinds else None, path)

    def _choice(self, schema: Mapping[str, Any], word: str, path: str) -> JsonObject:
        rest = {key: value for key, value in schema.items() if key not in {word, "description", "default", "title"}}
        branches = _list(schema, word, path)
        if all(isinstance(branch, Mapping) and set(cast("JsonObject", branch)) <= {"required"} for branch in branches):
            return self._combined(rest, path)
        found: list[JsonObject] = []
        for index, branch in enumerate(branches):
            part = self._merged([rest, branch], path) if _constrains(rest) else branch
            converted = self.convert(part, f"{path}.{word}[{index}]")
            if converted not in found:
                found.append(converted)
        return _any_of(found)

    def _merged(self, parts: list[Any], path: str) -> JsonObject:
        """One schema that says what all the parts say, as far as it can be said."""
        merged: JsonObject = {}
        for part in parts:
            if isinstance(part, bool):
                continue
            if not isinstance(part, Mapping):
                msg = f"combines a value of type {type(part).__name__}, not a schema"
                raise ToolSchemaError(msg, path=path)
            self._merge_into(merged, cast("Mapping[str, Any]", part), path)
        return merged

    def _merge_into(self, merged: JsonObject, part: Mapping[str, Any], path: str) -> None:
        with self._level(path):
            if "$ref" in part:
                self._merge_reference(merged, part["$ref"], path)
        for key, value in part.items():
            if key == "properties" and isinstance(value, Mapping):
                merged[key] = {**merged.get(key, {}), **value}
            elif key in {"required", "allOf"} and isinstance(value, list):
                merged[key] = [*merged.get(key, []), *cast("list[Any]", value)]
            elif key != "$ref":
                merged[key] = value

    def _merge_reference(self, merged: JsonObject, ref: Any, path: str) -> None:
        target = resolve(self._root, ref, path=path)
        if ref in self._following:
            return
        self._following.append(ref)
        merged |= self._merged([merged, target], path)
        self._following.pop()

    # ---- one type --------------------------------------------------------------------------------------------------

    def _single(self, schema: Mapping[str, Any], kind: str | None, path: str) -> JsonObject:
        if "const" in schema or "enum" in schema:
            values = [schema["const"]] if "const" in schema else _list(schema, "enum", path)
            return _enumeration(values, kind)
        if kind is None:
            return {}
        converted: JsonObject = {"type": kind}
        if kind == "OBJECT":
            converted |= self._object(schema, path)
        elif kind == "ARRAY":
            converted |= self._array(schema, path)
        return converted | _constraints(schema, kind)

    def _object(self, schema: Mapping[str, Any], path: str) -> JsonObject:
        properties = schema.get("properties", {})
        if not isinstance(properties, Mapping):
            msg = f"has properties of type {type(properties).__name__}, not an object"
            raise ToolSchemaError(msg, path=path)
        named = cast("Mapping[str, Any]", properties)
        converted = {name: self.convert(value, f"{path}.properties.{name}") for name, value in named.items()}
        required = schema.get("required")
        listed = cast("list[Any]", required) if isinstance(required, list) else []
        known = [name for name in converted if name in listed]
        found: JsonObject = {}
        if converted:
            found["properties"] = converted
        if known:
            found["required"] = known
        return found

    def _array(self, schema: Mapping[str, Any], path: str) -> JsonObject:
        word = "items" if isinstance(schema.get("items"), list) else "prefixItems"
        if word not in schema:
            return {"items": self.convert(schema.get("items", True), f"{path}.items")}
        places = _list(schema, word, path)
        rest = schema.get("additionalItems" if word == "items" else "items")
        found: list[JsonObject] = []
        for index, item in enumerate([*places, rest] if isinstance(rest, Mapping) else places):
            converted = self.convert(item, f"{path}.{word}[{index}]")
            if converted not in found:
                found.append(converted)
        return {"items": _any_of(found)}


def _any_of(found: list[JsonObject]) -> JsonObject:
    """One schema for a choice: null becomes `nullable`, branches that say nothing say nothing together."""
    branches = [branch for branch in found if branch and branch != _NULL]
    nullable = _NULL in found or any(branch.get("nullable") for branch in branches)
    if not branches:
        return dict(_NULL) if nullable else {}
    if len(branches) == 1:
        return branches[0] | ({"nullable": True} if nullable else {})
    if all(isinstance(branch.get("enum"), list) and branch.get("type") == "STRING" for branch in branches):
        values = list(dict.fromkeys(value for branch in branches for value in branch["enum"]))
        return {"type": "STRING", "enum": values} | ({"nullable": True} if nullable else {})
    return {"anyOf": branches} | ({"nullable": True} if nullable else {})


def _kinds_of(schema: Mapping[str, Any]) -> list[str]:
    """Gemini types of a schema: the stated ones in any case, else those its keywords imply; none means any."""
    stated = schema.get("type")
    names = cast("list[Any]", stated) if isinstance(stated, list) else [stated]
    kinds = [_TYPES[name.lower()] for name in names if isinstance(name, str) and name.lower() in _TYPES]
    if kinds:
        return list(dict.fromkeys(kinds))
    if "properties" in schema:
        return ["OBJECT"]
    return ["ARRAY"] if "items" in schema or "prefixItems" in schema else []


def _enumeration(values: list[Json], kind: str | None) -> JsonObject:
    nullable: JsonObject = {"nullable": True} if None in values else {}
    present = [value for value in values if value is not None]
    if not present:
        return dict(_NULL)
    if kind == "STRING" or all(isinstance(value, str) for value in present):
        texts = list(dict.fromkeys(value if isinstance(value, str) else json.dumps(value) for value in present))
        if all(texts):
            return {"type": "STRING", "enum": texts} | nullable
    found = kind or _kind_of_values(present)
    typed: JsonObject = {"type": found} if found else {}
    told = ", ".join(json.dumps(value, ensure_ascii=False, sort_keys=True) for value in present)
    return typed | nullable | {"description": f"Always {told}." if len(present) == 1 else f"One of: {told}."}


def _kind_of_values(values: list[Json]) -> str | None:
    kinds = {_VALUE_KINDS.get(cast("type[Any]", type(value))) for value in values}
    if kinds == {"INTEGER", "NUMBER"}:
        return "NUMBER"
    return kinds.pop() if len(kinds) == 1 else None


_VALUE_KINDS: dict[type, str] = {str: "STRING", bool: "BOOLEAN", int: "INTEGER", float: "NUMBER", dict: "OBJECT"}


def _constraints(schema: Mapping[str, Any], kind: str) -> JsonObject:
    found: JsonObject = {}
    if schema.get("nullable") is True:
        found["nullable"] = True
    if schema.get("format") in _FORMATS.get(kind, ()):
        found["format"] = schema["format"]
    pattern = schema.get("pattern")
    if kind == "STRING" and isinstance(pattern, str) and "(?" not in pattern:
        found["pattern"] = pattern
    for word in _BOUNDS.get(kind, ()):
        if _is_number(value := schema.get(word)):
            found[word] = value
    if kind == "INTEGER":
        found |= _exclusive(schema)
    return found


def _exclusive(schema: Mapping[str, Any]) -> JsonObject:
    found: JsonObject = {}
    low, high = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if _is_number(low) and "minimum" not in schema:
        found["minimum"] = math.floor(low) + 1
    if _is_number(high) and "maximum" not in schema:
        found["maximum"] = math.ceil(high) - 1
    return found


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _constrains(schema: Mapping[str, Any]) -> bool:
    silent = {"description", "default", "title", "examples", "deprecated", "readOnly", "$schema", "$id", "$comment"}
    return any(key not in silent and key not in {"$defs", "definitions"} for key in schema)


def _list(schema: Mapping[str, Any], word: str, path: str) -> list[Any]:
    value = schema[word]
    if not isinstance(value, list) or not value:
        msg = f"has {word} that is not a list with elements"
        raise ToolSchemaError(msg, path=path)
    return cast("list[Any]", value)


def _joined(first: str, second: Any, *, known: str) -> str:
    return f"{first} {second}" if isinstance(second, str) and second not in known else first


def _named_only(target: Any, ref: str) -> JsonObject:
    stated = cast("Mapping[str, Any]", target).get("type") if isinstance(target, Mapping) else None
    name = ref.rsplit("/", 1)[-1].lstrip("#") or "the whole"
    return {"type": _TYPES.get(str(stated).lower(), "OBJECT"), "description": f"Of the kind {name}."}


def _short(path: str) -> str:
    return path if len(path) <= 200 else f"{path[:100]}…{path[-99:]}"
