"""What is handed to a leg, as ADK takes it: the user's words, or one message of answers per branch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from google.genai import types
from pydantic import ValidationError

from agentvisor.adk.events import CONFIRMATION, OpenCall
from agentvisor.protocol import BranchAnswer, JsonObject

_ALLOWED = {"text", "inline_data", "file_data", "thought", "video_metadata", "media_resolution"}


class HandedRefused(ValueError):
    """What was handed to the leg cannot be given to the agent. `code` is stable."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def user_message(message: JsonObject) -> types.Content:
    """The user's words. Raises HandedRefused: a user sends text and data, never calls or their responses."""
    try:
        content = types.Content.model_validate(message)
    except ValidationError as problem:
        text = f"The message is no ADK Content ({problem.error_count()} errors). Send text, or parts of text and data."
        raise HandedRefused("message-invalid", text) from problem
    parts = content.parts or []
    if not parts or content.role not in {None, "user"}:
        raise HandedRefused("message-invalid", "A message has role user and one part at least. Send text.")
    for part in parts:
        others = {name for name in part.model_fields_set if getattr(part, name) is not None} - _ALLOWED
        if others or not (part.text is not None or part.inline_data or part.file_data):
            what = ", ".join(sorted(others)) or "nothing"
            text = f"A part of the message holds {what}. A user's message holds text and data only."
            raise HandedRefused("message-invalid", text)
    return types.Content(role="user", parts=parts)


def answer_messages(
    answers: Iterable[BranchAnswer], waiting: Mapping[str, OpenCall], stored: set[str | None]
) -> list[types.Content]:
    """The messages that answer these calls, in the order in which branches are named; what is stored is left out.

    ADK takes one branch per message, and never shows the model a message in which a confirmation is answered: results
    of long-running tools go before it, in a message of their own. Raises HandedRefused for an answer to no open call.
    """
    results: dict[str | None, list[types.Part]] = {}
    confirmations: dict[str | None, list[types.Part]] = {}
    for answer in answers:
        if answer.request_id in stored:
            continue
        call = waiting.get(answer.request_id)
        if call is None or call.name != answer.name:
            text = (
                f"Nothing waits for the answer to {answer.request_id!r} ({answer.name}). It was not given to the agent."
            )
            raise HandedRefused("answer-unknown", text)
        response = types.FunctionResponse(id=answer.request_id, name=answer.name, response=_strict(answer))
        kind = confirmations if answer.name == CONFIRMATION else results
        kind.setdefault(call.branch, []).append(types.Part(function_response=response))
    return [types.Content(role="user", parts=parts) for kind in (results, confirmations) for parts in kind.values()]


def _strict(answer: BranchAnswer) -> JsonObject:
    if answer.name == CONFIRMATION and not isinstance(answer.response.get("confirmed"), bool):
        text = f"The answer to {answer.request_id!r} must say confirmed: true or false."
        raise HandedRefused("answer-invalid", text)
    return answer.response
