"""Values that are cut out of events come back to where they were, and what is left is small."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.workflows.adk_events import call, event, exact, json_objects, json_values, response, text
from workflows.cuts import BLOB, CONFIRMATION, CUTS, Place, cut, large_values, missing, whole, whole_answer
from workflows.events import expand, referring, shortened
from workflows.messages import BlobRef, CallAnswer, Handed, JsonObject

LIMIT = 4096
RUN = "the-run-of-these-events"

sizes = st.sampled_from([10, 900, 1500, 5000, 20_000])
bodies: st.SearchStrategy[Any] = st.one_of(
    json_objects, sizes.map(lambda size: {"result": "x" * size}), sizes.map(lambda size: {"a": "y" * size, "~": 1})
)
parts = st.one_of(
    st.builds(response, st.just("c"), st.just("look"), bodies),
    st.builds(call, st.just("c"), st.just("look"), bodies),
    sizes.map(lambda size: {"inlineData": {"mimeType": "a/b", "data": "A" * size}}),
    sizes.map(lambda size: text("t" * size)),
    json_values,
)
events = st.lists(parts, max_size=5).map(lambda given: event("e", *given))


class Shelf:
    """What the Store does: a value by the digest of its JSON."""

    def __init__(self) -> None:
        self.blobs: dict[str, Any] = {}

    def put(self, value: Any) -> BlobRef:
        data = json.dumps(value)
        digest = hashlib.sha256(data.encode()).hexdigest()
        self.blobs[digest] = value
        return BlobRef(digest=digest, size=len(data))

    def cut(self, given: JsonObject) -> JsonObject:
        return cut(given, {place: self.put(value) for place, value in large_values(given, LIMIT).items()})


def size(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


@given(events)
def test_an_event_is_whole_again(given_event: JsonObject) -> None:
    shelf, before = Shelf(), exact(given_event)
    slim = shelf.cut(given_event)
    assert exact(given_event) == before
    assert exact(whole(json.loads(json.dumps(slim)), shelf.blobs)) == before
    assert set(missing(slim).values()) == set(shelf.blobs)


@given(events)
def test_an_event_within_the_limit_is_left_alone_and_a_larger_one_loses_no_more_than_it_must(given: JsonObject) -> None:
    found = large_values(given, LIMIT)
    if size(given) <= LIMIT:
        assert found == {}
    if found:
        left = size(given) - sum(map(size, list(found.values())[:-1]))
        assert left > LIMIT
    assert all(size(value) >= 1024 for value in found.values())
    assert all(place.field in {"response", "data"} for place in found)


@given(events)
def test_without_the_blobs_an_event_still_says_what_is_missing(given: JsonObject) -> None:
    slim = Shelf().cut(given)
    assert whole(slim, {}) == slim


RESULT = {"rows": "r" * 9000}


def _leg(result: JsonObject, payload: JsonObject) -> tuple[Handed, list[JsonObject]]:
    """The input of a leg whose call gave this result, and the leg's events as ADK makes them of it."""
    answer = CallAnswer(request_id="request-1", name=CONFIRMATION, response={"confirmed": True, "payload": payload})
    told = {"functionResponse": {"id": "request-1", "name": CONFIRMATION, "response": answer.response}}
    return Handed(answers=(answer,)), [event("1", told, author="user"), event("2", response("c1", "look", result))]


def test_a_result_in_the_store_stands_in_none_of_the_events_and_comes_back_in_both() -> None:
    shelf = Shelf()
    ref = shelf.put(RESULT)
    whole_handed, told = _leg(RESULT, {"result": RESULT, "state": {"a": 1}})
    slim_handed, _ = _leg(RESULT, {BLOB: ref.model_dump(), "state": {"a": 1}})
    travelling = shortened(referring(told, whole_handed), whole_handed, run_id=RUN)
    kept = expand(travelling, slim_handed, run_id=RUN)
    assert "rrrr" not in json.dumps([travelling, kept])
    assert [missing(one) for one in kept] == [{Place(0, "result"): ref.digest}, {Place(0, "response"): ref.digest}]
    assert exact([whole(one, shelf.blobs) for one in kept]) == exact(told)
    assert whole_answer(slim_handed.answers[0], shelf.blobs).response == {
        "confirmed": True,
        "payload": {"state": {"a": 1}, "result": RESULT},
    }


def test_what_a_person_answered_is_never_taken_for_a_reference() -> None:
    answer = CallAnswer(request_id="r1", name="ask_warehouse", response={"payload": {BLOB: 5}})
    assert whole_answer(answer, {}) == answer
    handed = Handed(answers=(answer,))
    told = [
        event(
            "1",
            {"functionResponse": {"id": "r1", "name": "ask_warehouse", "response": answer.response}},
            author="user",
        )
    ]
    travelling = shortened(referring(told, handed), handed, run_id=RUN)
    assert expand(travelling, handed, run_id=RUN) == told
    assert CUTS not in expand(travelling, handed, run_id=RUN)[0]
