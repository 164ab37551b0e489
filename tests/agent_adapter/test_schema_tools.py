"""Tools whose arguments are described by a JSON Schema: what a model is shown, and what is checked for real."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_adapter import (
    ApprovalDecision,
    CallbackApproval,
    Executor,
    Replace,
    ToolArgsInvalid,
    ToolContext,
    ToolRegistry,
    ToolSchemaError,
    ToolSpec,
    ToolUsageError,
    to_gemini_parameters,
)
from agent_adapter.guards import CallableGuard
from agent_adapter.schema.names import LEGAL, is_reserved, legal_names
from agent_adapter.values import JsonObject


def echo(arguments: dict[str, Any]) -> JsonObject:
    """Say it again."""
    return arguments


def tool(schema: Mapping[str, Any], **options: Any) -> ToolSpec:
    return ToolSpec(function=echo, arguments=schema, effect="read", **options)


def with_property(schema: Any) -> JsonObject:
    return {"type": "object", "properties": {"p": schema}, "required": ["p"]}


# A row of what people meet in the field: the schema of one property, what fits it, and what does not.
FIELD: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "D06-integers": ({"type": "integer", "enum": [1, 2, 3]}, [1, 3], [4, "1", 1.5]),
    "D06-integers-on-a-string": ({"type": "string", "enum": ["1", "2"]}, ["1"], [1]),
    "D06-booleans": ({"type": "boolean", "enum": [True]}, [True], [False, "true"]),
    "D06-null": ({"enum": ["a", None]}, ["a", None], ["b"]),
    "D08": ({"const": "insert_row"}, ["insert_row"], ["other", None]),
    "D11-prefix": ({"type": "array", "prefixItems": [{"type": "number"}] * 2}, [[1, 2.5]], [["1", 2]]),
    "D11-list": ({"type": "array", "items": [{"type": "number"}, {"type": "string"}]}, [[1, "a"]], [["a", 1]]),
    "D13-none": ({}, [1, "a", None, {}], []),
    "D13-true": (True, [1], []),
    "D13-items": ({"type": "array", "items": True}, [[1, "a"]], ["a"]),
    "D14-uri": ({"type": "string", "format": "uri"}, ["https://a.example"], [5, "not a uri"]),
    "D14-uint8": ({"type": "integer", "format": "uint8"}, [5], ["5"]),
    "D14-date": ({"type": ["string", "null"], "format": "date-time"}, ["2026-02-01T00:00:00Z", None], ["tomorrow"]),
    "D18-upper": ({"type": "STRING"}, ["a"], [1]),
    "D18-any": ({"type": "any"}, [1, "a"], []),
    "D18-null": ({"type": "null"}, [None], [1]),
    "D19-no-type": ({"properties": {"a": {"type": "integer"}}}, [{"a": 1}], [{"a": "1"}]),
    "D19-required": (
        {"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        [{"a": 1}, {"b": 1}],
        [{}],
    ),
    "D23-ghost": ({"type": "object", "properties": {"a": {}}, "required": ["a"]}, [{"a": 1}], [{}]),
    "openapi-nullable": ({"type": "string", "nullable": True, "enum": ["a"]}, ["a", None], ["b"]),
    "draft-4-bounds": ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, [2], [1]),
    "conditions": ({"if": {"type": "string"}, "then": {"minLength": 2}}, ["ab", 5], ["a"]),
    "free-keys": ({"type": "object", "additionalProperties": {"type": "integer"}}, [{"x": 1}], [{"x": "1"}]),
    "patterns": ({"type": "object", "patternProperties": {"^n": {"type": "number"}}}, [{"n1": 1}], [{"n1": "a"}]),
    "not": ({"type": "string", "not": {"const": "root"}}, ["ana"], ["root"]),
}


@pytest.mark.parametrize("name", FIELD)
async def test_what_a_model_cannot_be_shown_is_still_checked(name: str) -> None:
    schema, good, bad = FIELD[name]
    spec = tool(with_property(schema))
    executor = Executor(ToolRegistry([spec]))
    for value in good:
        assert await executor.run("echo", {"p": value}) == {"p": value}
    for value in bad:
        with pytest.raises(ToolArgsInvalid, match="Nothing was run"):
            await executor.run("echo", {"p": value})
    assert to_gemini_parameters(spec.parameters) == to_gemini_parameters(with_property(schema))


TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/Node"}},
    "required": ["root"],
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            },
            "required": ["name"],
        }
    },
}


async def test_a_circular_schema_is_checked_at_every_depth_though_a_model_sees_two() -> None:
    executor = Executor(ToolRegistry([tool(TREE)]))
    deep: JsonObject = {"name": "leaf"}
    for _ in range(12):
        deep = {"name": "node", "kids": [deep]}
    assert await executor.run("echo", {"root": deep}) == {"root": deep}
    place = deep
    while "kids" in place:
        place = place["kids"][0]
    place["name"] = 5
    with pytest.raises(ToolArgsInvalid, match=r"root\.kids\.0\.kids"):
        await executor.run("echo", {"root": deep})


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (with_property({"$ref": "#/$defs/Nope"}), "is not in the schema"),
        (with_property({"$ref": "https://example.com/s.json"}), "outside the schema"),
        (with_property({"$ref": 5}), "of type int"),
        (with_property({"type": "string", "pattern": "("}), "no JSON Schema"),
        (with_property({"minLength": "x"}), "no JSON Schema"),
        ({"type": "array"}, "must be one object"),
        (with_property(float("nan")), "not a schema"),
    ],
)
def test_a_schema_that_cannot_be_used_is_named_with_its_tool(schema: JsonObject, told: str) -> None:
    with pytest.raises(ToolSchemaError, match=told) as refused:
        tool(schema)
    assert "'echo'" in refused.value.message
    assert refused.value.path.startswith("$")


def deep(levels: int) -> JsonObject:
    schema: JsonObject = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def fanning(levels: int) -> JsonObject:
    defs: JsonObject = {f"D{levels}": {"type": "string"}}
    for level in range(levels):
        following = {"$ref": f"#/$defs/D{level + 1}"}
        defs[f"D{level}"] = {"type": "object", "properties": {"a": following, "b": following}}
    return {**with_property({"$ref": "#/$defs/D0"}), "$defs": defs}


@pytest.mark.parametrize("schema", [deep(400), deep(100_000), fanning(40)], ids=["400", "100000", "fanning"])
def test_what_is_too_deep_or_fans_out_is_refused(schema: JsonObject) -> None:
    with pytest.raises(ToolSchemaError, match=r"levels deep|parts"):
        tool(schema)
    while schema.get("properties"):  # freed level by level: Python frees nested ones by recursion
        schema = schema["properties"].popitem()[1]


CIRCLES: dict[str, JsonObject] = {
    "itself": {"type": "object", "$ref": "#"},
    "each-other": {
        **with_property({"$ref": "#/$defs/A"}),
        "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
    },
    "a-choice": {
        **with_property({"$ref": "#/$defs/A"}),
        "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "object"}]}},
    },
}


@pytest.mark.parametrize("name", CIRCLES)
def test_a_reference_that_leads_back_without_an_end_ends_all_the_same(name: str) -> None:
    assert tool(CIRCLES[name]).validate({"p": {}}) == {"p": {}}


def test_one_bad_tool_takes_no_other_down() -> None:
    registry = ToolRegistry()
    registry.add(tool(with_property({"type": "string"}), name="good"))
    with pytest.raises(ToolSchemaError, match="'bad'"):
        registry.add(tool(with_property({"$ref": "#/x"}), name="bad"))
    registry.add(tool(with_property({"type": "string"}), name="better"))
    assert [spec.name for spec in registry] == ["good", "better"]


async def test_a_function_may_take_keywords_and_the_context() -> None:
    async def keywords(context: ToolContext, **rest: Any) -> Any:
        return [context.run, rest]

    schema = {"type": "object", "properties": {"file-path": {"type": "string"}, "type": {"type": "string"}}}
    spec = ToolSpec(function=keywords, arguments=schema, effect="read")
    executor = Executor(ToolRegistry([spec]))
    found = await executor.run("keywords", {"file-path": "a", "type": "b"}, ToolContext(run="r1"))
    assert found == ["r1", {"file-path": "a", "type": "b"}]


def takes_two(one: str, other: str) -> None:
    """Takes two."""


def takes_none() -> None:
    """Takes none."""


@pytest.mark.parametrize("function", [takes_none, takes_two, len, print])
def test_another_function_cannot_take_it(function: Any) -> None:
    with pytest.raises(ToolUsageError):
        ToolSpec(name="other", function=function, arguments={"type": "object"})


async def test_a_tool_cannot_change_what_was_approved() -> None:
    def spoil(arguments: dict[str, Any]) -> str:
        """Change them."""
        arguments["p"] = "changed"
        return "done"

    seen: list[JsonObject] = []
    spec = ToolSpec(function=spoil, arguments=with_property({"type": "string"}), confirm=True)
    executor = Executor(ToolRegistry([spec]), approval=CallbackApproval(lambda request: True))
    prepared = await executor.prepare(spec, {"p": "a"}, ToolContext())
    await executor.run("spoil", {"p": "a"})
    seen.append(prepared.arguments)
    assert seen == [{"p": "a"}]


async def test_edits_and_replacements_are_checked_against_the_whole_schema() -> None:
    spec = tool(with_property({"type": "string", "not": {"const": "root"}}), confirm=True)
    edit = ApprovalDecision(approved=True, edited_args={"p": "root"})
    executor = Executor(ToolRegistry([spec]), approval=CallbackApproval(lambda request: edit))
    with pytest.raises(ToolArgsInvalid):
        await executor.run("echo", {"p": "ana"})
    replaces = CallableGuard(lambda arguments, context: Replace({"p": "root"}))
    executor = Executor(ToolRegistry([spec]), guards=[replaces], approval=CallbackApproval(lambda request: True))
    with pytest.raises(ToolArgsInvalid):
        await executor.run("echo", {"p": "ana"})


async def test_many_problems_are_told_in_short_and_without_the_values() -> None:
    schema = {"type": "object", "properties": {f"p{n}": {"type": "integer"} for n in range(8)}}
    executor = Executor(ToolRegistry([tool(schema)]))
    with pytest.raises(ToolArgsInvalid, match="and 3 more") as refused:
        await executor.run("echo", {f"p{n}": "marker" for n in range(8)})
    assert "marker" not in refused.value.message


def test_another_schema_is_another_tool_to_a_person() -> None:
    one, other = tool(with_property({"type": "string"})), tool(with_property({"type": "string", "maxLength": 5}))
    assert one.fingerprint != other.fingerprint
    assert one.fingerprint == tool(with_property({"type": "string"})).fingerprint


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("a-b.c_D", "a-b.c_D"),
        ("1abc", "_1abc"),
        ("a b", "a_b"),
        ("a/b:c", "a_b_c"),
        ("é", "_"),
        ("transfer_to_agent", "_transfer_to_agent"),
        ("adk_x", "_adk_x"),
        ("", "_"),
    ],
)
def test_a_name_that_is_not_legal_becomes_one_that_looks_like_it(name: str, legal: str) -> None:
    assert legal_names([name]) == {name: legal}


@given(names=st.lists(st.text(max_size=80) | st.sampled_from(["a b", "a/b", "a_b", "x" * 70, "x" * 71])))
def test_names_are_legal_and_unique_in_whatever_order(names: list[str]) -> None:
    found = legal_names(names)
    assert list(found) == list(dict.fromkeys(names))
    assert len(set(found.values())) == len(found)
    for name, legal in found.items():
        assert LEGAL.fullmatch(legal)
        assert not is_reserved(legal)
        if LEGAL.fullmatch(name) and not is_reserved(name):
            assert legal == name
        assert re.fullmatch(r"[A-Za-z0-9_.-]+", legal)
    assert legal_names(reversed(names)) == found
