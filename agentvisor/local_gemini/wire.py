"""Replies in Gemini's wire form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agentvisor.local_gemini.history import JsonObject
from agentvisor.local_gemini.script import Fault, Turn, Usage
from agentvisor.local_gemini.templates import Quotes

_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def error(code: int, message: str, *, status: str | None = None, retry_after: float | None = None) -> JsonObject:
    """An error body."""
    body: JsonObject = {"code": code, "message": message, "status": status or _STATUS.get(code, "UNKNOWN")}
    if retry_after is not None:
        body["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{retry_after:g}s"}]
    return {"error": body}


def fault_error(fault: Fault) -> JsonObject:
    """The error body of a scripted HTTP error."""
    code = fault.code or 500
    message = fault.message or f"The script of the local model answers with {code} here."
    return error(code, message, status=fault.status, retry_after=fault.retry_after)


def tokens_in(value: Any) -> int:
    """A quarter of the characters of a JSON value, one at least: close enough for limits and counters."""
    return max(1, len(json.dumps(value, ensure_ascii=False)) // 4)


def reply(turn: Turn, quotes: Quotes, *, model: str, contents: Sequence[JsonObject]) -> JsonObject:
    """The whole reply. Raises QuoteMissingError where a template names what the request does not hold."""
    parts = [quotes.filled_part(part) for part in _parts(turn)]
    usage = turn.usage or Usage(prompt=tokens_in(contents), output=tokens_in(parts))
    body: JsonObject = {"usageMetadata": _usage(usage), "modelVersion": model, "responseId": "local"}
    if turn.blocked is not None:
        body["promptFeedback"] = {"blockReason": turn.blocked}
    elif not turn.no_candidates:
        body["candidates"] = [_candidate(turn, parts)]
    return body


def frames(whole: JsonObject, *, chunks: int) -> list[JsonObject]:
    """The same reply as a stream: its text in so many pieces, a frame for each other part, the reason in the last."""
    candidates = whole.get("candidates")
    if not candidates:
        return [whole]
    candidate = candidates[0]
    pieces = [piece for part in candidate["content"]["parts"] for piece in _pieces(part, chunks)]
    shown: list[JsonObject] = []
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        content = {"role": "model", "parts": [piece]}
        shown.append(
            {**whole, "candidates": [{**candidate, "content": content} if last else {"content": content, "index": 0}]}
        )
    return shown or [whole]


def _parts(turn: Turn) -> list[JsonObject]:
    if turn.parts is not None:
        return list(turn.parts)
    text: list[JsonObject] = [] if turn.text is None else [{"text": turn.text}]
    return text + [{"functionCall": call.model_dump(exclude_none=True)} for call in turn.calls]


def _candidate(turn: Turn, parts: list[JsonObject]) -> JsonObject:
    candidate: JsonObject = {"content": {"role": "model", "parts": parts}, "finishReason": turn.finish, "index": 0}
    if turn.finish_message is not None:
        candidate["finishMessage"] = turn.finish_message
    return candidate


def _usage(usage: Usage) -> JsonObject:
    counts: JsonObject = {
        "promptTokenCount": usage.prompt,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": usage.prompt + usage.output + usage.thoughts,
    }
    if usage.thoughts:
        counts["thoughtsTokenCount"] = usage.thoughts
    if usage.cached:
        counts["cachedContentTokenCount"] = usage.cached
    return counts


def _pieces(part: JsonObject, chunks: int) -> list[JsonObject]:
    text = part.get("text")
    if not text or chunks == 1:
        return [part]
    size = -(-len(text) // chunks)
    return [{**part, "text": text[start : start + size]} for start in range(0, len(text), size)]
