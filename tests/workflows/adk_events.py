"""ADK events as a leg makes them, JSON that nobody expects, and how to compare JSON strictly."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from agent_adapter.approval.pause import PAYLOAD_KEY
from workflows.messages import JsonObject, as_object

NAMES = ("~", "value", "args", "id", "result", "payload", "error", "state", "temp:a", "ä")

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.0, 1.0, -0.0, 1e22, 2**70])
    | st.text("a~^0ß\n", max_size=3)
    | st.sampled_from(["one long string of many", "another long string", "^^0", "^one long string that begins so"])
)
json_values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=5,
)
json_objects = st.dictionaries(st.sampled_from(NAMES), json_values, max_size=3)


def exact(value: Any) -> str:
    """JSON text in which True, 1 and 1.0 differ."""
    return json.dumps(value, sort_keys=True)


def event(id_: str, *parts: JsonObject, author: str = "helper", **more: Any) -> JsonObject:
    """An event with these parts."""
    role = "user" if author == "user" else "model"
    return {"id": id_, "author": author, "content": {"parts": list(parts), "role": role}, **more}


def text(words: str) -> JsonObject:
    """A part with text."""
    return {"text": words}


def call(id_: str, name: str, args: Any) -> JsonObject:
    """A part with a function call."""
    return {"functionCall": {"id": id_, "name": name, "args": args}}


def response(id_: str, name: str, body: Any) -> JsonObject:
    """A part with a function response."""
    return {"functionResponse": {"id": id_, "name": name, "response": body}}


def confirmation(id_: str, original: JsonObject, paused: JsonObject | None = None) -> JsonObject:
    """A part that asks for the confirmation of a call; `paused`: what a PausedCall says."""
    asked: JsonObject = {"hint": "", "confirmed": False}
    if paused is not None:
        asked["payload"] = {PAYLOAD_KEY: paused}
    return call(id_, "adk_request_confirmation", {"originalFunctionCall": original, "toolConfirmation": asked})


def asking(id_: str, *parts: JsonObject, **more: Any) -> JsonObject:
    """An event whose calls wait for an answer."""
    waiting = [as_object(part["functionCall"])["id"] for part in parts]
    return event(id_, *parts, longRunningToolIds=waiting, **more)
