from __future__ import annotations

from typing import Any

import pytest

from tests.workflows.adk_events import asking, call, confirmation, event
from tests.workflows.threads import AT, busy, paused
from workflows.closing import closing_events, settle_unfinished, without_response
from workflows.messages import Done, JsonObject, LegResult, Paused
from workflows.run_state import Call


def seen_by_the_model(one: Call) -> Any:
    result = one.result()
    return result["error"]["kind"]


@pytest.mark.parametrize(
    ("status", "kind", "outcome"),
    [
        ("waiting", "run-cancelled", "withdrawn"),
        ("ready", "run-cancelled", "withdrawn"),
        ("running", "unknown-outcome", "unknown"),
        ("unknown", "unknown-outcome", "unknown"),
    ],
)
def test_a_call_that_was_at_work_is_unknown_and_another_was_not_made(status: Any, kind: str, outcome: str) -> None:
    _, _, (one,) = paused({})
    one.status = status
    settle_unfinished(one)
    assert (seen_by_the_model(one), one.outcome) == (kind, outcome)


def test_a_call_that_is_to_be_made_again_is_still_unknown() -> None:
    state, run, (one,) = paused({})
    state.interrupt(run, one, "unknown_outcome", at=AT)
    one.interrupt, one.status = None, "ready"
    settle_unfinished(one)
    assert seen_by_the_model(one) == "unknown-outcome"


def test_a_long_running_tool_has_begun_and_a_question_was_only_asked() -> None:
    state, run = busy()
    leg = asking("e1", call("l", "wait", {}), call("i", "adk_request_input", {}))
    state.apply_leg(LegResult(outcome=Paused(), events=(leg,)), at=AT)
    for one in run.calls:
        settle_unfinished(one)
    assert [(one.tool, seen_by_the_model(one)) for one in run.calls] == [
        ("wait", "unknown-outcome"),
        ("adk_request_input", "run-cancelled"),
    ]


def test_the_first_response_stays() -> None:
    _, _, (one,) = paused({})
    one.settle_done(Done(result="sent"))
    settle_unfinished(one)
    assert one.result() == "sent"


def test_each_branch_has_one_event_with_the_responses_of_its_calls() -> None:
    state, run = busy()
    made = [(n, f"root.{name}", name) for n, name in enumerate(["left", "right", "left"])]
    leg = tuple(
        asking(f"e{n}", confirmation(f"q{n}", {"id": f"c{n}", "name": "pay", "args": {}}), branch=branch, author=author)
        for n, branch, author in made
    )
    state.apply_leg(LegResult(outcome=Paused(), events=leg), at=AT)
    for one in run.calls:
        settle_unfinished(one)
    closing = closing_events(run, event_id="k", at=AT)
    assert [(told["id"], told["branch"], told["author"]) for told in closing] == [
        ("k-0", "root.left", "left"),
        ("k-1", "root.right", "right"),
    ]
    ids = [[part["functionResponse"]["id"] for part in told["content"]["parts"]] for told in closing]
    assert ids == [["c0", "c2"], ["c1"]]
    assert {told["invocationId"] for told in closing} == {"r1"}


def test_what_calls_left_is_in_the_event_and_temp_state_is_not() -> None:
    _, run, calls = paused({}, {})
    calls[0].settle_done(Done(result="sent", state_delta={"a": 1, "b": 1, "temp:x": 1}, artifact_delta={"bill.pdf": 2}))
    calls[1].settle_done(Done(result={"sent": True}, state_delta={"b": 2}))
    (closing,) = closing_events(run, event_id="k", at=AT)
    assert closing["actions"] == {"stateDelta": {"a": 1, "b": 2}, "artifactDelta": {"bill.pdf": 2}}
    responses = [part["functionResponse"]["response"] for part in closing["content"]["parts"]]
    assert responses == [{"result": "sent"}, {"sent": True}]


def test_a_call_without_state_leaves_no_actions() -> None:
    _, run, (one,) = paused({})
    settle_unfinished(one)
    (closing,) = closing_events(run, event_id="k", at=AT)
    assert "actions" not in closing
    assert "branch" not in closing


def test_a_call_is_without_response_until_its_own_stands_in_an_event() -> None:
    _, _, calls = paused({}, {})
    answered: JsonObject = {"functionResponse": {"id": "c1", "name": "pay", "response": {}}}
    asked_again: JsonObject = {"functionResponse": {"id": "q0", "name": "adk_request_confirmation", "response": {}}}
    told = [event("e9", answered), event("e8", asked_again, author="user"), {"id": "e7"}]
    assert [one.call_id for one in without_response(calls, told)] == ["c0"]
