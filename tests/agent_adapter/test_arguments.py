"""What counts as valid arguments, and what a tool gets for them."""

from __future__ import annotations

from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator

from agent_adapter import Executor, ToolArgsInvalid, ToolRegistry, ToolSpec

Sides = Literal["left", "right"]


class Colour(Enum):
    RED = "red"


class Address(BaseModel):
    street: str
    number: int = 1


def add(a: int, b: int = 1) -> int:
    return a + b


def spec(function: Any = add, **options: Any) -> ToolSpec:
    return ToolSpec(function=function, effect="read", **options)


@pytest.mark.parametrize(
    "raw",
    [
        {"a": "7"},
        {"a": None},
        {"a": {"b": 1}},
        {"a": True},
        {"a": 7.5},
        {},
        {"a": 1, "extra": 1},
        {"a": [1]},
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": b"7"},
        {"a": 1, 2: 3},
        [1],
        "a",
        None,
    ],
    ids=repr,
)
def test_what_is_not_what_the_schema_says_is_refused(raw: Any) -> None:
    with pytest.raises(ToolArgsInvalid) as refused:
        spec().validate(raw)
    assert refused.value.as_result()["error"]["kind"] == "tool-args-invalid"
    assert "'add'" in refused.value.message


def test_a_whole_float_is_the_integer() -> None:
    arguments = spec().validate({"a": 7.0})
    assert arguments == {"a": 7, "b": 1}
    assert type(arguments["a"]) is int


@pytest.mark.parametrize("number", [2**53, -(2**53), 2**70])
def test_an_integer_beyond_2_to_53_is_refused_with_the_advice_to_use_a_string(number: int) -> None:
    with pytest.raises(ToolArgsInvalid, match=r"beyond 2\*\*53.*use a string"):
        spec().validate({"a": number})


def test_the_biggest_safe_integer_passes() -> None:
    assert spec().validate({"a": 2**53 - 1})["a"] == 2**53 - 1


def test_a_lone_surrogate_is_refused() -> None:
    def echo(text: str) -> str:
        return text

    with pytest.raises(ToolArgsInvalid, match="lone surrogate"):
        spec(echo).validate({"text": "\ud800"})


def test_deep_nesting_is_refused() -> None:
    def take(value: dict[str, Any]) -> None: ...

    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"a": deep}
    with pytest.raises(ToolArgsInvalid, match="64 deep"):
        spec(take).validate({"value": deep})


async def test_a_tool_gets_python_values_of_its_own_types() -> None:
    registry = ToolRegistry()

    @registry.tool(effect="read")
    def book(day: date, colour: Colour, side: Sides, to: Address, places: tuple[int, int]) -> str:
        return f"{day.year} {colour.name} {side} {to.street} {to.number} {places}"

    raw = {"day": "2026-02-01", "colour": "red", "side": "left", "to": {"street": "A"}, "places": [1, 2]}
    assert await Executor(registry).run("book", raw) == "2026 RED left A 1 (1, 2)"
    validated = registry["book"].validate(raw)
    assert validated == {**raw, "to": {"street": "A", "number": 1}}
    assert registry["book"].validate(validated) == validated


async def test_none_as_default_makes_the_argument_optional() -> None:
    registry = ToolRegistry()

    @registry.tool(effect="read")
    def find(limit: int = None) -> str:  # pyright: ignore[reportArgumentType]  # noqa: RUF013
        return repr(limit)

    assert registry["find"].validate({}) == {"limit": None}
    assert await Executor(registry).run("find", registry["find"].validate({})) == "None"


async def test_any_parameter_name_is_legal() -> None:
    registry = ToolRegistry()

    @registry.tool(effect="read")
    def odd(schema: str, model_config: int, _hidden: int, copy: bool = False) -> list[Any]:
        return [schema, model_config, _hidden, copy]

    raw = {"schema": "s", "model_config": 1, "_hidden": 2}
    assert await Executor(registry).run("odd", raw) == ["s", 1, 2, False]
    assert list(registry["odd"].parameters["properties"]) == ["schema", "model_config", "_hidden", "copy"]


async def test_a_given_model_reaches_the_function_whole_or_by_field() -> None:
    registry = ToolRegistry()

    def whole(address: Address) -> str:
        return address.street

    def by_field(street: str, number: int) -> str:
        return f"{street} {number}"

    registry.add(spec(whole, arguments=Address))
    registry.add(spec(by_field, arguments=Address))
    executor = Executor(registry)
    assert await executor.run("whole", {"street": "A"}) == "A"
    assert await executor.run("by_field", {"street": "A"}) == "A 1"
    with pytest.raises(ToolArgsInvalid, match="extra"):
        await executor.run("whole", {"street": "A", "extra": 1})


def test_constraints_and_validators_of_the_author_hold() -> None:
    class Amount(BaseModel):
        euros: Annotated[int, Field(gt=0)]

        @field_validator("euros")
        @classmethod
        def _even(cls, value: int) -> int:
            if value % 2:
                msg = "must be even"
                raise ValueError(msg)
            return value

    def pay(amount: Amount) -> None: ...

    tool = spec(pay, arguments=Amount)
    for euros in (0, 3):
        with pytest.raises(ToolArgsInvalid):
            tool.validate({"euros": euros})
    assert tool.validate({"euros": 2}) == {"euros": 2}


def test_a_validator_that_breaks_refuses_without_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken(BaseModel):
        euros: int

        @field_validator("euros")
        @classmethod
        def _break(cls, value: int) -> int:
            raise RuntimeError("MARKER")

    def pay(euros: int) -> None: ...

    with pytest.raises(ToolArgsInvalid) as refused:
        spec(pay, arguments=Broken).validate({"euros": 2})
    assert "MARKER" not in refused.value.message
    assert "MARKER" in capsys.readouterr().out


def test_many_problems_are_told_in_short() -> None:
    def many(*, a: int, b: int, c: int, d: int, e: int, f: int, g: int) -> None: ...

    with pytest.raises(ToolArgsInvalid, match="and 2 more"):
        spec(many).validate({})


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(json_values)
def test_validated_arguments_validate_to_themselves(value: Any) -> None:
    def take(value: Any) -> None: ...

    once = spec(take).validate({"value": value})
    assert spec(take).validate(once) == once
    assert once == {"value": value}
