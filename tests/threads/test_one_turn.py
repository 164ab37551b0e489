"""One model turn with many calls: each gets its own outcome, and the model sees each answered once, in call order."""

from __future__ import annotations

from tests.fixtures.gemini import assert_well_formed
from tests.threads.conftest import Scene
from workflows.messages import LongRunningAnswer


async def test_two_approvals_and_a_read_are_decided_in_reverse_order(scene: Scene) -> None:
    """One is edited, one denied; no model turn happens while one is open."""
    turn = [scene.call("pay", amount=1), scene.call("look"), scene.call("pay", amount=2)]
    scene.script({"calls": turn}, "All settled.")
    thread = await scene.thread()
    run_id, (first, second) = await scene.paused(thread)
    assert (first.arguments["amount"], second.arguments["amount"]) == (1, 2)
    assert await scene.effects("look") == 1
    await thread.decide(second.id, True, edited_args={"mark": scene.mark, "amount": 20}, by="ben")
    await scene.effect("pay")
    assert len(scene.requests()) == 1
    await thread.decide(first.id, False, reason="too early", by="cleo")
    view = await scene.ended(thread, run_id)
    assert view.answer == "All settled."
    assert [payload["amount"] for payload in await scene.payloads("pay")] == [20]
    assert len(scene.requests()) == 2
    assert_well_formed(scene.requests()[-1].contents)
    answers = scene.heard(values=True)[-3:]
    assert '"kind": "approval-denied", "message": "too early"' in answers[0]
    assert '"seen": 1' in answers[1]
    assert '"paid": 20' in answers[2]


async def test_adapter_confirmation_and_long_running_tools_share_a_turn(scene: Scene) -> None:
    """Answered in any order, in a fresh guest, seen by the model in call order."""
    turn = [
        scene.call("ask_warehouse"),
        scene.call("pay", amount=3),
        scene.call("look"),
        scene.call("refund", amount=4),
        scene.call("note", text="n"),
    ]
    scene.script({"calls": turn}, "All five.")
    thread = await scene.thread()
    run_id, waiting = await scene.paused(thread)
    by_tool = {interrupt.tool: interrupt for interrupt in waiting}
    assert {tool: interrupt.kind for tool, interrupt in by_tool.items()} == {
        "ask_warehouse": "long_running",
        "pay": "approval",
        "refund": "approval",
    }
    scene.kill_guests()
    await thread.decide(by_tool["refund"].id, True, edited_args={"mark": scene.mark, "amount": 40}, by="ben")
    await thread.decide(by_tool["pay"].id, True, by="ben")
    await scene.effect("refund")
    await scene.effect("pay")
    progress = LongRunningAnswer(interrupt_id=by_tool["ask_warehouse"].id, result={"half": True}, final=False)
    await thread.answer(progress, by="robot")
    assert (await thread.interrupts())[0].progress == ({"half": True},)
    assert len(scene.requests()) == 1
    await thread.answer(progress.model_copy(update={"result": {"stock": 7}, "final": True}), by="robot")
    view = await scene.ended(thread, run_id)
    assert view.answer == "All five."
    assert len(scene.requests()) == 2
    assert_well_formed(scene.requests()[-1].contents)
    answers = scene.heard(values=True)[-5:]
    assert '"stock": 7' in answers[0]
    assert '"paid": 3' in answers[1]
    assert '"seen": 1' in answers[2]
    assert '"refunded": 40' in answers[3]
    assert '"noted": "n"' in answers[4]
    for tool in ("ask_warehouse", "pay", "look", "refund", "note"):
        assert await scene.effects(tool) == 1
    await scene.keep_history(thread, "many-answers-in-one-turn")


async def test_repeated_call_ids_of_the_model_name_different_calls(scene: Scene) -> None:
    """Two calls of one turn share an id, and a later turn uses it again: three approvals, three effects."""
    turn = [scene.call("pay", id="call_0", amount=1), scene.call("pay", id="call_0", amount=2)]
    scene.script({"calls": turn}, scene.call("pay", id="call_0", amount=3), "Thrice.")
    thread = await scene.thread()
    run_id, (first, second) = await scene.paused(thread)
    await thread.decide(first.id, True, by="ben")
    await thread.decide(second.id, True, by="ben")
    view = await thread.wait(run_id, timeout=60)
    (third,) = view.interrupts
    assert third.arguments["amount"] == 3
    await thread.decide(third.id, True, by="ben")
    await scene.ended(thread, run_id)
    assert sorted(payload["amount"] for payload in await scene.payloads("pay")) == [1, 2, 3]


async def test_arguments_that_cannot_run_are_never_shown_to_a_person(scene: Scene) -> None:
    """A wrong type and a guard's refusal go straight back to the model."""
    turn = [scene.call("pay", amount="five"), scene.call("pay", amount=666), scene.call("refund", amount="x")]
    scene.script({"calls": turn}, "I see.")
    thread = await scene.thread()
    view = await scene.answered(thread)
    assert view.answer == "I see."
    answers = scene.heard(values=True)[-3:]
    assert '"kind": "tool-args-invalid"' in answers[0]
    assert '"kind": "guardrail-blocked"' in answers[1]
    assert '"kind": "tool-args-invalid"' in answers[2]
    assert await scene.effects("pay") == 0


async def test_state_of_parallel_calls_is_merged_in_the_order_of_the_calls(scene: Scene) -> None:
    """Whichever was made first: of two that write one key the last call's value stays, and both calls are known."""
    calls = [scene.call("pay", amount=1), scene.call("pay", amount=2)]
    scene.script({"calls": calls}, "Paid.")
    thread = await scene.thread()
    run_id, (first, second) = await scene.paused(thread)
    await thread.decide(second.id, True, by="ben")
    await scene.effect("pay")
    await thread.decide(first.id, True, by="ben")
    view = await scene.ended(thread, run_id)
    assert [call.status for call in view.calls] == ["done", "done"]
    assert await scene.payloads("pay") == [{"amount": 2}, {"amount": 1}]
    assert (await thread.state())["paid"] == 2
