"""ADK events on their way through history: without what history already holds, and whole again.

History holds every user message once (the signal) and every tool result once (the activity result). ADK's events
repeat them two or three times. `strip` puts a reference in the place of a copy, `expand` puts the copy back; both are
pure and `expand(strip(events, handed, run_id=run), handed, run_id=run) == events` for every leg.

Values that are too large for history are cut out in between, see `workflows.cuts`.

References: a `content` or `response` object with the key "~". An object that has this key by nature travels as
`{"~": null, "value": …}`. The arguments of a call whose confirmation is asked for are left out there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError

from agent_adapter.approval.pause import PAYLOAD_KEY, PausedCall
from workflows.alike import lengthen, same, shorten
from workflows.cuts import Place, blob_of, with_marks, without_blob
from workflows.messages import (
    CONFIRMATION,
    MAX_SECONDS,
    MIN_SECONDS,
    BlobRef,
    CallAnswer,
    Handed,
    JsonObject,
    as_object,
)
from workflows.repeats import numbered, spelled

INPUT = "adk_request_input"
_REF = "~"
_MAX_RETRIES = 100


def strip(events: Iterable[Mapping[str, Any]], handed: Handed, *, run_id: str) -> list[JsonObject]:
    """Events of one leg as they travel: what was handed in, or stands earlier in the leg, becomes a reference."""
    return shortened(referring(events, handed), handed, run_id=run_id)


def referring(events: Iterable[Mapping[str, Any]], handed: Handed) -> list[JsonObject]:
    """The first half of `strip`: what was handed in becomes a reference."""
    known = _Copies(handed)
    return [known.strip(event) for event in events]


def shortened(events: Iterable[Mapping[str, Any]], handed: Handed, *, run_id: str) -> list[JsonObject]:
    """The second half of `strip`: what the leg says again becomes a reference."""
    return numbered(shorten(events), _said(handed, run_id))


def expand(events: Iterable[Mapping[str, Any]], handed: Handed, *, run_id: str) -> list[JsonObject]:
    """Events of one leg as ADK made them."""
    known = _Copies(handed)
    return [known.expand(event) for event in lengthen(spelled(events, _said(handed, run_id)))]


def _said(handed: Handed, run_id: str) -> list[str]:
    """What both sides of a leg know before its first event."""
    return [run_id, *(answer.request_id for answer in handed.answers), *(answer.name for answer in handed.answers)]


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
        return dict(event) if content is None else {**event, "content": self._strip_content(content, event)}

    def expand(self, event: Mapping[str, Any]) -> JsonObject:
        content = _content(event)
        if content is None:
            return dict(event)
        expanded = {**event, "content": self._expand_content(content, event)}
        return with_marks(expanded, self._in_the_store(content))

    def _in_the_store(self, content: JsonObject) -> dict[Place, BlobRef]:
        """What this content refers to and the thread does not hold itself."""
        references = cast("list[Any]", content[_REF]) if isinstance(content.get(_REF), list) else None
        if references is not None:
            found = {Place(n, "result"): self._blob(reference) for n, reference in enumerate(references)}
        else:
            bodies = [as_object(as_object(part.get("functionResponse")).get("response")) for part in _parts(content)]
            found = {Place(n, "response"): self._blob(body.get(_REF)) for n, body in enumerate(bodies)}
        return {place: blob for place, blob in found.items() if blob is not None}

    def _blob(self, reference: Any) -> BlobRef | None:
        answer = self._answers.get(reference) if isinstance(reference, str) else None
        return None if answer is None else blob_of(answer)

    def _strip_content(self, content: JsonObject, event: Mapping[str, Any]) -> JsonObject:
        if event.get("author") == "user" and (reference := self._user_reference(content)):
            return {_REF: reference}
        if _REF in content:
            return _escaped(content)
        return content if event.get("author") == "user" else _with_parts(content, self._strip_part)

    def _expand_content(self, content: JsonObject, event: Mapping[str, Any]) -> Any:
        if _REF in content:
            return self._referred_content(content)
        return content if event.get("author") == "user" else _with_parts(content, self._expand_part)

    def _user_reference(self, content: JsonObject) -> str | list[str] | None:
        if same(content, self._message):
            return "message"
        ids = [_text(response.get("id")) for response in _of_parts(content, "functionResponse")]
        if ids and all(i in self._answers for i in ids) and same(content, self._answering(ids)):
            return ids
        return None

    def _referred_content(self, content: JsonObject) -> Any:
        reference = content[_REF]
        if reference is None:
            return content["value"]
        return self._message if reference == "message" else self._answering(reference)

    def _answering(self, ids: Sequence[str]) -> JsonObject:
        return answer_content(without_blob(self._answers[i]) for i in ids)

    def _strip_part(self, part: JsonObject) -> JsonObject:
        if call := as_object(part.get("functionCall")):
            return {**part, "functionCall": self._strip_call(call)}
        if response := as_object(part.get("functionResponse")):
            return {**part, "functionResponse": self._strip_response(response)}
        return part

    def _expand_part(self, part: JsonObject) -> JsonObject:
        if call := as_object(part.get("functionCall")):
            return {**part, "functionCall": self._expand_call(call)}
        if response := as_object(part.get("functionResponse")):
            return {**part, "functionResponse": self._expand_response(response)}
        return part

    def _strip_call(self, call: JsonObject) -> JsonObject:
        original = _original_call(call)
        if original is None:
            self._remember(call)
            return call
        known = self._knows_arguments(original)
        if _REF in original or (known and "args" not in original):
            return _with_original(call, _escaped(original))
        if known and same(original["args"], self._arguments[original["id"]]):
            return _with_original(call, {key: value for key, value in original.items() if key != "args"})
        return call

    def _expand_call(self, call: JsonObject) -> JsonObject:
        original = _original_call(call)
        if original is None:
            self._remember(call)
            return call
        if _REF in original:
            return _with_original(call, original["value"])
        if "args" in original or not self._knows_arguments(original):
            return call
        return _with_original(call, {**original, "args": self._arguments[original["id"]]})

    def _remember(self, call: JsonObject) -> None:
        if isinstance(call.get("id"), str) and "args" in call:
            self._arguments[call["id"]] = call["args"]

    def _knows_arguments(self, original: JsonObject) -> bool:
        return isinstance(original.get("id"), str) and original["id"] in self._arguments

    def _strip_response(self, response: JsonObject) -> JsonObject:
        body = response.get("response")
        for request_id, answer in self._answers.items():
            payload = as_object(answer.response.get("payload"))
            if "result" in payload and same(body, _as_response(payload["result"])):
                return {**response, "response": {_REF: request_id}}
        return {**response, "response": _escaped(body)} if isinstance(body, dict) and _REF in body else response

    def _expand_response(self, response: JsonObject) -> JsonObject:
        body = as_object(response.get("response"))
        if _REF not in body:
            return response
        reference = cast("str | None", body[_REF])
        if reference is None:
            return {**response, "response": body["value"]}
        payload = self._answers[reference].response["payload"]
        return {**response, "response": _as_response(payload.get("result", {}))}


def _escaped(value: Any) -> JsonObject:
    return {_REF: None, "value": value}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _as_response(result: Any) -> JsonObject:
    """What ADK makes of a tool's return value in a functionResponse."""
    return cast("JsonObject", result) if isinstance(result, dict) else {"result": result}


def _content(event: Mapping[str, Any]) -> JsonObject | None:
    content = event.get("content")
    return cast("JsonObject", content) if isinstance(content, dict) else None


def _with_parts(content: JsonObject, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    parts = content.get("parts")
    if not isinstance(parts, list):
        return content
    changed = [
        change(cast("JsonObject", part)) if isinstance(part, dict) else part for part in cast("list[Any]", parts)
    ]
    return {**content, "parts": changed}


def _parts(content: JsonObject) -> list[JsonObject]:
    parts = content.get("parts")
    return [as_object(part) for part in cast("list[Any]", parts)] if isinstance(parts, list) else []


def _of_parts(content: JsonObject, kind: str) -> list[JsonObject]:
    return [found for part in _parts(content) if (found := as_object(part.get(kind)))]


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

    def __init__(self, call: JsonObject, event: Mapping[str, Any]) -> None:
        original = _original_call(call)
        self.request_id: str = call["id"]
        self.name: str = _text(call.get("name"))
        self.branch: str | None = _text(event.get("branch")) or None
        self.author: str = _text(event.get("author"))
        self.pause = PausedCall()
        if original is None:
            self.kind = "input" if self.name == INPUT else "long_running"
            self.call_id, self.tool, self.arguments = self.request_id, self.name, as_object(call.get("args"))
            return
        self.kind = "tool"
        self.pause = _paused_call(call["args"])
        self.call_id, self.tool = _text(original.get("id")), _text(original.get("name"))
        raw = as_object(original.get("args"))
        self.arguments: JsonObject = raw if self.pause.arguments is None else self.pause.arguments


def waiting_calls(events: Sequence[Mapping[str, Any]]) -> list[WaitingCall]:
    """The calls of these events that wait for an answer, in the order of the model's calls."""
    answered = {_text(r.get("id")) for event in events if event.get("author") == "user" for r in responses(event)}
    order = {_text(call.get("id")): n for n, call in enumerate(call for event in events for call in _calls(event))}
    waiting: list[WaitingCall] = []
    for event in events:
        ids = event.get("longRunningToolIds")
        open_ids = {_text(i) for i in cast("list[Any]", ids)} - {""} - answered if isinstance(ids, list) else ()
        waiting += [WaitingCall(call, event) for call in _calls(event) if _text(call.get("id")) in open_ids]
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


def responses(event: Mapping[str, Any]) -> list[JsonObject]:
    """The function responses in an event."""
    return _of_parts(_content(event) or {}, "functionResponse")


def _calls(event: Mapping[str, Any]) -> list[JsonObject]:
    return _of_parts(_content(event) or {}, "functionCall")


def _paused_call(args: Mapping[str, Any]) -> PausedCall:
    payload = as_object(as_object(args.get("toolConfirmation")).get("payload"))
    return paused_call(payload.get(PAYLOAD_KEY))


def paused_call(given: Any) -> PausedCall:
    """What a guest says of a call that waits, within bounds. A call it says nothing of needs a person, as a write."""
    try:
        pause = PausedCall.model_validate(given)
    except ValidationError:
        return PausedCall(approval=True)
    bounded = {
        "timeout": _seconds(pause.timeout),
        "retries": None if pause.retries is None or pause.retries < 0 else min(pause.retries, _MAX_RETRIES),
        "expires": pause.expires if pause.expires == "never" else _seconds(pause.expires),
    }
    return pause.model_copy(update=bounded)


def _seconds(given: float | None) -> float | None:
    """A time that Temporal takes, since the guest may say anything; None, the host's default, for none."""
    return max(MIN_SECONDS, min(given, MAX_SECONDS)) if given is not None and given > 0 else None
