from __future__ import annotations

from typing import Any

import pydantic_core
import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.payload import MAX_LEG, MAX_VALUE, NotStorableError, check_value, fitting, plain, stored_bytes


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "\ud800", {"\ud800": 1}, object(), b"\xff", nested(198), nested(300)]
)
def test_what_history_could_not_give_back_is_refused(value: Any) -> None:
    with pytest.raises(NotStorableError):
        stored_bytes({"value": value})


def test_a_value_may_have_a_mebibyte() -> None:
    assert check_value("x" * (MAX_VALUE - 2)) == MAX_VALUE
    with pytest.raises(NotStorableError, match=f"{MAX_VALUE + 1} bytes, {MAX_VALUE} are allowed"):
        check_value("x" * (MAX_VALUE - 1))


@given(st.lists(st.integers(0, MAX_VALUE + 10), max_size=5))
def test_the_events_that_fit_are_the_longest_beginning_within_the_limits(sizes: list[int]) -> None:
    events = ["x" * max(0, size - 2) for size in sizes]
    count, problem = fitting(events)
    real = [len(pydantic_core.to_json(event)) for event in events]
    assert all(size <= MAX_VALUE for size in real[:count])
    assert sum(real[:count]) <= MAX_LEG
    if problem is None:
        assert count == len(events)
    else:
        assert real[count] > MAX_VALUE or sum(real[: count + 1]) > MAX_LEG


def test_an_event_that_is_not_json_ends_what_fits() -> None:
    count, problem = fitting([{"id": "1"}, {"id": float("nan")}, {"id": "3"}])
    assert count == 1
    assert problem
    assert "cannot be stored" in problem


def test_the_text_of_a_guest_is_cut_and_made_valid() -> None:
    assert plain("a\ud800b" + "x" * 10_000).startswith("a?b")
    assert len(plain("x" * 10_000)) == 4000
