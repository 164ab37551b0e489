"""Events that say again what the event before them said, and do not say it twice in history.

`shorten` leaves out fields that equal those of the event before, `lengthen` puts them back; both are pure and
`lengthen(shorten(events)) == events`. In a shortened event "~-" names fields that the event before has and this one has
not; an event that already looks shortened travels as `{"~=": event}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from workflows.messages import CONFIRMATION, JsonObject, as_object

_REPEATED = ("invocationId", "author", "branch", "nodeInfo", "modelVersion")
_GONE, _WHOLE, _ASKED = "~-", "~=", "~"
_REQUESTED = "requestedToolConfirmations"


def shorten(events: Iterable[Mapping[str, Any]]) -> list[JsonObject]:
    """Each event without what the one before it says."""
    before: Mapping[str, Any] = {}
    short: list[JsonObject] = []
    for event in events:
        short.append(_shortened(event, before))
        before = event
    return short


def lengthen(events: Iterable[Mapping[str, Any]]) -> list[JsonObject]:
    """The events as they were."""
    before: JsonObject = {}
    long: list[JsonObject] = []
    for event in events:
        before = _lengthened(event, before)
        long.append(before)
    return long


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1, 1.0 and true are three values."""
    if isinstance(one, str):
        return one == other
    return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _shortened(event: Mapping[str, Any], before: Mapping[str, Any]) -> JsonObject:
    if _GONE in event or _WHOLE in event or as_object(event.get("actions")).get(_REQUESTED) == _ASKED:
        return {_WHOLE: dict(event)}
    said = {name for name in _REPEATED if name in event and name in before and same(event[name], before[name])}
    short = {name: value for name, value in event.items() if name not in said}
    if gone := [name for name in _REPEATED if name in before and name not in event]:
        short[_GONE] = gone
    actions, asked = as_object(event.get("actions")), _asked(before)
    if asked and same(actions.get(_REQUESTED), asked):
        short["actions"] = {**actions, _REQUESTED: _ASKED}
    return short


def _lengthened(event: Mapping[str, Any], before: JsonObject) -> JsonObject:
    if _WHOLE in event:
        return as_object(event[_WHOLE])
    gone = {*cast("list[str]", event.get(_GONE, [])), _GONE}
    said = {name: before[name] for name in _REPEATED if name in before and name not in gone}
    long: JsonObject = {**said, **{name: value for name, value in event.items() if name not in gone}}
    actions = as_object(long.get("actions"))
    if actions.get(_REQUESTED) == _ASKED:
        long["actions"] = {**actions, _REQUESTED: _asked(before)}
    return long


def _asked(event: Mapping[str, Any]) -> JsonObject:
    """What ADK notes beside the placeholders of calls whose confirmation this event asks for."""
    parts = as_object(event.get("content")).get("parts")
    asked: JsonObject = {}
    for part in cast("list[Any]", parts) if isinstance(parts, list) else []:
        call = as_object(as_object(part).get("functionCall"))
        if call.get("name") == CONFIRMATION:
            args = as_object(call.get("args"))
            confirmation = as_object(args.get("toolConfirmation"))
            id_ = as_object(args.get("originalFunctionCall")).get("id")
            asked[str(id_)] = {name: value for name, value in confirmation.items() if name != "confirmed"}
    return asked
