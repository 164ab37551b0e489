from __future__ import annotations

import pytest

from tests.workflows.threads import AT, busy, paused
from workflows.messages import Done, ToolFailed
from workflows.run_state import iso


def test_times_are_utc_in_milliseconds() -> None:
    assert iso(0) == "1970-01-01T00:00:00.000Z"
    assert iso(AT + 0.1239) == "2023-11-14T22:13:20.123Z"


def test_keys_and_interrupts_of_a_run_are_numbered_once() -> None:
    _, run = busy()
    assert [run.next_call(), run.next_call()] == ["1-1", "1-2"]
    assert [run.next_interrupt(), run.next_interrupt()] == [1, 2]


def test_every_change_of_a_call_is_another_digest() -> None:
    _, _, (one, other) = paused({}, {})
    digest = one.digest(thread_id="t", run_id="r")
    changed = [
        one.digest(thread_id="t2", run_id="r"),
        one.digest(thread_id="t", run_id="r2"),
        other.digest(thread_id="t", run_id="r"),
        one.model_copy(update={"args": {"n": 0.5}}).digest(thread_id="t", run_id="r"),
        one.model_copy(update={"tool": "look"}).digest(thread_id="t", run_id="r"),
        one.model_copy(update={"pause": one.pause.model_copy(update={"fingerprint": "f"})}).digest(
            thread_id="t", run_id="r"
        ),
    ]
    assert len({digest, *changed}) == 7


@pytest.mark.parametrize("result", [None, 0, False, "", [], {}, {"error": "no"}])
def test_whatever_a_tool_returns_is_handed_over(result: object) -> None:
    _, _, (one,) = paused({})
    one.settle_done(Done(result=result))
    assert one.answer().response == {"confirmed": True, "payload": {"result": result}}
    assert one.view().result == result


def test_a_failure_and_a_refusal_look_alike_to_the_model() -> None:
    _, _, (one, other) = paused({}, {})
    one.settle_failed(ToolFailed(code="tool-error", message="no", state_delta={"a": 1}))
    other.settle_refused(code="approval-denied", message="no", outcome="denied", by="ben")
    assert one.result() == {"error": {"kind": "tool-error", "message": "no"}}
    assert other.result() == {"error": {"kind": "approval-denied", "message": "no"}}
    assert one.payload()["state"] == {"a": 1}
    assert (other.outcome, other.by, other.response and other.response["confirmed"]) == ("denied", "ben", False)


def test_a_call_that_waits_has_no_result() -> None:
    _, _, (one,) = paused({"approval": True})
    assert (one.result(), one.payload(), one.view().status) == (None, {}, "waiting")
