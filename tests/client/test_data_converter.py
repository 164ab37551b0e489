"""The data converter makes and reads what Temporal's pydantic converter does, without being made anew each time."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import WorkflowSerializationContext

from client.data_converter import DATA_CONVERTER
from workflows.messages import RunRequest

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
CONTEXT = WorkflowSerializationContext(namespace="default", workflow_id="thread-1")


@given(JSON)
def test_payloads_are_those_of_temporals_converter(value: Any) -> None:
    ours, theirs = DATA_CONVERTER.payload_converter, pydantic_data_converter.payload_converter
    assert ours.to_payloads([value]) == theirs.to_payloads([value])
    message = RunRequest(message=value)
    (payload,) = ours.to_payloads([message])
    assert [payload] == theirs.to_payloads([message])
    assert ours.from_payloads([payload], [RunRequest]) == theirs.from_payloads([payload], [RunRequest])


def test_it_is_the_same_in_every_context() -> None:
    assert DATA_CONVERTER.with_context(CONTEXT) is DATA_CONVERTER
    assert pydantic_data_converter.payload_converter_class() is not pydantic_data_converter.payload_converter_class()
    assert DATA_CONVERTER.payload_converter_class() is DATA_CONVERTER.payload_converter_class()
