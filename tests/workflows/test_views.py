from __future__ import annotations

from typing import Any

import pytest

from tests.workflows.adk_events import asking, call, event, exact, text
from tests.workflows.threads import AT, SAID, busy, carried, paused, send, thread
from workflows import views
from workflows.approvals import Refused
from workflows.messages import (
    Answered,
    Done,
    Handed,
    JsonObject,
    LegResult,
    Paused,
    Position,
    SessionPage,
    SessionRequest,
    Usage,
)
from workflows.thread_state import ThreadState

APPROVAL = {"approval": True, "summary": "one invoice", "expires": 60}
NOW = "2023-11-14T22:13:20.000Z"


def whole_session(state: ThreadState, max_bytes: int = 1024) -> tuple[list[JsonObject], Handed | None]:
    """Read as an activity does: pages until `end` is `head`, then answers until none is left."""
    events: list[JsonObject] = []
    since, answers = Position(), ()
    while True:
        page = views.session_page(state, SessionRequest(since=since, max_bytes=max_bytes, answers_from=len(answers)))
        assert page.base == since
        events += page.events
        since = page.end
        if page.end != page.head:
            continue
        answers += page.handed.answers if page.handed else ()
        if not page.answers_left:
            return events, page.handed and page.handed.model_copy(update={"answers": answers})


def status(state: ThreadState) -> str:
    return views.thread_view(state, thread_id="t").status


def run_view(state: ThreadState, run_id: str = "r1") -> Any:
    return views.run_view(state, run_id, thread_id="t")


def test_a_thread_is_idle_busy_waiting_and_closed() -> None:
    state = thread()
    assert status(state) == "idle"
    state, _ = busy()
    assert status(state) == "busy"
    state, _, (one,) = paused(APPROVAL)
    assert status(state) == "waiting"
    one.status = "ready"
    state.ledger.approve("ap-1-1", by="ben", token="t", digest="d", at=AT)
    assert status(state) == "busy"
    state.close(by="ben", at=AT)
    assert status(state) == "closed"


def test_a_run_is_queued_running_waiting_and_then_what_it_ended_as() -> None:
    state = thread()
    send(state)
    assert (run_view(state).status, run_view(state).message) == ("queued", SAID)
    state.begin_next(at=AT)
    assert run_view(state).status == "running"
    leg = asking("e1", call("l1", "wait", {}))
    state.apply_leg(LegResult(outcome=Paused(), events=(leg,), usage=Usage(tokens=5)), at=AT)
    assert (run_view(state).status, run_view(state).usage.tokens, run_view(state).legs) == ("waiting", 5, 1)
    state.hand_answers()
    state.apply_leg(LegResult(outcome=Answered(), events=(event("e2", text("It is done.")),)), at=AT)
    state.end_run("success", at=AT)
    assert (run_view(state).status, run_view(state).answer) == ("success", "It is done.")
    assert (run_view(state).started_at, run_view(state).ended_at) == (NOW, NOW)


def test_an_answer_is_its_own_runs_also_after_being_carried() -> None:
    state = thread()
    for n in range(3):
        send(state, f"r{n}")
        state.begin_next(at=AT)
        leg = event(f"e{n}", text(f"answer {n}"))
        state.apply_leg(LegResult(outcome=Answered(), events=(leg,)), at=AT)
        state.end_run("success", at=AT)
        state = carried(state)
    assert [run_view(state, f"r{n}").answer for n in range(3)] == ["answer 0", "answer 1", "answer 2"]
    state.clear()
    assert run_view(state, "r1").answer is None


def test_an_unknown_run_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        run_view(thread(), "r9")
    assert refused.value.kind == "run-unknown"


def test_an_interrupt_says_all_a_person_needs_to_decide() -> None:
    state, _, _ = paused(APPROVAL)
    (waiting,) = views.interrupts(state, thread_id="t")
    assert waiting.model_dump(mode="json") == {
        "kind": "approval",
        "id": "ap-1-1",
        "thread_id": "t",
        "run_id": "r1",
        "agent": "helper",
        "principal": "ana",
        "tool": "pay",
        "arguments": {"n": 0},
        "summary": "one invoice",
        "since": NOW,
        "deadline": "2023-11-14T22:14:20.000Z",
        "being_decided": False,
        "editable": True,
        "progress": [],
        "detail": None,
    }


def test_interrupts_stand_in_the_order_of_their_calls_and_end_with_their_run() -> None:
    state, run, calls = paused(APPROVAL, {}, APPROVAL, APPROVAL)
    state.interrupt(run, calls[1], "unknown_outcome", at=AT, detail="its worker was lost")
    state.ledger.reserve("ap-1-2", by="ben", at=AT)
    state.ledger.deny("ap-1-3", by="ben", at=AT)
    calls[3].settle_refused(code="approval-denied", message="no", outcome="denied")
    shown = views.interrupts(state, thread_id="t")
    assert [(one.kind, one.id, one.being_decided) for one in shown] == [
        ("approval", "ap-1-1", False),
        ("unknown_outcome", "uo-1-4", False),
        ("approval", "ap-1-2", True),
    ]
    state.cancel("r1", by="ben", at=AT)
    assert views.interrupts(state, thread_id="t") == []


def test_pages_give_the_whole_session_and_its_input_however_small_they_are() -> None:
    state, run, calls = paused({}, {}, {})
    for one in calls:
        one.settle_done(Done(result="x" * 700))
    state.hand_answers()
    for max_bytes in (1024, 2000, 512 * 1024):
        events, handed = whole_session(state, max_bytes)
        assert exact(events) == exact(state.log.slice(0, 3))
        assert handed == run.handed


def test_a_message_is_handed_with_the_last_page() -> None:
    state, run = busy(state={"a": 1})
    events, handed = whole_session(state)
    assert (events, handed) == ([], run.handed)
    assert views.session_page(state, SessionRequest()).state == {"a": 1}


def test_the_session_of_an_idle_thread_has_no_input() -> None:
    assert whole_session(thread()) == ([], None)


def test_only_a_reader_from_the_start_gets_the_state_of_the_start() -> None:
    state = thread(state={"a": 1})
    state.append([event("e1", text("x"), actions={"stateDelta": {"a": 2}})])
    first = views.session_page(state, SessionRequest())
    assert (first.base, first.state, len(first.events)) == (Position(), {"a": 1}, 1)
    later = views.session_page(state, SessionRequest(since=first.end))
    assert (later.base, later.state, later.events) == (first.end, {}, ())
    lost = views.session_page(state, SessionRequest(since=Position(count=1, head="other")))
    assert (lost.base, lost.state) == (Position(), {"a": 1})


def test_the_current_state_comes_without_events() -> None:
    state = thread(state={"a": 1})
    state.append([event("e1", text("x"), actions={"stateDelta": {"a": 2}})])
    page = views.session_page(state, SessionRequest(state_only=True))
    assert page == SessionPage(base=state.log.end, end=state.log.end, head=state.log.end, state={"a": 2})
