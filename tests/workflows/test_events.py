from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.workflows.adk_events import (
    asking,
    call,
    confirmation,
    event,
    exact,
    json_objects,
    json_values,
    response,
    text,
)
from workflows.events import answer_content, answer_text, expand, strip, waiting_calls
from workflows.messages import CallAnswer, Handed, JsonObject, as_object

RUN = "b5e3b3a2-run-of-the-leg"
IDS = ("a", "b", "", "~", "^0", "an-id-that-is-long-enough")
ids: st.SearchStrategy[Any] = st.sampled_from(IDS)
small_args: st.SearchStrategy[Any] = st.sampled_from([{}, {"n": 1}, {"n": True}, {"n": 1.0}, {"~": 1}, None, [1]])
results: st.SearchStrategy[Any] = st.sampled_from([1, True, 1.0, None, "x", {"result": 1}, {"~": None}, {"~": "a"}])


def as_response(result: Any) -> JsonObject:
    return as_object(result) if isinstance(result, dict) else {"result": result}


answers = st.builds(
    CallAnswer,
    request_id=ids,
    name=st.sampled_from(["adk_request_confirmation", "wait"]),
    response=json_objects | results.map(lambda result: {"confirmed": True, "payload": {"result": result}}),
)
messages: st.SearchStrategy[Any] = st.sampled_from(
    [None, {}, {"parts": [{"text": "hi"}], "role": "user"}, {"~": "message"}, "text"]
)


def call_without_arguments(id_: str) -> JsonObject:
    return {"functionCall": {"id": id_, "name": "pay"}}


handed = st.builds(Handed, message=messages, answers=st.lists(answers, max_size=3).map(tuple))

calls: st.SearchStrategy[Any] = st.one_of(
    st.builds(call, ids, st.just("pay"), small_args),
    ids.map(call_without_arguments),
    st.builds(
        confirmation,
        ids,
        st.fixed_dictionaries({}, optional={"id": ids, "args": small_args, "name": st.just("pay"), "~": json_values}),
    ),
)
parts: st.SearchStrategy[Any] = st.one_of(
    calls,
    st.builds(response, ids, st.just("pay"), results.map(as_response) | json_values),
    st.sampled_from([text("~"), {"text": "hm", "thought": True}, {"inlineData": {"mimeType": "a/b", "data": "AA=="}}]),
    st.fixed_dictionaries({}, optional={"functionCall": json_values, "functionResponse": json_values}),
    json_values,
)
contents: st.SearchStrategy[Any] = st.one_of(
    st.fixed_dictionaries(
        {"parts": st.lists(parts, max_size=4)}, optional={"role": st.just("model"), "~": json_values}
    ),
    messages,
    st.sampled_from([{"role": "model"}, {"parts": None}, {"parts": {}}]),
    json_values,
)
authors = st.sampled_from(["user", "helper"])
events: st.SearchStrategy[list[JsonObject]] = st.lists(
    st.fixed_dictionaries({"id": st.just("e")}, optional={"author": authors, "content": contents, "more": json_values}),
    max_size=5,
)


@st.composite
def legs(draw: st.DrawFn) -> tuple[list[JsonObject], Handed]:
    """Events of a leg and what it was given; the events repeat some of that, as ADK's do."""
    given_to_leg = draw(handed)
    repeated = [answer_content(given_to_leg.answers), given_to_leg.message]
    repeated += [answer_content([answer]) for answer in given_to_leg.answers]
    told = [event("t", author="user") | {"content": content} for content in repeated]
    return draw(st.permutations([*draw(events), *told])), given_to_leg


@given(legs())
def test_what_was_stripped_and_sent_as_json_is_whole_again(leg: tuple[list[JsonObject], Handed]) -> None:
    events_of_leg, given_to_leg = leg
    stripped = strip(events_of_leg, given_to_leg, run_id=RUN)
    sent, there = json.loads(json.dumps(stripped)), Handed.model_validate_json(given_to_leg.model_dump_json())
    assert exact(expand(stripped, given_to_leg, run_id=RUN)) == exact(events_of_leg)
    assert exact(expand(sent, there, run_id=RUN)) == exact(events_of_leg)


@given(legs())
def test_stripping_and_expanding_change_nothing_in_place(leg: tuple[list[JsonObject], Handed]) -> None:
    events_of_leg, given_to_leg = leg
    before = copy.deepcopy((events_of_leg, given_to_leg))
    stripped = strip(events_of_leg, given_to_leg, run_id=RUN)
    stripped_before = copy.deepcopy(stripped)
    expand(stripped, given_to_leg, run_id=RUN)
    assert (events_of_leg, given_to_leg, stripped) == (*before, stripped_before)


def test_message_arguments_and_results_travel_once() -> None:
    message = {"parts": [text("the words of the user")], "role": "user"}
    answer = CallAnswer(
        request_id="r1",
        name="adk_request_confirmation",
        response={"confirmed": True, "payload": {"result": {"sent": "the result"}}},
    )
    first = [
        event("1", author="user") | {"content": message},
        event("2", call("c1", "pay", {"to": "the arguments"})),
        asking("3", confirmation("r1", {"id": "c1", "name": "pay", "args": {"to": "the arguments"}})),
    ]
    second = [
        event("4", author="user") | {"content": answer_content([answer])},
        event("5", response("c1", "pay", {"sent": "the result"})),
    ]
    one = json.dumps(strip(first, Handed(message=message), run_id=RUN))
    two = json.dumps(strip(second, Handed(answers=(answer,)), run_id=RUN))
    assert "the words" not in one
    assert one.count("the arguments") == 1
    assert "the result" not in two


def test_each_result_stays_what_it_is_where_python_calls_them_equal() -> None:
    given_to_leg = Handed(
        answers=tuple(
            CallAnswer(request_id=str(n), name="c", response={"confirmed": True, "payload": {"result": result}})
            for n, result in enumerate([1, True, 1.0])
        )
    )
    told = [event("e", *(response(str(n), "t", {"result": result}) for n, result in enumerate([1.0, True, 1])))]
    assert exact(expand(strip(told, given_to_leg, run_id=RUN), given_to_leg, run_id=RUN)) == exact(told)


# ---- what waits ----------------------------------------------------------------------------------------------------


def test_calls_wait_in_the_order_of_the_models_calls() -> None:
    leg = [
        event("1", call("c1", "pay", {"n": 1}), call("c2", "wait", {}), call("c3", "pay", {"n": 3}))
        | {"longRunningToolIds": ["c2"]},
        asking("2", confirmation("r3", {"id": "c3", "name": "pay", "args": {"n": 3}}, {})),
        asking("3", confirmation("r1", {"id": "c1", "name": "pay", "args": {"n": 1}}, {})),
    ]
    waiting = waiting_calls(leg)
    assert [(w.request_id, w.call_id, w.tool, w.kind) for w in waiting] == [
        ("r1", "c1", "pay", "tool"),
        ("c2", "c2", "wait", "long_running"),
        ("r3", "c3", "pay", "tool"),
    ]


def test_a_request_for_input_waits_as_input() -> None:
    (waiting,) = waiting_calls([asking("1", call("i1", "adk_request_input", {"message": "?"}), branch="root.ask")])
    assert (waiting.kind, waiting.call_id, waiting.arguments) == ("input", "i1", {"message": "?"})
    assert (waiting.author, waiting.branch) == ("helper", "root.ask")


def test_what_the_user_answered_in_the_leg_does_not_wait() -> None:
    leg = [
        asking("1", call("c1", "wait", {}), call("c2", "wait", {})),
        event("2", response("c1", "wait", {"result": 1}), author="user"),
        event("3", response("c2", "wait", {"status": "pending"})),
    ]
    assert [w.call_id for w in waiting_calls(leg)] == ["c2"]


def test_calls_that_are_not_long_running_do_not_wait() -> None:
    assert waiting_calls([event("1", call("c1", "look", {}), text("…")), event("2", text("done"))]) == []


def test_a_paused_call_says_how_it_is_to_be_made() -> None:
    paused = {"approval": True, "arguments": {"n": 5}, "fingerprint": "f", "effect": "read", "timeout": 2.5}
    (waiting,) = waiting_calls([asking("1", confirmation("r", {"id": "c", "name": "pay", "args": {"n": "5"}}, paused))])
    assert waiting.arguments == {"n": 5}
    assert waiting.pause.model_dump(exclude_defaults=True) == paused


def test_a_confirmation_of_other_code_needs_a_person() -> None:
    original = {"id": "c", "name": "pay", "args": {"n": 1}}
    foreign: list[Any] = [None, {"effect": "neither"}, {"timeout": "long"}, "text", [1], None]
    for payload in foreign:
        (waiting,) = waiting_calls([asking("1", confirmation("r", original, payload))])
        assert waiting.pause.approval is True
        assert waiting.pause.effect == "write"
        assert (waiting.tool, waiting.arguments) == ("pay", {"n": 1})


def test_times_and_retries_of_a_paused_call_are_ones_temporal_takes() -> None:
    original: JsonObject = {"id": "c", "name": "pay", "args": {}}
    for wild in (-1.0, 0.0, 1e300, float("inf"), float("nan")):
        paused = {"timeout": wild, "expires": wild, "retries": -1 if wild < 1 else 10**30}
        (waiting,) = waiting_calls([asking("1", confirmation("r", original, paused))])
        pause = waiting.pause
        for seconds in (pause.timeout, pause.expires):
            assert seconds is None or 0 < float(seconds) < 1e9
        assert pause.retries is None or 0 <= pause.retries <= 100


@given(events, st.lists(ids | json_values, max_size=3))
def test_no_event_of_a_guest_is_too_strange_to_look_for_waiting_calls(
    leg: list[JsonObject], long_running: list[Any]
) -> None:
    for waiting in waiting_calls([{**told, "longRunningToolIds": long_running} for told in leg]):
        assert waiting.request_id in long_running
    answer_text(leg)


# ---- the answer ----------------------------------------------------------------------------------------------------


def test_the_answer_is_the_last_text_without_thoughts() -> None:
    leg = [
        event("1", text("first")),
        event("2", {"text": "let me think", "thought": True}, text("It is "), text("done.")),
        {"id": "3", "author": "helper", "actions": {"endOfAgent": True}},
    ]
    assert answer_text(leg) == "It is done."


def test_the_users_words_are_no_answer() -> None:
    assert answer_text([event("1", text("hello"), author="user")]) is None


def test_thoughts_and_calls_are_no_answer() -> None:
    assert answer_text([event("1", {"text": "hm", "thought": True}, call("c", "look", {}))]) is None
