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
    """The contents with the responses of each turn in the order of its calls.

    Answers that came in later (of long-running tools) stand at the end otherwise.
    """
    ordered = list(contents)
    for index in range(1, len(ordered)):
        calls = [part.function_call for part in ordered[index - 1].parts or () if part.function_call]
        if len(calls) > 1:
            ordered[index] = _ordered(ordered[index], calls)
    return ordered


def _ordered(content: types.Content, calls: list[types.FunctionCall]) -> types.Content:
    parts = list(content.parts or ())
    waiting = [part for part in parts if part.function_response]
    found: list[types.Part] = []
    for call in calls:
        match = next((part for part in waiting if _answers(part, call)), None)
        if match is not None:
            waiting.remove(match)
            found.append(match)
    rest = [part for part in parts if not part.function_response]
    again = [*found, *waiting, *rest]
    return content if again == parts else content.model_copy(update={"parts": again})


def _answers(part: types.Part, call: types.FunctionCall) -> bool:
    response = part.function_response
    return response is not None and response.name == call.name and (response.id == call.id or not response.id)
