"""Values of events that are too large for history: cut out, and named by what the Store knows them by. Pure.

An event with such values has "~cuts", a list of `{"part", "field", "digest", "size"}`: the number of the part of its
content, which value of the part is missing there, and the blob of the thread that holds it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, cast

from workflows.messages import CONFIRMATION, BlobRef, CallAnswer, JsonObject, as_object

CUTS = "~cuts"
BLOB = "blob"
"""Key in the payload of an answered call, in the place of `result`: its BlobRef."""

Field = Literal["response", "result", "data"]
_PATHS: dict[Field, tuple[str, ...]] = {
    "response": ("functionResponse", "response"),
    "result": ("functionResponse", "response", "payload", "result"),
    "data": ("inlineData", "data"),
}
_CUT: tuple[Field, ...] = ("response", "data")
"""Never the arguments of a call: they are what a person decides on, and what a permission is bound to."""
_WORTH_CUTTING = 1024


class Place(NamedTuple):
    """Where in an event's content a value stands."""

    part: int
    field: Field


def large_values(event: Mapping[str, Any], limit: int) -> dict[Place, Any]:
    """What to cut out so that the rest of the event has at most `limit` bytes, as far as that can be; largest first."""
    left = _bytes(event) - limit
    if left <= 0:
        return {}
    found: dict[Place, Any] = {}
    for size, place, value in sorted(_values(event), key=lambda one: -one[0]):
        if left <= 0 or size < _WORTH_CUTTING:
            break
        found[place], left = value, left - size
    return found


def cut(event: Mapping[str, Any], refs: Mapping[Place, BlobRef]) -> JsonObject:
    """The event without these values."""
    if not refs:
        return dict(event)
    parts = list(_parts(event))
    for place in refs:
        parts[place.part] = _with(parts[place.part], _PATHS[place.field], None)
    return with_marks({**event, "content": {**as_object(event["content"]), "parts": parts}}, refs)


def with_marks(event: JsonObject, refs: Mapping[Place, BlobRef]) -> JsonObject:
    """The event, which misses these values, saying so."""
    if not refs:
        return event
    marks = [
        {"part": place.part, "field": place.field, "digest": ref.digest, "size": ref.size}
        for place, ref in refs.items()
    ]
    return {**event, CUTS: [*_cuts(event), *marks]}


def missing(event: Mapping[str, Any]) -> dict[Place, str]:
    """The digests of the values that were cut out of the event."""
    return {Place(mark["part"], mark["field"]): mark["digest"] for mark in _cuts(event)}


def whole(event: Mapping[str, Any], blobs: Mapping[str, Any]) -> JsonObject:
    """The event with its values. `blobs`: by digest; those it does not hold stay missing."""
    parts = list(_parts(event))
    left = [mark for mark in _cuts(event) if mark["digest"] not in blobs]
    for place, digest in missing(event).items():
        if digest in blobs:
            parts[place.part] = _with(parts[place.part], _PATHS[place.field], blobs[digest])
    event = {name: value for name, value in event.items() if name != CUTS} | ({CUTS: left} if left else {})
    return {**event, "content": {**as_object(event["content"]), "parts": parts}} if parts else event


def blob_in(payload: Mapping[str, Any]) -> BlobRef | None:
    """Where the result of a call is, if not in this payload."""
    return BlobRef.model_validate(payload[BLOB]) if BLOB in payload else None


def blob_of(answer: CallAnswer) -> BlobRef | None:
    """Where the result of an answered call is, if not in its answer. What people answer is never looked into."""
    return blob_in(as_object(answer.response.get("payload"))) if answer.name == CONFIRMATION else None


def without_blob(answer: CallAnswer) -> CallAnswer:
    """The answer as ADK's event has it; its result is missing there."""
    if blob_of(answer) is None:
        return answer
    payload = {name: value for name, value in answer.response["payload"].items() if name != BLOB}
    return answer.model_copy(update={"response": {**answer.response, "payload": payload}})


def whole_answer(answer: CallAnswer, blobs: Mapping[str, Any]) -> CallAnswer:
    """The answer with its result. `blobs`: by digest."""
    ref = blob_of(answer)
    if ref is None:
        return answer
    bare = without_blob(answer).response
    return answer.model_copy(update={"response": {**bare, "payload": {**bare["payload"], "result": blobs[ref.digest]}}})


def _cuts(event: Mapping[str, Any]) -> list[JsonObject]:
    return cast("list[JsonObject]", event.get(CUTS, []))


def _parts(event: Mapping[str, Any]) -> list[Any]:
    parts = as_object(event.get("content")).get("parts")
    return cast("list[Any]", parts) if isinstance(parts, list) else []


def _values(event: Mapping[str, Any]) -> Iterable[tuple[int, Place, Any]]:
    for n, part in enumerate(_parts(event)):
        for field in _CUT:
            kind, key = _PATHS[field]
            value = as_object(as_object(part).get(kind)).get(key)
            if value is not None:
                yield _bytes(value), Place(n, field), value


def _with(part: Any, path: tuple[str, ...], value: Any) -> JsonObject:
    """The part with a value at this path; None takes it away."""
    key, *rest = path
    given = as_object(part)
    if rest:
        return {**given, key: _with(given.get(key), tuple(rest), value)}
    return {name: item for name, item in given.items() if name != key} | ({} if value is None else {key: value})


def _bytes(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass"))
