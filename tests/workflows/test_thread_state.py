from __future__ import annotations

from typing import Any

import pytest

from tests.workflows.adk_events import asking, call, confirmation, event, response, text
from tests.workflows.threads import AT, SAID, busy, carried, paused, send, thread
from workflows.approvals import Refused
from workflows.events import responses
from workflows.messages import (
    Answered,
    Done,
    Failed,
    HandedOver,
    JsonObject,
    LegResult,
    Options,
    Paused,
    RunError,
    Stopped,
)
from workflows.thread_state import KEPT_RUN_IDS, MAX_QUEUED, ThreadState

APPROVAL = {"approval": True}


def all_events(state: ThreadState) -> list[JsonObject]:
    return state.log.slice(0, state.log.end.count)


def responded(state: ThreadState) -> dict[str, Any]:
    return {part["id"]: part["response"] for told in all_events(state) for part in responses(told)}


def put(state: ThreadState, values: JsonObject, *delete: str, leg_runs: bool = False) -> None:
    state.put_state(values, delete, event_id=f"put{state.revision}", at=AT, leg_runs=leg_runs)


def refusal(state: ThreadState, run_id: str) -> RunError:
    record = state.record(run_id)
    assert record is not None
    assert record.error is not None
    return record.error


# ---- runs ----------------------------------------------------------------------------------------------------------


def test_a_thousand_runs_wait_and_one_more_is_refused() -> None:
    state = thread()
    for n in range(MAX_QUEUED):
        send(state, f"r{n}")
    send(state, "one-more")
    assert refusal(state, "one-more").code == "queue-full"
    assert len(state.queue) == MAX_QUEUED
    assert [queued.run_id for queued in carried(state).queue] == [f"r{n}" for n in range(MAX_QUEUED)]


def test_a_queued_run_is_known_however_many_came_after_it() -> None:
    state = thread()
    for n in range(KEPT_RUN_IDS + 100):
        send(state, f"r{n}")
    state = carried(state)
    for n in (0, 1, KEPT_RUN_IDS):
        send(state, f"r{n}")
    assert len(state.queue) == KEPT_RUN_IDS + 100
    assert len(state.known_runs) == KEPT_RUN_IDS


def test_run_ids_are_remembered_after_their_runs_and_records_are_gone() -> None:
    state = thread()
    for n in range(100):
        send(state, f"r{n}")
        state.begin_next(at=AT)
        state.end_run("success", at=AT)
    state = carried(state)
    assert state.record("r0") is None
    send(state, "r0")
    assert state.queue == []


def test_queued_runs_are_bounded_in_bytes_and_room_comes_back() -> None:
    state = thread()
    send(state, "big", "x" * 1_000_000)
    send(state, "second", "x" * 100_000)
    assert refusal(state, "second").code == "queue-full"
    state.begin_next(at=AT)
    send(state, "third", "x" * 1_000_000)
    assert [queued.run_id for queued in state.queue] == ["third"]


def test_message_and_state_delta_are_bounded_together() -> None:
    state = thread()
    send(state, "r1", "x" * 700_000, state_delta={"a": "x" * 700_000})
    assert refusal(state, "r1").code == "message-refused"


def test_a_malformed_repetition_does_not_touch_the_run_it_repeats() -> None:
    state, _ = busy()
    state.end_run("success", at=AT)
    state.refuse_run("r1", RunError(code="malformed", message="no"), at=AT)
    assert [record.status for record in state.records] == ["success"]


def test_a_closed_thread_ends_what_waits_and_takes_nothing_more() -> None:
    state, run = busy()
    send(state, "r2")
    state.close(by="ben", at=AT)
    state.close(by="eve", at=AT)
    send(state, "r3")
    assert state.closed_by == "ben"
    assert run.ending is not None
    assert [(record.run_id, record.status) for record in state.records] == [("r2", "cancelled"), ("r3", "error")]
    assert refusal(state, "r3").code == "thread-closed"


def test_cancelling_says_what_there_is_to_cancel() -> None:
    state, _ = busy()
    send(state, "r2")
    assert state.cancel("r2", by="ben", at=AT) == "queued"
    assert state.cancel("r1", by="ben", at=AT) == "current"
    for run_id, kind in [("r2", "run-ended"), ("r9", "run-unknown")]:
        with pytest.raises(Refused) as refused:
            state.cancel(run_id, by="ben", at=AT)
        assert refused.value.kind == kind


def test_texts_of_errors_are_cut() -> None:
    state, _ = busy()
    state.end_run("error", RunError(code="agent-error", message="x" * 1_000_000), at=AT)
    assert len(refusal(state, "r1").message) < 5000


# ---- legs ----------------------------------------------------------------------------------------------------------


def test_what_the_user_said_stays_when_the_first_leg_fails_whatever_else_was_stored() -> None:
    state, run = busy()
    message = run.handed.message
    put(state, {"a": 1}, leg_runs=True)
    state.apply_leg(LegResult(outcome=Failed(code="model-error", message="no")), at=AT)
    state.keep_message(run, message, event_id="k", at=AT)
    state.keep_message(run, message, event_id="k2", at=AT)
    assert [told.get("content") for told in all_events(state)] == [None, SAID]


def test_a_leg_that_handed_over_before_it_stored_anything_is_handed_its_message_again() -> None:
    state, run = busy()
    state.apply_leg(LegResult(outcome=HandedOver()), at=AT)
    state.hand_answers()
    assert run.handed.message == SAID


@pytest.mark.parametrize("outcome", [Failed(code="leg-lost", message="no"), Stopped()])
def test_results_stay_in_the_session_when_the_leg_that_gets_them_is_lost(outcome: Failed | Stopped) -> None:
    state, run, (made,) = paused({})
    made.settle_done(Done(result={"sent": 1}, state_delta={"sent": True}))
    state.hand_answers()
    state.apply_leg(LegResult(outcome=outcome), at=AT)
    if isinstance(outcome, Failed):
        state.keep_message(run, None, event_id="k", at=AT)
    else:
        state.settle_unfinished(event_id="k", at=AT, by="ben")
    assert responded(state) == {"c0": {"sent": 1}}
    assert state.state == {"sent": True}


def test_a_leg_that_pauses_and_answers_in_turn_counts_its_calls_through() -> None:
    state, run, (first,) = paused({})
    first.settle_done(Done())
    state.hand_answers()
    again = asking("e4", confirmation("q9", {"id": "c9", "name": "pay", "args": {}}, APPROVAL))
    state.apply_leg(LegResult(outcome=Paused(), events=(again,)), at=AT)
    assert [one.key for one in run.calls] == ["1-2"]
    assert list(state.ledger.open) == ["ap-1-1"]


def test_a_call_whose_arguments_no_permission_can_be_bound_to_is_never_asked_about() -> None:
    state, run = busy()
    arguments: list[JsonObject] = [{"n": 2**60}, {"n": float("nan")}, {"n": "\ud800"}]
    asked = [confirmation(f"q{n}", {"id": f"c{n}", "name": "pay", "args": a}) for n, a in enumerate(arguments)]
    state.apply_leg(LegResult(outcome=Paused(), events=(asking("e1", *asked),)), at=AT)
    assert state.ledger.open == {}
    assert {one.result()["error"]["kind"] for one in run.calls} == {"tool-args-invalid"}


@pytest.mark.parametrize("outcome", [Answered(), HandedOver(), Failed(code="model-error", message="no")])
def test_a_run_that_ended_says_how_each_of_its_calls_ended(outcome: Answered | HandedOver | Failed) -> None:
    state, run, calls = paused({}, {})
    for one in calls:
        one.settle_done(Done(), by="ben")
    state.hand_answers()
    told = event("e4", response("c1", "pay", {"result": None}))
    state.apply_leg(LegResult(outcome=outcome, events=(told,)), at=AT)
    state.keep_message(run, None, event_id="k", at=AT)
    state.end_run("success", at=AT)
    assert {(view.id, view.status, view.by) for view in state.records[0].calls} == {
        ("1-1", "done", "ben"),
        ("1-2", "done", "ben"),
    }


@pytest.mark.parametrize("expires", [1e300, -5, 0, "never", None, 60])
def test_every_lifetime_of_an_approval_has_a_deadline_that_clocks_know(expires: Any) -> None:
    state, _, (made,) = paused({"approval": True, "expires": expires}, options=Options(approval_ttl=3600))
    deadline = state.ledger.open[made.approval_id or ""].deadline
    wanted = {"never": None, 60: AT + 60, 1e300: AT + 10 * 365 * 86400}
    assert deadline == wanted.get(expires, AT + 3600)


def test_an_approval_whose_token_was_spent_does_not_outlive_its_cancelled_run() -> None:
    state, run, (made,) = paused(APPROVAL)
    id_ = made.approval_id or ""
    state.ledger.approve(id_, by="ben", token="t", digest="d", at=AT)
    state.ledger.spend(id_, digest="d", activity_id="a")
    made.status = "running"
    state.cancel(run.run_id, by="ben", at=AT)
    state.settle_unfinished(event_id="k", at=AT, by="ben")
    assert state.ledger.open == {}
    assert state.ledger.settled[id_].status == "approved"


# ---- state ---------------------------------------------------------------------------------------------------------


def test_null_is_a_value_and_deleting_is_explicit() -> None:
    state = thread(state={"a": 1, "b": 2})
    put(state, {"a": None}, "b", "never-set")
    assert state.state == {"a": None}


def test_a_key_that_is_deleted_and_set_is_set() -> None:
    for start in ({"a": 1}, {}):
        state = thread(state=start)
        put(state, {"a": 2}, "a")
        assert state.state == {"a": 2}


def test_deleting_while_a_leg_runs_deletes_what_the_leg_set() -> None:
    state, _ = busy()
    put(state, {}, "a", leg_runs=True)
    leg = event("e1", text("words"), actions={"stateDelta": {"a": 1, "temp:x": 1, "b": 2}})
    state.apply_leg(LegResult(outcome=Answered(), events=(leg,)), at=AT)
    assert state.state == {"b": 2}
    assert carried(state).state == {"b": 2}


@pytest.mark.parametrize("deleted", [5, "ab", {"a": 1}, True, [None, 5, ["a"]]])
def test_a_guests_odd_list_of_deletions_deletes_nothing(deleted: Any) -> None:
    state, _ = busy(state={"a": 1, "b": 2})
    leg = event("e1", text("words"), customMetadata={"deletedState": deleted}, actions=[])
    state.apply_leg(LegResult(outcome=Answered(), events=(leg, {"id": "e2", "customMetadata": 1})), at=AT)
    assert state.state == {"a": 1, "b": 2}


def test_state_from_outside_is_bounded_as_a_whole() -> None:
    state = thread(state={"a": "x" * 600_000})
    with pytest.raises(Refused, match="bytes") as refused:
        put(state, {"b": "x" * 600_000})
    assert refused.value.kind == "state-refused"
    put(state, {"b": "x" * 600_000}, "a")
    assert list(state.state) == ["b"]


def test_every_change_of_the_session_has_a_revision() -> None:
    state = thread()
    put(state, {"a": 1})
    state.append([event("e1", call("c", "look", {}))])
    state.clear()
    assert state.revision == 3
    with pytest.raises(Refused) as refused:
        state.check_revision(2)
    assert refused.value.kind == "stale-revision"


@pytest.mark.parametrize("start", [{"state": {"temp:a": 1}}, {"state": {"a": "\x00"}}, {"metadata": {"a": "\ud800"}}])
def test_a_start_that_cannot_be_kept_is_refused(start: JsonObject) -> None:
    with pytest.raises(Refused):
        thread(**start)
