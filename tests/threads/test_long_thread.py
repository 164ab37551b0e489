"""A thread that is used for long: continue-as-new in every situation, and nothing is lost or done twice."""

from __future__ import annotations

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import CancelledError

from client import Thread
from client.errors import Refused
from tests.threads.conftest import Scene


async def _executions(scene: Scene, thread: Thread) -> int:
    handle = scene.client.get_workflow_handle(f"thread-{thread.id}")
    first, count = (await handle.describe()).run_id, 0
    current: str | None = first
    while current:
        count += 1
        history = await scene.client.get_workflow_handle(f"thread-{thread.id}", run_id=current).fetch_history()
        started = history.events[0].workflow_execution_started_event_attributes
        current = started.continued_execution_run_id or None
    return count


@pytest.mark.timeout(400)
async def test_thirty_runs_over_several_executions_keep_session_queue_and_decisions(scene: Scene) -> None:
    """Continue-as-new after every four runs; a decision of the first run is still known after the last."""
    scene.script(scene.call("pay", amount=1), "Paid.", words="pay")
    scene.script("Noted.", words="word")
    thread = await scene.thread(runs_per_execution=4)
    run_id, (first,) = await scene.paused(thread, "pay")
    await thread.decide(first.id, True, by="ben")
    await scene.ended(thread, run_id)
    for block in range(3):
        run_ids = [await thread.run(scene.say(f"word {block}.{n}")) for n in range(9)]
        await scene.ended(thread, run_ids[-1])
        run_id, (approval,) = await scene.paused(thread, "pay")
        await thread.decide(approval.id, block != 1, by="cleo")
        await scene.ended(thread, run_id)
    view = await thread.view()
    assert (view.runs, view.status) == (31, "idle")
    assert await _executions(scene, thread) >= 7
    with pytest.raises(Refused, match="already approved by 'ben'") as refused:
        await thread.decide(first.id, True, by="dora")
    assert refused.value.kind == "already-decided"
    assert await scene.effects("pay") == 3
    said = [text for text in scene.requests()[-1].user_texts if "word" in text]
    assert said == [scene.say(f"word {block}.{n}") for block in range(3) for n in range(9)]
    pages = [page async for page in thread.session()]
    assert sum(len(page.events) for page in pages) == view.events
    await scene.history(thread)


async def test_a_thread_continues_as_new_while_an_approval_waits(scene: Scene) -> None:
    """Same approval id, same deadline, queued runs too; the decision comes in the next execution."""
    scene.script(scene.call("pay", amount=1), "Paid.", words="pay")
    scene.script("Noted.", words="word")
    thread = await scene.thread()
    run_id, (before,) = await scene.paused(thread, "pay")
    queued = await thread.run(scene.say("word"))
    handle = scene.client.get_workflow_handle(f"thread-{thread.id}")
    old = (await handle.describe()).run_id
    await thread.renew()
    with pytest.raises(Exception):  # noqa: B017, PT011 - the old execution ends as continued
        await scene.client.get_workflow_handle(f"thread-{thread.id}", run_id=old).result(follow_runs=False)
    (after,) = await thread.interrupts()
    assert (after.id, after.deadline, after.since) == (before.id, before.deadline, before.since)
    scene.kill_guests()
    await thread.decide(after.id, True, by="ben")
    assert (await scene.ended(thread, run_id)).answer == "Paid."
    assert (await scene.ended(thread, queued)).answer == "Noted."
    assert await scene.effects("pay") == 1
    assert await _executions(scene, thread) == 2
    await scene.keep_history(thread, "continued-as-new-while-waiting")


async def test_closing_ends_everything_and_the_id_stays_taken(scene: Scene) -> None:
    """Queued runs end cancelled, approvals are withdrawn, and a closed thread is not silently reborn."""
    scene.script(scene.call("pay", amount=1), "never", words="go")
    thread = await scene.thread()
    await scene.paused(thread)
    await thread.run(scene.say("queued"), run_id="queued")
    view = await thread.close(by="ana")
    assert view.status == "closed"
    handle = scene.client.get_workflow_handle(f"thread-{thread.id}")
    await handle.result()
    assert (await handle.describe()).status == WorkflowExecutionStatus.COMPLETED
    statuses = [run.status for run in (await thread.view()).recent]
    assert statuses == ["cancelled", "cancelled"]
    with pytest.raises(Exception, match="closed") as closed:
        await thread.run("anybody?")
    assert getattr(closed.value, "kind", "") == "thread-closed"
    with pytest.raises(Exception) as taken:  # noqa: PT011 - the kind is what counts
        await scene.threads.create("single", thread_id=thread.id)
    assert getattr(taken.value, "kind", "") in {"thread-exists", "thread-closed"}
    await scene.keep_history(thread, "closed")


async def test_a_temporal_cancel_request_is_a_close(scene: Scene) -> None:
    """The run ends cancelled first, then the workflow."""
    scene.script({"text": "late", "hold": scene.mark}, words="go")
    thread = await scene.thread()
    run_id = await thread.run(scene.say())
    await scene.held(scene.mark)
    handle = scene.client.get_workflow_handle(f"thread-{thread.id}")
    await handle.cancel()
    with pytest.raises(WorkflowFailureError) as ended:
        await handle.result()
    assert isinstance(ended.value.cause, CancelledError)
    scene.release(scene.mark)
    (run,) = (await thread.view()).recent
    assert (run.run_id, run.status) == (run_id, "cancelled")
