"""Events like the one before: shorter in history, and whole again."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from workflows.alike import lengthen, shorten

Object = dict[str, Any]


def _asking(id_: str, confirmation: Object) -> Object:
    args = {"originalFunctionCall": {"id": id_}, "toolConfirmation": confirmation}
    return {"functionCall": {"name": "adk_request_confirmation", "args": args}}


def _requested(asked: Any) -> Object:
    return {"requestedToolConfirmations": asked}


def _content(parts: list[Object]) -> Object:
    return {"parts": parts}


_VALUES: list[Any] = ["single", "single@1", "", None, True, 1, 1.0, {"path": "single@1"}, {"path": 1}]
_REQUESTS: list[Any] = [{}, {"c1": {"hint": "h"}}, {"c1": {"hint": "h", "payload": {"x": 1}}}, "~"]
_CONFIRMATIONS: list[Object] = [
    {"hint": "h", "confirmed": False},
    {"hint": "h", "payload": {"x": 1}, "confirmed": False},
]
_SAID = st.sampled_from(_VALUES)
_ASKING = st.lists(st.builds(_asking, st.sampled_from(["c1", "c2"]), st.sampled_from(_CONFIRMATIONS)), max_size=2)
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("invocationId", "author", "branch", "nodeInfo", "modelVersion", "~-", "~="), _SAID),
    "actions": st.builds(_requested, st.sampled_from(_REQUESTS)),
    "content": st.builds(_content, _ASKING),
}
_ID: dict[str, st.SearchStrategy[Any]] = {"id": st.text(max_size=3)}
_EVENTS: st.SearchStrategy[list[Object]] = st.lists(st.fixed_dictionaries(_ID, optional=_FIELDS), max_size=6)


@given(_EVENTS)
def test_shortened_events_come_back_as_they_were(events: list[Object]) -> None:
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
