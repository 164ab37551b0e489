"""ADK events on their way through history: without what history already holds, and whole again.

History holds every user message once (the signal) and every tool result once (the activity result). ADK's events
repeat them two or three times. `strip` puts a reference in the place of a copy, `expand` puts the copy back; both are
pure and `expand(strip(events, handed), handed) == events` for every leg.

References: a `content` or `response` object whose only key is "~".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from agent_adapter.approval.pause import PAYLOAD_KEY, PausedCall
from workflows.messages import CallAnswer, Handed, JsonObject, as_object

CONFIRMATION = "adk_request_confirmation"
INPUT = "adk_request_input"
_REF = "~"


def strip(events: Iterable[Mapping[str, Any]], handed: Handed) -> list[JsonObject]:
    """Events of one leg as they travel: what was handed in, or stands earlier in the leg, becomes a reference."""
    known = _Copies(handed)
    return [known.strip(event) for event in events]


def expand(events: Iterable[Mapping[str, Any]], handed: Handed) -> list[JsonObject]:
    """Events of one leg as ADK made them."""
    known = _Copies(handed)
    return [known.expand(event) for event in events]


def answer_content(answers: Iterable[CallAnswer]) -> JsonObject:
    """The ADK user message that answers these calls, in their order."""
    return {
        "parts": [
            {"functionResponse": {"id": answer.request_id, "name": answer.name, "response": answer.response}}
            for answer in answers
        ],
        "role": "user",
    }


class _Copies:
    """What a leg's events may refer to, growing event by event in the same way on both sides."""

    def __init__(self, handed: Handed) -> None:
        self._message = handed.message
        self._answers = {answer.request_id: answer for answer in handed.answers}
        self._arguments: dict[str, Any] = {}

    def strip(self, event: Mapping[str, Any]) -> JsonObject:
        content = _content(event)
        if content is None:
            return dict(event)
        if event.get("author") == "user":
            return {**event, "content": self._user_reference(content) or content}
        return {**event, "content": {**content, "parts": [self._strip_part(part) for part in _parts(content)]}}

    def expand(self, event: Mapping[str, Any]) -> JsonObject:
        content = _content(event)
        if content is None:
            return dict(event)
        if _REF in content:
            return {**event, "content": self._referred_content(content[_REF])}
        if event.get("author") == "user":
            return dict(event)
        return {**event, "content": {**content, "parts": [self._expand_part(part) for part in _parts(content)]}}

    def _user_reference(self, content: Mapping[str, Any]) -> JsonObject | None:
        if content == self._message:
            return {_REF: "message"}
        ids = [part["functionResponse"].get("id") for part in _parts(content) if "functionResponse" in part]
        if ids and all(i in self._answers for i in ids) and content == self._answering(ids):
            return {_REF: ids}
        return None

    def _referred_content(self, reference: Any) -> Any:
        return self._message if reference == "message" else self._answering(reference)

    def _answering(self, ids: Sequence[str]) -> JsonObject:
        return answer_content(self._answers[i] for i in ids)

    def _strip_part(self, part: JsonObject) -> JsonObject:
        if call := part.get("functionCall"):
            return {**part, "functionCall": self._strip_call(call)}
        if response := part.get("functionResponse"):
            return {**part, "functionResponse": self._strip_response(response)}
        return part

    def _expand_part(self, part: JsonObject) -> JsonObject:
        if call := part.get("functionCall"):
            return {**part, "functionCall": self._expand_call(call)}
        if response := part.get("functionResponse"):
            return {**part, "functionResponse": self._expand_response(response)}
        return part

    def _strip_call(self, call: JsonObject) -> JsonObject:
        original = _original_call(call)
        if original is None:
            self._remember(call)
            return call
        known = self._arguments.get(original.get("id", ""))
        if known is None or original.get("args") != known:
            return call
        return _with_original(call, {key: value for key, value in original.items() if key != "args"})

    def _expand_call(self, call: JsonObject) -> JsonObject:
        original = _original_call(call)
        if original is None:
            self._remember(call)
            return call
        known = self._arguments.get(original.get("id", ""))
        return call if "args" in original or known is None else _with_original(call, {**original, "args": known})

    def _remember(self, call: JsonObject) -> None:
        if "id" in call and "args" in call:
            self._arguments[call["id"]] = call["args"]

    def _strip_response(self, response: JsonObject) -> JsonObject:
        body = response.get("response")
        for request_id, answer in self._answers.items():
            payload = answer.response.get("payload")
            if isinstance(payload, dict) and "result" in payload and body == _as_response(payload["result"]):
                return {**response, "response": {_REF: request_id}}
        if isinstance(body, dict) and _REF in body:
            return {**response, "response": {_REF: None, "value": body}}
        return response

    def _expand_response(self, response: JsonObject) -> JsonObject:
        body = response.get("response")
        if not isinstance(body, dict) or _REF not in body:
            return response
        reference = cast("str | None", body[_REF])
        if reference is None:
            return {**response, "response": body["value"]}
        return {**response, "response": _as_response(self._answers[reference].response["payload"]["result"])}


def _as_response(result: Any) -> JsonObject:
    """What ADK makes of a tool's return value in a functionResponse."""
    return cast("JsonObject", result) if isinstance(result, dict) else {"result": result}


def _content(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    content = event.get("content")
    return cast("Mapping[str, Any]", content) if isinstance(content, Mapping) else None


def _parts(content: Mapping[str, Any]) -> list[JsonObject]:
    parts = content.get("parts")
    return cast("list[JsonObject]", parts) if isinstance(parts, list) else []


def _original_call(call: Mapping[str, Any]) -> JsonObject | None:
    if call.get("name") != CONFIRMATION:
        return None
    return as_object(as_object(call.get("args")).get("originalFunctionCall")) or None


def _with_original(call: JsonObject, original: JsonObject) -> JsonObject:
    return {**call, "args": {**call["args"], "originalFunctionCall": original}}


# ---- what a leg's events say ---------------------------------------------------------------------------------------


class WaitingCall:
    """A function call of a leg that has no answer: what to answer, which tool, with which arguments."""

    __slots__ = ("arguments", "author", "branch", "call_id", "kind", "name", "pause", "request_id", "tool")

    def __init__(self, call: Mapping[str, Any], event: Mapping[str, Any]) -> None:
        original = _original_call(call)
        self.request_id: str = call["id"]
        self.name: str = call["name"]
        self.branch: str | None = event.get("branch")
        self.author: str = event.get("author", "")
        self.pause = PausedCall()
        if original is None:
            self.kind = "input" if self.name == INPUT else "long_running"
            self.call_id, self.tool, self.arguments = self.request_id, self.name, dict(call.get("args") or {})
            return
        self.kind = "tool"
        self.pause = _paused_call(call["args"])
        self.call_id, self.tool = original.get("id", ""), original.get("name", "")
        raw = as_object(original.get("args"))
        self.arguments: JsonObject = dict(raw if self.pause.arguments is None else self.pause.arguments)


def waiting_calls(events: Sequence[Mapping[str, Any]]) -> list[WaitingCall]:
    """The calls of these events that wait for an answer, in the order of the model's calls."""
    answered = {r.get("id") for event in events if event.get("author") == "user" for r in _responses(event)}
    order = {call.get("id"): n for n, call in enumerate(call for event in events for call in _calls(event))}
    waiting: list[WaitingCall] = []
    for event in events:
        open_ids = set(cast("list[str]", event.get("longRunningToolIds") or ()))
        waiting += [
            WaitingCall(call, event)
            for call in _calls(event)
            if call.get("id") in open_ids and call["id"] not in answered
        ]
    return sorted(waiting, key=lambda call: order.get(call.call_id, len(order)))


def answer_text(events: Sequence[Mapping[str, Any]]) -> str | None:
    """The text of the last response in these events; None where the last words are not text."""
    for event in reversed(events):
        content = _content(event)
        if content is None or event.get("author") == "user":
            continue
        parts = [
            part["text"] for part in _parts(content) if isinstance(part.get("text"), str) and not part.get("thought")
        ]
        if parts:
            return "".join(parts)
    return None


def _paused_call(args: Mapping[str, Any]) -> PausedCall:
    payload = as_object(as_object(args.get("toolConfirmation")).get("payload"))
    # A confirmation that some other code asked for still needs a person; nothing else is known of it.
    return PausedCall.model_validate(payload[PAYLOAD_KEY]) if PAYLOAD_KEY in payload else PausedCall(approval=True)


def _calls(event: Mapping[str, Any]) -> list[JsonObject]:
    content = _content(event)
    return [part["functionCall"] for part in _parts(content) if part.get("functionCall")] if content else []


def _responses(event: Mapping[str, Any]) -> list[JsonObject]:
    content = _content(event)
    return [part["functionResponse"] for part in _parts(content) if part.get("functionResponse")] if content else []
