"""Every ADK topology pauses for a person, and goes on in a guest that knows nothing but the thread."""

from __future__ import annotations

import pytest

from tests.threads.conftest import Scene


async def test_a_single_agent_goes_on_in_a_fresh_guest(scene: Scene) -> None:
    """The session is rebuilt from the thread; the model sees call and result."""
    scene.script(scene.call("pay", amount=5), "Paid.")
    thread = await scene.thread("single")
    run_id, (approval,) = await scene.paused(thread)
    assert (approval.tool, approval.arguments) == ("pay", {"mark": scene.mark, "amount": 5})
    scene.kill_guests()
    await thread.decide(approval.id, True, by="ben")
    view = await scene.ended(thread, run_id)
    assert view.answer == "Paid."
    assert await scene.effects("pay") == 1
    assert scene.heard() == [f"USER {scene.say()}", "CALL pay", "RESP pay"]
    assert (await thread.state())["paid"] == 5
    await scene.keep_history(thread, "answered")


@pytest.mark.parametrize(
    ("agent", "helper", "handover"),
    [
        ("transfer", "transferee", "transfer_to_agent"),
        ("tasker", "task_helper", "task_helper"),
        ("asker", "turn_helper", "turn_helper"),
    ],
)
async def test_a_sub_agent_goes_on_in_a_fresh_guest(scene: Scene, agent: str, helper: str, handover: str) -> None:
    """Transfer, mode="task" and mode="single_turn": the paused sub-agent resumes, and its boss after it."""
    from agentvisor.local_gemini import Call

    handing = {"agent_name": helper} if handover == "transfer_to_agent" else {"request": f"{scene.mark} do it"}
    finish = [Call(name="finish_task", args={"result": "helper done"})] if agent == "tasker" else ["helper done"]
    scene.script(Call(name=handover, args=handing), "boss done", agent=agent)
    scene.script(scene.call("pay", amount=5), *finish, "helper done", agent=helper)
    thread = await scene.thread(agent)
    run_id, (approval,) = await scene.paused(thread)
    scene.kill_guests()
    await thread.decide(approval.id, True, by="ben")
    view = await scene.ended(thread, run_id)
    assert view.answer == ("helper done" if agent == "transfer" else "boss done")
    assert await scene.effects("pay") == 1
    await scene.keep_history(thread, agent)


async def test_a_sequence_keeps_temp_state_over_a_pause(scene: Scene) -> None:
    """The first agent pauses, then writes temp: state; the second agent's instruction uses it after another pause."""
    scene.script(scene.call("pay", amount=5), "first words", agent="chain_first")
    scene.script(scene.call("pay", amount=6), "second done", agent="chain_second")
    # The second agent's instruction begins with its name as well.
    thread = await scene.thread("chain")
    run_id, (first,) = await scene.paused(thread)
    scene.kill_guests()
    await thread.decide(first.id, True, by="ben")
    view = await thread.wait(run_id, timeout=60)
    (second,) = view.interrupts
    scene.kill_guests()
    await thread.decide(second.id, True, by="ben")
    view = await scene.ended(thread, run_id)
    assert view.answer == "second done"
    systems = [request.system for request in scene.requests() if "chain_second" in request.system]
    assert len(systems) == 2
    assert all("Before you it was said: first words" in system for system in systems)
    assert not any(key.startswith("temp:") for key in await thread.state())
    assert [p["amount"] for p in await scene.payloads("pay")] == [5, 6]
    await scene.keep_history(thread, "sequence-with-temp-state")


async def test_a_loop_pauses_in_each_of_its_rounds(scene: Scene) -> None:
    """Two rounds, two approvals, each in a fresh guest."""
    scene.script(scene.call("pay", amount=1), "round one", scene.call("pay", amount=2), "round two", agent="looper")
    thread = await scene.thread("loop")
    run_id, (first,) = await scene.paused(thread)
    scene.kill_guests()
    await thread.decide(first.id, True, by="ben")
    (second,) = (await thread.wait(run_id, timeout=60)).interrupts
    scene.kill_guests()
    await thread.decide(second.id, True, by="ben")
    view = await scene.ended(thread, run_id)
    assert view.answer == "round two"
    assert [p["amount"] for p in await scene.payloads("pay")] == [1, 2]
    await scene.keep_history(thread, "loop")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["left first", "right first"])
async def test_parallel_branches_are_decided_in_either_order(scene: Scene, order: tuple[int, int]) -> None:
    """No model turn while one branch is open; each branch sees its own outcome."""
    scene.script(scene.call("pay", amount=1), "left done", agent="left")
    scene.script(scene.call("pay", amount=2), "right done", agent="right")
    thread = await scene.thread("pair")
    run_id, approvals = await scene.paused(thread)
    assert len(approvals) == 2
    by_amount = sorted(approvals, key=lambda approval: approval.arguments["amount"])
    before = len(scene.requests())
    scene.kill_guests()
    await thread.decide(by_amount[order[0]].id, True, by="ben")
    await scene.effect("pay")
    assert [i.id for i in await thread.interrupts()] == [by_amount[order[1]].id]
    assert len(scene.requests()) == before
    await thread.decide(by_amount[order[1]].id, False, reason="not the other", by="ben")
    await scene.ended(thread, run_id)
    assert len(scene.requests()) == before + 2
    assert [p["amount"] for p in await scene.payloads("pay")] == [order[0] + 1]
    last = {
        ("left" if "left." in r.system else "right"): scene.heard(n, values=True)[-1]
        for n, r in enumerate(scene.requests())
    }
    yes, no = ("left", "right") if order == (0, 1) else ("right", "left")
    assert '"paid"' in last[yes]
    assert "approval-denied" in last[no]
    await scene.keep_history(thread, "parallel")
