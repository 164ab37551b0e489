"""Function calls of one model turn: each has an id of its own, and the model sees their responses in call order."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from google.adk.events import Event
from google.adk.models.llm_response import LlmResponse
from google.genai import types


def with_own_ids(response: LlmResponse, events: Sequence[Event]) -> None:
    """Give a new id to each call whose id the model has used before: models repeat theirs, and an id names one call."""
    calls = [part.function_call for part in (response.content and response.content.parts) or () if part.function_call]
    if response.partial or not any(call.id for call in calls):
        return
    used = {call.id for event in events for call in event.get_function_calls()}
    for call in calls:
        if call.id and call.id in used:
            call.id = f"adk-{uuid.uuid4()}"
        used.add(call.id)


def in_call_order(contents: list[types.Content]) -> list[types.Content]:
    """The contents with the responses of each turn in the order of its calls, one for each call.

    Answers that came in later (of long-running tools) stand at the end otherwise; and one is missing where its run
    ended before it: no model takes a call without a response.
    """
    ordered: list[types.Content] = []
    calls: list[types.FunctionCall] = []
    for content in contents:
        if calls and not _responses(content):
            ordered.append(_ordered(types.Content(role="user", parts=[]), calls))
        elif calls:
            content = _ordered(content, calls)  # noqa: PLW2901 - the same content, as it must be
        ordered.append(content)
        calls = [part.function_call for part in content.parts or () if part.function_call]
    return ordered


def _responses(content: types.Content) -> list[types.Part]:
    return [part for part in content.parts or () if part.function_response]


def _ordered(content: types.Content, calls: list[types.FunctionCall]) -> types.Content:
    parts, waiting = list(content.parts or ()), _responses(content)
    found: list[types.Part] = []
    for call in calls:
        match = next((part for part in waiting if _answers(part, call)), None)
        if match is not None:
            waiting.remove(match)
        found.append(match or _missing(call))
    rest = [part for part in parts if not part.function_response]
    again = [*found, *waiting, *rest]
    return content if again == parts else content.model_copy(update={"parts": again})


def _missing(call: types.FunctionCall) -> types.Part:
    text = "The run ended before this call had a result. Whether it took effect is not known."
    response = {"error": {"kind": "unknown-outcome", "message": text}}
    return types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=response))


def _answers(part: types.Part, call: types.FunctionCall) -> bool:
    response = part.function_response
    return response is not None and response.name == call.name and (response.id == call.id or not response.id)
