"""What a run that ends with open calls leaves in the session: a truthful response to each of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workflows.cuts import Place, blob_in, with_marks
from workflows.events import responses
from workflows.messages import Json, JsonObject, as_object
from workflows.run_state import Call, CurrentRun


def settle_unfinished(call: Call) -> None:
    """The run was cancelled while this call was open."""
    if call.kind == "long_running" or call.doubtful or call.status in ("running", "unknown"):
        code, outcome = "unknown-outcome", "unknown"
        text = "The run was cancelled while the tool was at work: whether it took effect is not known."
    else:
        code, outcome = "run-cancelled", "withdrawn"
        text = "The run was cancelled before this call was made."
    if call.kind == "tool":
        call.settle_refused(code=code, message=text, outcome=outcome)
    else:
        call.settle({"error": {"kind": code, "message": text}}, outcome=outcome)


def without_response(calls: Iterable[Call], events: Iterable[Mapping[str, Any]]) -> list[Call]:
    """The calls whose response stands in none of these events."""
    responded = {response.get("id") for event in events for response in responses(event)}
    return [call for call in calls if call.call_id not in responded]


def closing_events(run: CurrentRun, *, event_id: str, at: float) -> list[JsonObject]:
    """One event per branch with the responses of its calls, as if the tools had answered."""
    branches: dict[tuple[str | None, str], list[Call]] = {}
    for call in run.calls:
        branches.setdefault((call.branch, call.author), []).append(call)
    return [_closing_event(run, calls, event_id=f"{event_id}-{n}", at=at) for n, calls in enumerate(branches.values())]


def _closing_event(run: CurrentRun, calls: list[Call], *, event_id: str, at: float) -> JsonObject:
    event: JsonObject = {
        "id": event_id,
        "invocationId": run.run_id,
        "author": calls[0].author,
        "timestamp": at,
        "content": {"role": "user", "parts": [_response_part(call) for call in calls]},
    }
    state = _merged(calls, "state")
    actions = {
        "stateDelta": {key: value for key, value in state.items() if not key.startswith("temp:")},
        "artifactDelta": _merged(calls, "artifacts"),
    }
    if given := {name: value for name, value in actions.items() if value}:
        event["actions"] = given
    if calls[0].branch:
        event["branch"] = calls[0].branch
    blobs = {Place(n, "response"): blob_in(call.payload()) for n, call in enumerate(calls)}
    return with_marks(event, {place: blob for place, blob in blobs.items() if blob is not None})


def _merged(calls: list[Call], what: str) -> JsonObject:
    return {key: value for call in calls for key, value in as_object(call.payload().get(what)).items()}


def _response_part(call: Call) -> JsonObject:
    result: Json = {} if blob_in(call.payload()) else call.result()
    response = as_object(result) if isinstance(result, dict) else {"result": result}
    return {"functionResponse": {"id": call.call_id, "name": call.tool, "response": response}}
