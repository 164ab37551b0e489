"""What a tool may return."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agent_adapter import Executor, ToolContext, ToolError, ToolRegistry, ToolSpec
from agent_adapter.values import NotJson, dumped, plain


class Place(BaseModel):
    name: str
    since: date = date(2026, 2, 1)


@dataclass
class Trip:
    to: Place
    days: tuple[int, ...] = (1, 2)


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Text(str):
    __slots__ = ()


async def returned(value: Any, **options: Any) -> Any:
    async def act() -> Any:
        return value

    spec = ToolSpec(function=act, **options)
    return await Executor(ToolRegistry([spec])).run_spec(spec, {}, ToolContext())


PLACE = {"name": "A", "since": "2026-02-01"}


RESULTS: list[tuple[Any, Any]] = [
    (None, None),
    ({"a": [1, 2.5, True, None, "é"]}, {"a": [1, 2.5, True, None, "é"]}),
    ((1, 2), [1, 2]),
    (Place(name="A"), PLACE),
    ([Place(name="A")], [PLACE]),
    (Trip(to=Place(name="A")), {"to": PLACE, "days": [1, 2]}),
    ({"colour": Colour.RED, "level": Level.HIGH}, {"colour": "red", "level": 3}),
    (OrderedDict(a=1), {"a": 1}),
    (Text("x"), "x"),
    ({"$ref": "#/$defs/A", "$defs": {}}, {"$ref": "#/$defs/A", "$defs": {}}),
]


@pytest.mark.parametrize(("value", "result"), RESULTS, ids=repr)
async def test_json_values_models_dataclasses_and_enums_are_results(value: Any, result: Any) -> None:
    assert await returned(value) == result


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        b"bytes",
        "\ud800",
        {"\ud800": 1},
        {1: "one"},
        {1, 2},
        2**53,
        datetime(2026, 2, 1, tzinfo=UTC),
        Decimal(1),
        Decimal,
        len,
        {"deep": [{"in": {"it": b""}}]},
        Place.model_construct(name=math.nan),
    ],
    ids=repr,
)
async def test_anything_else_is_an_error_that_names_the_tool(value: Any) -> None:
    with pytest.raises(ToolError, match="'act' has run, but its result") as failed:
        await returned(value, effect="read")
    assert not failed.value.outcome_unknown
    assert failed.value.started


async def test_a_write_whose_result_cannot_be_shown_is_not_reported_as_undone() -> None:
    with pytest.raises(ToolError) as failed:
        await returned(b"")
    assert failed.value.outcome_unknown


async def test_the_place_of_the_fault_is_told() -> None:
    with pytest.raises(ToolError, match=r"its result at deep\.0\.in\.it: is of type bytes"):
        await returned({"deep": [{"in": {"it": b""}}]})


async def test_a_result_that_contains_itself_is_an_error() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ToolError, match="nested more than 64 deep"):
        await returned(loop)


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
def test_a_json_value_is_copied_as_it_is(value: Any) -> None:
    assert dumped(value) == value
    assert plain(value) == value


@given(st.recursive(st.none() | st.binary(max_size=1) | st.floats() | st.sampled_from(["a", "\ud800"]), st.lists))
def test_a_value_has_a_canonical_form_or_is_refused(value: Any) -> None:
    from agent_adapter.approval.digest import canonical_json

    try:
        copy = dumped(value)
    except NotJson:
        return
    assert canonical_json(copy)
