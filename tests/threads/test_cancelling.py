"""A run is cancelled in whatever state it is: it ends so, what it did is told truthfully, and the next one goes on."""

from __future__ import annotations

import pytest

from client import Thread
from tests.fixtures.gemini import assert_well_formed
from tests.threads.conftest import Scene
from workflows.messages import UnknownOutcomeDone


async def _goes_on(scene: Scene, thread: Thread) -> list[str]:
    """The next run is answered; what its model was shown."""
    assert (await scene.answered(thread, "next")).answer == "Here."
    assert_well_formed(scene.requests()[-1].contents)
    await scene.history(thread)
    return scene.heard(values=True)


@pytest.fixture(autouse=True)
def _next(scene: Scene) -> None:
    scene.script("Here.", words="next")


async def test_a_queued_run_is_cancelled_at_once_and_never_begins(scene: Scene) -> None:
    scene.script({"text": "Done.", "hold": scene.mark}, words="go")
    thread = await scene.thread()
    first = await thread.run(scene.say())
    queued = [await thread.run(scene.say(f"next {n}")) for n in range(3)]
    await scene.held(scene.mark)
    assert (await thread.cancel_run(queued[1], by="ana")).status == "cancelled"
    scene.release(scene.mark)
    assert (await scene.ended(thread, first)).answer == "Done."
    assert (await scene.ended(thread, queued[2])).answer == "Here."
    heard = await _goes_on(scene, thread)
    assert [line for line in heard if line.startswith("USER")] == [
        f"USER {scene.say(words)}" for words in ("go", "next 0", "next 2", "next")
    ]


async def test_a_read_in_its_turn_is_stopped(scene: Scene) -> None:
    scene.script(scene.call("look"), "never", words="go")
    thread = await scene.thread()
    await scene.hold_effect("look")
    run_id = await thread.run(scene.say())
    await scene.effect("look")
    await thread.cancel_run(run_id, by="ana")
    await scene.ended(thread, run_id, "cancelled")
    await scene.release_effect("look")
    assert f"USER {scene.say('go')}" in await _goes_on(scene, thread)
    assert await scene.effects("look") == 1


async def test_a_sync_read_in_its_turn_does_not_keep_a_cancelled_run(scene: Scene) -> None:
    """Its thread cannot be stopped; the run ends all the same, and so does the next one while it still sleeps."""
    scene.script(scene.call("sleep_in_thread", seconds=8.0), "never", words="go")
    thread = await scene.thread()
    run_id = await thread.run(scene.say())
    await scene.effect("sleeps")
    await thread.cancel_run(run_id, by="ana")
    await scene.ended(thread, run_id, "cancelled")
    await _goes_on(scene, thread)
    assert await scene.effects("sleeps") == 1


@pytest.mark.parametrize("ends", [True, False], ids=["then ends", "and stays"])
async def test_of_a_write_that_takes_no_notice_nobody_knows_the_outcome(
    scene: Scene, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that swallows its cancellation took effect once; it is waited for, but not for ever."""
    monkeypatch.setattr("activities.tools._PATIENCE", 1.0)
    scene.script(scene.call("stubborn", ends=ends), "never", words="go")
    thread = await scene.thread()
    await scene.hold_effect("stays")
    run_id = await thread.run(scene.say())
    await scene.effect("stays")
    await thread.cancel_run(run_id, by="ana")
    view = await scene.ended(thread, run_id, "cancelled")
    assert [call.status for call in view.calls] == ["unknown"]
    assert '"kind": "unknown-outcome"' in " ".join(await _goes_on(scene, thread))
    await scene.release_effect("stays")
    assert await scene.effects("stubborn") == 1
    assert await scene.effects("stopped") >= 1


async def test_calls_of_one_turn_end_each_as_far_as_it_came(scene: Scene) -> None:
    """One is done, one is at work, one waits for a person: the next model is told of each what is true."""
    calls = [scene.call("note", text="n"), scene.call("refund", amount=5), scene.call("pay", amount=6)]
    scene.script({"calls": calls}, "never", words="go")
    thread = await scene.thread()
    await scene.hold_effect("refund")
    run_id, (refund, _) = await scene.paused(thread)
    await scene.effect("note")
    await thread.decide(refund.id, True, by="ben")
    await scene.effect("refund")
    await thread.cancel_run(run_id, by="ana")
    await scene.release_effect("refund")
    view = await scene.ended(thread, run_id, "cancelled")
    assert [call.status for call in view.calls] == ["done", "done", "withdrawn"]
    heard = " ".join(await _goes_on(scene, thread))
    assert '"noted": "n"' in heard
    assert '"refunded": 5' in heard
    assert '"kind": "run-cancelled"' in heard
    assert [await scene.effects(tool) for tool in ("note", "refund", "pay")] == [1, 1, 0]


async def test_a_call_whose_outcome_nobody_knows_stays_unknown(scene: Scene) -> None:
    scene.script(scene.call("fragile"), "never", words="go")
    thread = await scene.thread()
    run_id, (approval,) = await scene.paused(thread)
    await thread.decide(approval.id, True, by="ben")
    await scene.effect("fragile")
    (unknown,) = (await thread.wait(run_id, timeout=60)).interrupts
    await thread.cancel_run(run_id, by="ana")
    view = await scene.ended(thread, run_id, "cancelled")
    assert [call.status for call in view.calls] == ["unknown"]
    with pytest.raises(Exception, match=unknown.id):
        await thread.answer(UnknownOutcomeDone(interrupt_id=unknown.id, result=1), by="ben")
    assert '"kind": "unknown-outcome"' in " ".join(await _goes_on(scene, thread))
    assert await scene.effects("fragile") == 1


async def test_a_long_running_call_ends_as_unknown(scene: Scene) -> None:
    """It has begun, and nobody will bring its answer any more."""
    scene.script(scene.call("ask_warehouse"), "never", words="go")
    thread = await scene.thread()
    run_id, _ = await scene.paused(thread)
    await thread.cancel_run(run_id, by="ana")
    view = await scene.ended(thread, run_id, "cancelled")
    assert [call.status for call in view.calls] == ["unknown"]
    assert "unknown-outcome" in " ".join(await _goes_on(scene, thread))


async def test_a_run_is_cancelled_in_the_execution_after_the_one_it_began_in(scene: Scene) -> None:
    scene.script(scene.call("pay", amount=5), "never", words="go")
    thread = await scene.thread(runs_per_execution=1)
    await scene.answered(thread, "next")
    run_id, _ = await scene.paused(thread)
    queued = await thread.run(scene.say("never"))
    await thread.renew()
    for cancelled in (queued, run_id):
        await thread.cancel_run(cancelled, by="ana")
        await scene.ended(thread, cancelled, "cancelled")
    await _goes_on(scene, thread)
    assert await scene.effects("pay") == 0
    assert await scene.executions(thread) >= 2
