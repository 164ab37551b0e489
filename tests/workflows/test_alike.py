"""Events like the one before: shorter in history, and whole again."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from workflows.alike import lengthen, shorten

_SAID = st.sampled_from(["single", "single@1", "", None, True, 1, 1.0, {"path": "single@1"}, {"path": 1}])
_REQUEST = st.sampled_from([{}, {"c1": {"hint": "h"}}, {"c1": {"hint": "h", "payload": {"x": 1}}}, "~"])
_CONFIRMATIONS = st.lists(
    st.builds(
        lambda id_, confirmation: {
            "functionCall": {
                "name": "adk_request_confirmation",
                "args": {"originalFunctionCall": {"id": id_}, "toolConfirmation": confirmation},
            }
        },
        st.sampled_from(["c1", "c2"]),
        st.sampled_from([{"hint": "h", "confirmed": False}, {"hint": "h", "payload": {"x": 1}, "confirmed": False}]),
    ),
    max_size=2,
)
_EVENTS = st.lists(
    st.fixed_dictionaries(
        {"id": st.text(max_size=3)},
        optional={
            "invocationId": _SAID,
            "author": _SAID,
            "branch": _SAID,
            "nodeInfo": _SAID,
            "modelVersion": _SAID,
            "actions": st.builds(lambda asked: {"requestedToolConfirmations": asked}, _REQUEST),
            "content": st.builds(lambda parts: {"parts": parts}, _CONFIRMATIONS),
            "~-": _SAID,
            "~=": _SAID,
        },
    ),
    max_size=6,
)


@given(_EVENTS)
def test_shortened_events_come_back_as_they_were(events: list[dict[str, Any]]) -> None:
    travelled = json.loads(json.dumps(shorten(events)))
    assert json.dumps(lengthen(travelled), sort_keys=True) == json.dumps(events, sort_keys=True)


def test_what_the_event_before_said_is_not_said_again() -> None:
    first = {"id": "1", "author": "a", "invocationId": "r", "modelVersion": "m"}
    second = {"id": "2", "author": "a", "invocationId": "r"}
    assert shorten([first, second]) == [first, {"id": "2", "~-": ["modelVersion"]}]


def test_a_confirmation_is_described_once() -> None:
    described = {"hint": "h", "payload": {"paused_call": {"approval": True}}}
    call = {"originalFunctionCall": {"id": "c1"}, "toolConfirmation": {**described, "confirmed": False}}
    asking = {"content": {"parts": [{"functionCall": {"name": "adk_request_confirmation", "args": call}}]}}
    answer = {"actions": {"requestedToolConfirmations": {"c1": described}}}
    short = shorten([asking, answer])
    assert short[1] == {"actions": {"requestedToolConfirmations": "~"}}
    assert lengthen(short) == [asking, answer]
