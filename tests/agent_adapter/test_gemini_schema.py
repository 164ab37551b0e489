"""What the model sees of a tool's arguments."""

from __future__ import annotations

import json
from datetime import datetime
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from agent_adapter import ToolSchemaError, to_gemini_parameters
from agent_adapter.values import JsonObject


def shown(schema: Any, **root: Any) -> Any:
    """How one property is shown."""
    parameters = to_gemini_parameters({"type": "object", "properties": {"x": schema}, **root})
    types.Schema.model_validate(parameters)
    assert "$" not in json.dumps([key for key in keys_of(parameters) if key.startswith("$")])
    return parameters["properties"]["x"]


def keys_of(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [key for item in schema for key in keys_of(item)]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(schema, dict):
        return []
    found: list[str] = []
    for key, value in schema.items():  # pyright: ignore[reportUnknownVariableType]
        found += [] if key == "default" else [str(key), *keys_of(value)]  # pyright: ignore[reportUnknownArgumentType]
    return found


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Job(BaseModel):
    title: str


class Node(BaseModel):
    value: int
    kids: list[Node] = []


class Everything(BaseModel):
    job: Job = Field(description="What to do.")
    colour: Colour
    level: Level
    side: Literal["left", "right"] | None = None
    only: Literal["insert_row"]
    place: tuple[float, float]
    tags: dict[str, int]
    mixed: int | str
    when: datetime
    count: Annotated[int, Field(ge=1, le=9)] = 3
    optional: int | None = None


def test_a_pydantic_model_is_shown_in_the_gemini_family() -> None:
    parameters = to_gemini_parameters(Everything)
    types.Schema.model_validate(parameters)
    assert parameters == {
        "type": "OBJECT",
        "properties": {
            "job": {
                "type": "OBJECT",
                "properties": {"title": {"type": "STRING"}},
                "required": ["title"],
                "description": "What to do.",
            },
            "colour": {"type": "STRING", "enum": ["red", "blue"]},
            "level": {"type": "INTEGER", "description": "One of: 1, 2."},
            "side": {"type": "STRING", "enum": ["left", "right"], "nullable": True},
            "only": {"type": "STRING", "enum": ["insert_row"]},
            "place": {"type": "ARRAY", "items": {"type": "NUMBER"}, "minItems": 2, "maxItems": 2},
            "tags": {"type": "OBJECT"},
            "mixed": {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}]},
            "when": {"type": "STRING", "format": "date-time"},
            "count": {"type": "INTEGER", "minimum": 1, "maximum": 9, "default": 3},
            "optional": {"type": "INTEGER", "nullable": True},
        },
        "required": ["job", "colour", "level", "only", "place", "tags", "mixed", "when"],
    }


def test_the_same_schema_is_shown_the_same_way() -> None:
    assert json.dumps(to_gemini_parameters(Everything)) == json.dumps(to_gemini_parameters(Everything))


def test_the_input_is_left_as_it_was() -> None:
    schema = Everything.model_json_schema()
    before = json.dumps(schema)
    to_gemini_parameters(schema)
    assert json.dumps(schema) == before


STRING: JsonObject = {"type": "STRING"}
INTEGER: JsonObject = {"type": "INTEGER"}
NUMBER: JsonObject = {"type": "NUMBER"}
OBJECT: JsonObject = {"type": "OBJECT"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        # types
        ({"type": "OBJECT"}, OBJECT),
        ({"type": "String"}, STRING),
        ({"type": "any"}, {}),
        ({"type": "null"}, {"type": "NULL"}),
        ({"type": ["integer", "null"]}, INTEGER | {"nullable": True}),
        ({"type": ["integer", "string"]}, {"anyOf": [INTEGER, STRING]}),
        ({}, {}),
        (True, {}),
        (False, {}),
        ({"properties": {"a": {"type": "string"}}}, {"type": "OBJECT", "properties": {"a": STRING}}),
        ({"items": {"type": "string"}}, {"type": "ARRAY", "items": STRING}),
        # arrays
        ({"type": "array"}, {"type": "ARRAY", "items": {}}),
        ({"type": "array", "items": {}}, {"type": "ARRAY", "items": {}}),
        ({"type": "array", "items": True}, {"type": "ARRAY", "items": {}}),
        ({"type": "array", "prefixItems": [{"type": "number"}] * 2}, {"type": "ARRAY", "items": NUMBER}),
        (
            {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}]},
            {"type": "ARRAY", "items": {"anyOf": [NUMBER, STRING]}},
        ),
        (
            {"type": "array", "items": [{"type": "number"}, {"type": "string"}]},
            {"type": "ARRAY", "items": {"anyOf": [NUMBER, STRING]}},
        ),
        # enumerations and constants
        ({"const": "insert_row"}, STRING | {"enum": ["insert_row"]}),
        ({"const": 5}, INTEGER | {"description": "Always 5."}),
        ({"const": True}, {"type": "BOOLEAN", "description": "Always true."}),
        ({"const": None}, {"type": "NULL"}),
        ({"type": "integer", "enum": [1, 2, 3]}, INTEGER | {"description": "One of: 1, 2, 3."}),
        ({"type": "string", "enum": [1, 2]}, STRING | {"enum": ["1", "2"]}),
        ({"enum": [True, False]}, {"type": "BOOLEAN", "description": "One of: true, false."}),
        ({"enum": ["a", None]}, STRING | {"enum": ["a"], "nullable": True}),
        ({"enum": ["", "a"]}, STRING | {"description": 'One of: "", "a".'}),
        ({"enum": ["a", 1]}, {"description": 'One of: "a", 1.'}),
        ({"enum": [1, 1.5]}, NUMBER | {"description": "One of: 1, 1.5."}),
        # choices
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, INTEGER | {"nullable": True}),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, STRING | {"enum": ["a", "b"]}),
        ({"oneOf": [{"type": "integer"}, {"type": "integer"}]}, INTEGER),
        (
            {"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": True}}]},
            {"type": "OBJECT", "properties": {"a": STRING, "b": {}}, "required": ["a"]},
        ),
        (
            {
                "type": "object",
                "properties": {"a": True, "b": True},
                "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
            },
            {"type": "OBJECT", "properties": {"a": {}, "b": {}}},
        ),
        # constraints
        ({"type": "string", "format": "uri"}, STRING),
        ({"type": "integer", "format": "uint8"}, INTEGER),
        ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10}, INTEGER | {"minimum": 1, "maximum": 9}),
        ({"type": "string", "pattern": "^a+$", "minLength": 1}, STRING | {"pattern": "^a+$", "minLength": 1}),
        ({"type": "string", "pattern": "(?=a)b"}, STRING),
        ({"type": "string", "nullable": True}, STRING | {"nullable": True}),
        ({"type": "string", "default": None}, STRING),
        ({"type": "string", "default": "x"}, STRING | {"default": "x"}),
        ({"type": "object", "additionalProperties": {"type": "string"}}, OBJECT),
        ({"type": "object", "required": ["ghost"]}, OBJECT),
        ({"type": "string", "title": "X", "$comment": "c", "examples": ["e"]}, STRING),
    ],
    ids=json.dumps,
)
def test_a_property_is_shown_as(schema: Any, expected: JsonObject) -> None:
    assert shown(schema) == expected


def test_names_of_properties_are_kept_exactly() -> None:
    names = ["file-path", "x.y", "$filter", "type", "anyOf", "properties", "é"]
    parameters = to_gemini_parameters(
        {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": ["type", "ghost"]}
    )
    assert list(parameters["properties"]) == names
    assert parameters["required"] == ["type"]


# ---- references ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["$defs", "definitions"])
def test_references_are_followed(where: str) -> None:
    job = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "description": "A job."}
    expected = {"type": "OBJECT", "properties": {"a": STRING}, "required": ["a"], "description": "This job."}
    parameters = {where: {"a/b": job}, "required": ["x"]}
    described = {"$ref": f"#/{where}/a~1b", "description": "This job."}
    assert shown(described, **parameters) == expected | {"description": "This job. A job."}
    assert shown({"$ref": f"#/{where}/a~1b"}, **parameters)["description"] == "A job."


def test_what_stands_beside_a_reference_counts_too() -> None:
    schema = {"$ref": "#/$defs/Short", "minLength": 2}
    assert shown(schema, **{"$defs": {"Short": {"type": "string", "maxLength": 5}}}) == STRING | {
        "minLength": 2,
        "maxLength": 5,
    }


@pytest.mark.parametrize(
    ("ref", "told"),
    [
        ("#/$defs/Nope", r"'#/\$defs/Nope', which is not in the schema"),
        ("https://example.com/x.json", "outside the schema"),
        ("#anchor", "outside the schema"),
        (5, "of type int"),
    ],
)
def test_a_reference_that_leads_nowhere_is_an_error_with_tool_and_place(ref: Any, told: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"$ref": ref}}}}
    with pytest.raises(ToolSchemaError, match=told) as refused:
        to_gemini_parameters(schema, tool="find")
    assert refused.value.path == "$.properties.a.items"
    assert "of tool 'find' at $.properties.a.items" in refused.value.message


def test_a_circular_reference_is_followed_once_more() -> None:
    parameters = to_gemini_parameters(Node)
    inner = parameters["properties"]["kids"]["items"]
    assert inner["required"] == ["value"]
    assert inner["properties"]["kids"]["items"] == {"type": "OBJECT", "description": "Of the kind Node."}


def each_other(count: int) -> JsonObject:
    properties = {str(number): {"$ref": f"#/$defs/{number}"} for number in range(count)}
    definitions = {str(number): {"type": "object", "properties": properties} for number in range(count)}
    return {"$ref": "#/$defs/0", "$defs": definitions}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"t": {"$ref": "#"}}},
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}},
        {"$ref": "#/$defs/A", "$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}, {"type": "object"}]}}},
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}},
        each_other(8),
    ],
)
def test_every_circle_has_an_end(schema: JsonObject) -> None:
    assert to_gemini_parameters(schema)["type"] == "OBJECT"


def deep() -> JsonObject:
    schema: JsonObject = {"type": "string"}
    for _ in range(400):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def fanning(word: str) -> JsonObject:
    def twice(number: int) -> JsonObject:
        ref = {"$ref": f"#/$defs/{number + 1}"}
        return {"allOf": [ref, ref]} if word == "allOf" else {"type": "object", word: {"l": ref, "r": ref}}

    definitions = {str(number): twice(number) for number in range(30)}
    return {"$ref": "#/$defs/0", "$defs": {**definitions, "30": {"type": "object"}}}


def chained() -> JsonObject:
    links = {str(number): {"$ref": f"#/$defs/{number + 1}", "minProperties": 1} for number in range(900)}
    return {"$ref": "#/$defs/0", "$defs": {**links, "900": {"type": "object"}}}


@pytest.mark.parametrize("schema", [deep(), fanning("properties"), fanning("allOf"), chained()], ids=len)
def test_what_is_too_deep_or_too_big_is_refused(schema: JsonObject) -> None:
    with pytest.raises(ToolSchemaError, match=r"more than (64 levels|4000 parts)") as refused:
        to_gemini_parameters(schema)
    assert len(refused.value.message) < 500


# ---- the top -------------------------------------------------------------------------------------------------------


def test_no_parameters_are_an_empty_object() -> None:
    assert to_gemini_parameters({}) == {"type": "OBJECT", "properties": {}}


def test_a_choice_of_objects_at_the_top_becomes_one_object() -> None:
    branch_a = {"type": "object", "properties": {"a": {"type": "string"}, "both": True}, "required": ["a", "both"]}
    branch_b = {"type": "object", "properties": {"b": {"type": "string"}, "both": True}, "required": ["both"]}
    assert to_gemini_parameters({"oneOf": [branch_a, branch_b]}) == {
        "type": "OBJECT",
        "properties": {"a": STRING, "both": {}, "b": STRING},
        "required": ["both"],
    }


@pytest.mark.parametrize("schema", [{"type": "string"}, {"anyOf": [{"type": "object"}, {"type": "string"}]}])
def test_arguments_are_one_object(schema: JsonObject) -> None:
    with pytest.raises(ToolSchemaError, match="must be one object"):
        to_gemini_parameters(schema)


@pytest.mark.parametrize(
    "wrong",
    [5, "string", [], {"anyOf": {}}, {"oneOf": []}, {"allOf": [5]}, {"enum": "a"}, {"properties": [1]}, {"items": 5}],
)
def test_what_is_no_schema_is_an_error_with_its_place(wrong: Any) -> None:
    with pytest.raises(ToolSchemaError, match=r"^The argument schema at \$\.properties\.x"):
        shown(wrong)


words = st.sampled_from(
    ["type", "items", "properties", "anyOf", "allOf", "enum", "const", "$ref", "required", "prefixItems", "default"]
)
scraps = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["string", "object", "array", "null", "#", "#/properties/x", "", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words | st.sampled_from("xy"), inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(words, scraps, max_size=4))
def test_any_scrap_of_json_is_shown_or_refused_with_its_place(schema: JsonObject) -> None:
    assert (place_of_refusal(schema) or "$").startswith("$")


def place_of_refusal(schema: JsonObject) -> str | None:
    try:
        assert to_gemini_parameters(schema)["type"] == "OBJECT"
    except ToolSchemaError as refused:
        return refused.path
    return None
