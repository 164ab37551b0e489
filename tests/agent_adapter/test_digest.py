"""Digests: equal calls have equal ones, different calls different ones."""

from __future__ import annotations

from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from agent_adapter import ToolContext, ToolSpec
from agent_adapter.approval.digest import call_digest, canonical_json, digest

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.text(st.characters(max_codepoint=0x1F))
)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)


@given(json_values)
def test_the_canonical_form_is_that_of_rfc_8785(value: Any) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


@given(st.dictionaries(st.text(), scalars, max_size=5).flatmap(lambda value: st.permutations(list(value.items()))))
def test_the_order_of_keys_makes_no_difference(items: list[tuple[str, Any]]) -> None:
    assert digest(dict(items)) == digest(dict(sorted(items)))


@given(json_values, json_values)
def test_different_values_differ(one: Any, other: Any) -> None:
    assert (digest(one) == digest(other)) == (rfc8785.dumps(one) == rfc8785.dumps(other))


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 2**53, -(2**53), "\ud800", b"", {1: 2}, {"\ud800": 1}, len]
)
def test_what_has_no_canonical_form_is_refused(value: Any) -> None:
    for nested in (value, [value], {"a": value}):
        with pytest.raises(ValueError, match=r".+"):
            canonical_json(nested)


def test_every_part_of_a_call_counts() -> None:
    call: dict[str, Any] = {
        "thread": "t",
        "run": "r",
        "call": "c",
        "tool": "x",
        "fingerprint": "f",
        "arguments": {"a": 1},
    }
    digests = {call_digest(**call)}
    for part in call:
        changed: dict[str, Any] = call | {part: {"a": 2} if part == "arguments" else "other"}
        digests.add(call_digest(**changed))
    assert len(digests) == 7


def test_neighbouring_parts_do_not_run_into_each_other() -> None:
    same: dict[str, Any] = {"tool": "x", "fingerprint": "f", "arguments": {}}
    assert call_digest(thread="a", run="bc", call="d", **same) != call_digest(thread="ab", run="c", call="d", **same)


@given(st.integers(-(2**53) + 1, 2**53 - 1), st.text(), st.lists(st.integers(0, 5)))
def test_equal_arguments_have_one_digest_however_they_were_sent(number: int, text: str, values: list[int]) -> None:
    def act(number: int, text: str, values: list[int], more: bool = False) -> None: ...

    spec, context = ToolSpec(function=act), ToolContext(run="r", call="c")
    ways: list[dict[str, Any]] = [
        {"number": number, "text": text, "values": values},
        {"values": tuple(values), "more": False, "text": text, "number": number},
        {"text": text, "number": float(number), "values": [float(value) for value in values], "more": False},
    ]
    digests = {
        call_digest(thread="", run=context.run, call="c", tool="act", fingerprint="", arguments=spec.validate(way))
        for way in ways
    }
    assert len(digests) == 1


def test_the_idempotency_key_is_the_calls_own() -> None:
    one = ToolContext(thread="t", run="r", call="c")
    assert one.idempotency_key == ToolContext(thread="t", run="r", call="c", attempt=2).idempotency_key
    others = [ToolContext(thread="t", run="r", call="d"), ToolContext(thread="t", run="rc", call=""), ToolContext()]
    assert len({context.idempotency_key for context in [one, *others]}) == 4
    assert ToolContext(idempotency_key="mine").idempotency_key == "mine"
