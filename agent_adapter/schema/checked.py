"""Arguments of tools that bring a JSON Schema instead of a model: checked against all of it, shown or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from agent_adapter.errors import ToolArgsInvalid, ToolSchemaError
from agent_adapter.schema.gemini import to_gemini_parameters
from agent_adapter.values import JsonObject, NotJson, plain

MAX_LEVELS = 64
"""Of arguments, and so of what a schema can be about."""
_MAX_PLACES = 50_000
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_ONE = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_WAY_OUT = "Nothing was run. Call it again with arguments that fit its schema."
_SHOWN = 5


class CheckedSchema:
    """A JSON Schema of any draft, the OpenAPI dialect included, that arguments can be checked against.

    References lead nowhere but into the schema itself: nothing is fetched. Raises ToolSchemaError.
    """

    def __init__(self, tool: str, schema: Mapping[str, Any]) -> None:
        _check_size(tool, schema)
        to_gemini_parameters(schema, tool=tool)
        try:
            self.schema: JsonObject = plain(dict(schema))
        except NotJson as problem:
            raise ToolSchemaError(f"is no JSON: {problem}", path="$", tool=tool) from None
        self._validator = _validator(tool, _standard(self.schema))

    def check(self, tool: str, raw: Any) -> JsonObject:
        """The arguments as JSON object, as they were sent. Raises ToolArgsInvalid."""
        if not isinstance(raw, Mapping):
            raise _invalid(tool, f"they are of type {type(raw).__name__}, not an object")
        try:
            arguments: JsonObject = plain(dict(cast("Mapping[str, Any]", raw)), whole_floats_as_int=True)
        except NotJson as problem:
            raise _invalid(tool, str(problem)) from None
        if not self._validator.is_valid(arguments):
            raise _invalid(tool, self._told(arguments))
        return arguments

    def _told(self, arguments: JsonObject) -> str:
        errors = list(self._validator.iter_errors(arguments))
        told = [_line(error) for error in errors[:_SHOWN]]
        if len(errors) > _SHOWN:
            told.append(f"and {len(errors) - _SHOWN} more")
        return "; ".join(told)


def _line(error: Any) -> str:
    place = ".".join(str(step) for step in error.instance_path)
    return f"{place}: {error.message}" if place else str(error.message)


def _validator(tool: str, schema: JsonObject) -> Any:
    import jsonschema_rs  # noqa: PLC0415 - native code that most users of this library do not need

    newest, *older = (
        jsonschema_rs.Draft202012Validator,
        jsonschema_rs.Draft7Validator,
        jsonschema_rs.Draft4Validator,
    )
    options: Any = {"offline": True, "validate_formats": True, "mask": "the value"}
    try:
        return jsonschema_rs.validator_for(schema, **options)
    except (ValueError, jsonschema_rs.ReferencingError) as problem:
        refusal = problem
    for draft in older if "$schema" not in schema else [newest, *older]:
        try:
            return draft(schema, **options)
        except (ValueError, jsonschema_rs.ReferencingError):
            continue
    told = str(refusal).partition("\n")[0].rstrip(".")
    raise ToolSchemaError(f"is no JSON Schema: {told}", path="$", tool=tool) from None


def _invalid(tool: str, what: str) -> ToolArgsInvalid:
    return ToolArgsInvalid(f"The arguments of {tool!r} are not valid: {what}. {_WAY_OUT}")


def _check_size(tool: str, schema: Mapping[str, Any]) -> None:
    """Refuse what is too deep or too big before anything walks it by recursion."""
    level: list[Any] = [schema]
    places = depth = 0
    while level:
        depth += 1
        places += len(level)
        # every level of arguments takes two of a schema, the name and what is said of it
        if depth > 2 * MAX_LEVELS or places > _MAX_PLACES:
            what = f"is nested more than {MAX_LEVELS} levels deep" if depth > 2 * MAX_LEVELS else "is too big"
            raise ToolSchemaError(f"{what}. Simplify the schema", path="$", tool=tool)
        level = [part for place in level for part in _parts(place)]


def _parts(place: Any) -> Iterator[Any]:
    if isinstance(place, Mapping):
        yield from cast("Mapping[str, Any]", place).values()
    elif isinstance(place, list):
        yield from cast("list[Any]", place)


def _standard(schema: Any) -> Any:
    """The schema with the types and `nullable` of other dialects said in the words of JSON Schema."""
    if not isinstance(schema, dict):
        return schema
    found: JsonObject = {}
    for key, value in cast("JsonObject", schema).items():
        if key in _NAMED and isinstance(value, dict):
            found[key] = {name: _standard(part) for name, part in cast("JsonObject", value).items()}
        elif key in _MANY and isinstance(value, list):
            found[key] = [_standard(part) for part in cast("list[Any]", value)]
        elif key in _ONE:
            found[key] = _standard(value)
        else:
            found[key] = value
    return _with_types(found)


def _with_types(schema: JsonObject) -> JsonObject:
    stated = schema.get("type")
    if stated is None:
        return schema
    names = cast("list[Any]", stated) if isinstance(stated, list) else [stated]
    kinds = [name.lower() for name in names if isinstance(name, str) and name.lower() in _TYPES]
    rest = {key: value for key, value in schema.items() if key != "type"}
    if len(kinds) < len(names) or not kinds:
        return rest  # "any", and what else is no type of JSON
    if schema.get("nullable") is True and "null" not in kinds:
        kinds.append("null")
        if isinstance(values := rest.get("enum"), list) and None not in values:
            rest["enum"] = [*cast("list[Any]", values), None]
    return {**rest, "type": kinds[0] if len(kinds) == 1 else list(dict.fromkeys(kinds))}
