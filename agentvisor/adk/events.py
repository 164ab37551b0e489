"""ADK events and what they say about a run: which calls are open, which answers are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from google.adk.events import Event
from google.genai import types

JsonObject = dict[str, Any]
CONFIRMATION = "adk_request_confirmation"
CREDENTIAL = "adk_request_credential"


def dump(event: Event) -> JsonObject:
    """The JSON form of an event that `Event.model_validate` reads back without loss, and no default in it."""
    data = event.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    data["id"], data["timestamp"] = event.id, event.timestamp  # made by factories: equal to no default
    if not data.get("longRunningToolIds", True):
        del data["longRunningToolIds"]
    actions = data.get("actions")
    if actions is not None:
        if not actions.get("stateDelta", True):
            del actions["stateDelta"]
        if not actions:
            del data["actions"]
    return data


def of_run(events: Sequence[Event], run_id: str) -> list[Event]:
    """The events of a run, in order."""
    found: list[Event] = []
    for event in reversed(events):
        if event.invocation_id == run_id:
            found.append(event)
            if is_message(event):
                break
    return found[::-1]


def is_message(event: Event) -> bool:
    """The user's words, with which a run begins."""
    return event.author == "user" and bool(event.content and event.content.parts) and not event.get_function_responses()


@dataclass(frozen=True)
class OpenCall:
    """A function call that waits for an answer from outside. `tool`: of the call that is confirmed, where one is."""

    id: str
    name: str
    author: str
    branch: str | None
    tool: str


def open_calls(run: Sequence[Event]) -> dict[str, OpenCall]:
    """Every long-running call of a run that no user's answer has closed, by its id, in order."""
    answered = {response.id for event in run if event.author == "user" for response in event.get_function_responses()}
    found: dict[str, OpenCall] = {}
    for event in run:
        for call in event.get_function_calls() if event.long_running_tool_ids else ():
            if call.id and call.id in (event.long_running_tool_ids or ()) and call.id not in answered:
                found[call.id] = OpenCall(call.id, call.name or "", event.author, event.branch, _tool_of(call))
    return found


def _tool_of(call: types.FunctionCall) -> str:
    original = _original(call)
    return call.name or "" if original is None else str(original.get("name", ""))


def _original(call: types.FunctionCall) -> JsonObject | None:
    """The call that a request for confirmation is about."""
    original: Any = (call.args or {}).get("originalFunctionCall") if call.name == CONFIRMATION else None
    return cast("JsonObject", original) if isinstance(original, dict) else None


def confirmed_calls(event: Event) -> Iterator[str]:
    """The ids of the calls whose confirmation this event requests."""
    for call in event.get_function_calls():
        original = _original(call) if call.id in (event.long_running_tool_ids or ()) else None
        if original and original.get("id"):
            yield str(original["id"])


def asks_for_credential(event: Event) -> bool:
    """A tool or agent asks the user for a credential; the event may hold a client secret."""
    return bool(event.actions.requested_auth_configs) or any(c.name == CREDENTIAL for c in event.get_function_calls())
