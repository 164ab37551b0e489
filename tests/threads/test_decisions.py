"""How approvals end, what the model is told, and what really happened: counted outside."""

from __future__ import annotations

import pytest

from client.errors import Refused
from tests.threads.conftest import Scene
from workflows.messages import UnknownOutcomeDone, UnknownOutcomeNotDone, UnknownOutcomeRunAgain


async def test_a_denial_reaches_the_model_with_its_reason(scene: Scene) -> None:
    """No effect; the thread takes the next run."""
    scene.script(scene.call("pay", amount=5), "Not paid.", words="go")
    scene.script("Hello.", words="hi")
    thread = await scene.thread()
    run_id, (approval,) = await scene.paused(thread)
    receipt = await thread.decide(approval.id, False, reason="not in this month", by="cleo")
    assert (receipt.status, receipt.by) == ("denied", "cleo")
    view = await scene.ended(thread, run_id)
    assert [(call.tool, call.status, call.by) for call in view.calls] == [("pay", "denied", "cleo")]
    assert '"message": "not in this month"' in scene.heard(values=True)[-1]
    assert await scene.effects("pay") == 0
    assert "paid" not in await thread.state()
    assert (await scene.answered(thread, "hi")).answer == "Hello."
    await scene.keep_history(thread, "denied")


async def test_edited_arguments_are_what_the_tool_gets(scene: Scene) -> None:
    """Validated, guarded and judged first; a refused edit leaves the approval pending."""
    scene.script(scene.call("pay", amount=5), "Done.")
    thread = await scene.thread()
    run_id, (approval,) = await scene.paused(thread)
    for edited, kind in (
        ({"mark": scene.mark, "amount": 666}, "guardrail-blocked"),
        ({"mark": scene.mark, "amount": "many"}, "tool-args-invalid"),
        ({"amount": 5}, "tool-args-invalid"),
        ({"mark": scene.mark, "amount": 5, "tip": 1}, "tool-args-invalid"),
    ):
        with pytest.raises(Refused) as refused:
            await thread.decide(approval.id, True, edited_args=edited, by="ben")
        assert refused.value.kind == kind
    assert [i.id for i in await thread.interrupts()] == [approval.id]
    await thread.decide(approval.id, True, edited_args={"mark": scene.mark, "amount": 50}, by="ben")
    await scene.ended(thread, run_id)
    assert await scene.payloads("pay") == [{"amount": 50}]
    assert (await thread.state())["paid"] == 50
    summaries = [event.user_metadata.summary.data for event in (await scene.history(thread)).events]
    assert b'"pay: pays 50"' in summaries
    assert b'"pay: pays 5"' not in summaries
    await scene.keep_history(thread, "approved-with-edit")


async def test_a_decision_is_taken_once(scene: Scene) -> None:
    """Whoever comes second is told what was decided, and by whom; nothing runs again."""
    scene.script(scene.call("pay", amount=5), "Done.")
    thread = await scene.thread()
    run_id, (approval,) = await scene.paused(thread)
    await thread.decide(approval.id, True, by="ben")
    for approved in (True, False):
        with pytest.raises(Refused, match="already approved by 'ben'") as refused:
            await thread.decide(approval.id, approved, by="cleo")
        assert refused.value.kind == "already-decided"
    await scene.ended(thread, run_id)
    with pytest.raises(Refused, match="already approved by 'ben'"):
        await thread.decide(approval.id, True, by="cleo")
    assert await scene.effects("pay") == 1
    assert len(scene.requests()) == 2


async def test_an_expired_approval_is_not_a_human_no(scene: Scene) -> None:
    """The model is told that nobody decided in time; a late decision is refused as expired."""
    scene.script(scene.call("pay_soon", amount=5), "Too late.")
    thread = await scene.thread()
    view = await scene.answered(thread)
    assert view.answer == "Too late."
    assert '"kind": "approval-expired"' in scene.heard(values=True)[-1]
    assert await scene.effects("pay_soon") == 0
    with pytest.raises(Refused) as refused:
        await thread.decide("ap-1-1", True, by="ben")
    assert refused.value.kind == "approval-expired"
    await scene.keep_history(thread, "expired")


async def test_a_run_cancelled_while_waiting_withdraws_its_approval(scene: Scene) -> None:
    """The run ends cancelled, the approval cannot be decided any more, and the next run's model is told."""
    scene.script(scene.call("pay", amount=5), "never said", words="go")
    scene.script("As you wish.", words="next")
    thread = await scene.thread()
    run_id, (approval,) = await scene.paused(thread)
    await thread.cancel_run(run_id, by="ana")
    view = await scene.ended(thread, run_id, "cancelled")
    assert view.error
    assert view.error.code == "cancelled"
    with pytest.raises(Refused) as refused:
        await thread.decide(approval.id, True, by="ben")
    assert refused.value.kind == "approval-withdrawn"
    assert (await scene.answered(thread, "next")).answer == "As you wish."
    assert '"kind": "run-cancelled"' in " ".join(scene.heard(values=True))
    assert await scene.effects("pay") == 0
    await scene.keep_history(thread, "cancelled-while-waiting")


@pytest.mark.parametrize("answer", ["done", "not_done", "run_again"])
async def test_an_unknown_outcome_waits_for_a_person(scene: Scene, answer: str) -> None:
    """The process died in the tool after its effect: nobody retries; a person says what is true."""
    scene.script(scene.call("fragile"), "Clear now.")
    thread = await scene.thread()
    run_id, (approval,) = await scene.paused(thread)
    await thread.decide(approval.id, True, by="ben")
    await scene.effect("fragile")
    (unknown,) = (await thread.wait(run_id, timeout=60)).interrupts
    assert unknown.kind == "unknown_outcome"
    assert unknown.tool == "fragile"
    assert await scene.effects("fragile") == 1
    assert len(scene.requests()) == 1
    said = {
        "done": UnknownOutcomeDone(interrupt_id=unknown.id, result={"looked": "it is there"}),
        "not_done": UnknownOutcomeNotDone(interrupt_id=unknown.id, reason="nothing there"),
        "run_again": UnknownOutcomeRunAgain(interrupt_id=unknown.id),
    }[answer]
    await thread.answer(said, by="cleo")
    await scene.ended(thread, run_id)
    told = {
        "done": '"looked": "it is there"',
        "not_done": '"message": "nothing there"',
        "run_again": '"survived": true',
    }
    assert told[answer] in scene.heard(values=True)[-1]
    assert await scene.effects("fragile") == (2 if answer == "run_again" else 1)
    assert len(scene.requests()) == 2
    await scene.keep_history(thread, "unknown-outcome")


async def test_a_probe_answers_for_the_person(scene: Scene) -> None:
    """The tool's probe gets the idempotency key the tool had, and nobody is asked."""
    scene.script(scene.call("probed"), "Found it.")
    thread = await scene.thread()
    run_id, (approval,) = await scene.paused(thread)
    await thread.decide(approval.id, True, by="ben")
    view = await scene.ended(thread, run_id)
    assert view.answer == "Found it."
    (made,) = await scene.payloads("probed")
    assert f'"found": "{made["key"]}"' in scene.heard(values=True)[-1]
    assert await scene.effects("probed") == 1
