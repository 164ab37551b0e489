"""Cancelling a run reaches whatever it is doing; threads do not wait for each other."""

from __future__ import annotations

import asyncio

from tests.threads.conftest import Scene


async def test_cancel_reaches_a_model_call(scene: Scene) -> None:
    """The run ends, the user's words stay in the session, the thread goes on."""
    scene.script({"text": "late", "hold": scene.mark}, words="go")
    scene.script("Here.", words="next")
    thread = await scene.thread()
    run_id = await thread.run(scene.say())
    await scene.held(scene.mark)
    await thread.cancel_run(run_id, by="ana")
    await scene.ended(thread, run_id, "cancelled")
    scene.release(scene.mark)
    assert (await scene.answered(thread, "next")).answer == "Here."
    assert f"USER {scene.say('go')}" in scene.heard()
    await scene.keep_history(thread, "cancelled-in-a-leg")


async def test_cancel_reaches_an_async_tool_and_its_outcome_is_unknown(scene: Scene) -> None:
    """The effect was counted, no result came: the next run's model is told just that."""
    scene.script(scene.call("pay", amount=5), "never", words="go")
    scene.script("Hm.", words="next")
    thread = await scene.thread()
    await scene.hold_effect("pay")
    run_id, (approval,) = await scene.paused(thread)
    await thread.decide(approval.id, True, by="ben")
    await scene.effect("pay")
    await thread.cancel_run(run_id, by="ana")
    view = await scene.ended(thread, run_id, "cancelled")
    assert [call.status for call in view.calls] == ["unknown"]
    await scene.release_effect("pay")
    await scene.answered(thread, "next")
    assert '"kind": "unknown-outcome"' in " ".join(scene.heard(values=True))
    assert await scene.effects("pay") == 1
    await scene.history(thread)


async def test_cancel_waits_for_the_truth_of_a_sync_tool(scene: Scene) -> None:
    """A plain tool in a thread cannot be stopped: it ends, and what it did is recorded as done."""
    scene.script(scene.call("refund", amount=5), "never", words="go")
    scene.script("I know.", words="next")
    thread = await scene.thread()
    await scene.hold_effect("refund")
    run_id, (approval,) = await scene.paused(thread)
    await thread.decide(approval.id, True, by="ben")
    await scene.effect("refund")
    await thread.cancel_run(run_id, by="ana")
    await asyncio.sleep(1)
    assert (await thread.run_view(run_id)).status == "running"
    await scene.release_effect("refund")
    view = await scene.ended(thread, run_id, "cancelled")
    assert [call.status for call in view.calls] == ["done"]
    await scene.answered(thread, "next")
    assert '"refunded": 5' in " ".join(scene.heard(values=True))


async def test_a_sleeping_sync_tool_does_not_delay_another_thread(scene: Scene) -> None:
    """While one thread's tool sleeps two seconds in the only guest, another thread's run begins and ends."""
    scene.script(scene.call("sleep_in_thread", seconds=2.0), "Slept.", words="sleep")
    scene.script("Quick.", words="quick")
    sleeper, other = await scene.thread(), await scene.thread()
    slow = await sleeper.run(scene.say("sleep"))
    await scene.effect("sleeps")
    assert (await scene.answered(other, "quick")).answer == "Quick."
    assert await scene.effects("slept") == 0
    assert (await scene.ended(sleeper, slow)).answer == "Slept."


async def test_a_time_limit_ends_a_run(scene: Scene) -> None:
    """Waiting counts; the run ends as timeout and the thread goes on."""
    from workflows.messages import RunLimits

    scene.script(scene.call("pay", amount=5), "never", words="go")
    scene.script("Here.", words="next")
    thread = await scene.thread(limits=RunLimits(seconds=3))
    run_id = await thread.run(scene.say())
    view = await scene.ended(thread, run_id, "timeout")
    assert view.error
    assert view.error.code == "run-limit-exceeded"
    assert (await scene.answered(thread, "next")).answer == "Here."
    assert await scene.effects("pay") == 0
