"""What ADK stores in the session during a leg, in small."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Literal

from tests.workflows.adk_events import asking, call, confirmation, event, response
from workflows.events import answer_content
from workflows.messages import JsonObject
from workflows.run_state import CurrentRun

Kind = Literal["approval", "outside", "long_running", "input"]
"""What a call waits for; `outside`: it only runs outside the turn."""
Fresh = Callable[[str], str]
"""Makes an id that was never used."""


def what_adk_stores(run: CurrentRun, stored: Sequence[JsonObject], fresh: Fresh) -> list[JsonObject]:
    """The input of the leg, without what is stored already, and the responses of its calls."""
    told: list[JsonObject] = []
    if run.handed.message is not None:
        said = event(fresh("e"), author="user", actions={"stateDelta": run.handed.state_delta})
        told.append(said | {"content": run.handed.message})
    earlier = json.dumps([event for event in stored if event.get("author") == "user"])
    answers = [answer for answer in run.handed.answers if f'"id": "{answer.request_id}"' not in earlier]
    if answers:
        told.append(event(fresh("e"), author="user") | {"content": answer_content(answers)})
    for one in run.calls:
        if one.kind == "tool":
            part = response(one.call_id, one.tool, one.result())
            told.append(event(fresh("e"), part, actions={"stateDelta": one.payload().get("state", {})}))
    return told


def what_pauses(waiting: Sequence[Kind], fresh: Fresh) -> list[JsonObject]:
    """A model turn whose calls wait, and the event that asks for their confirmation."""
    calls: list[JsonObject] = []
    asked: list[JsonObject] = []
    for kind in waiting:
        call_id = fresh("c")
        args = {"of": call_id}
        if kind in ("long_running", "input"):
            asked.append(call(call_id, "wait" if kind == "long_running" else "adk_request_input", args))
            continue
        calls.append(call(call_id, "pay", args))
        original: JsonObject = {"id": call_id, "name": "pay", "args": args}
        asked.append(confirmation(fresh("r"), original, {"approval": kind == "approval"}))
    return [event(fresh("e"), *calls), asking(fresh("e"), *asked)]
