"""Whatever reaches a thread while it continues as new gets a real answer, and counts once."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy.engine import make_url
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import CancelledError

from agentvisor.host.settings import Settings
from client import Thread
from client.errors import Refused
from tests.threads.conftest import Scene


async def test_a_decision_whose_edit_is_being_checked_holds_the_thread_back_and_is_answered(scene: Scene) -> None:
    """The thread continues as new after it; the next execution makes the call, once, and knows who decided."""
    scene.script(scene.call("send_card", words="hi"), "Sent.")
    thread = await scene.thread()
    run_id, (card,) = await scene.paused(thread)
    await scene.hold_effect("reads_card")
    edited = {"mark": scene.mark, "words": "read me first"}
    deciding = asyncio.ensure_future(thread.decide(card.id, True, edited_args=edited, by="ben"))
    await scene.effect("reads_card")
    await thread.renew()
    with pytest.raises(Refused) as refused:
        await thread.decide(card.id, False, by="cleo")
    assert refused.value.kind == "being-decided"
    assert await scene.executions(thread) == 1
    await scene.release_effect("reads_card")
    receipt = await deciding
    assert (receipt.status, receipt.by) == ("approved", "ben")
    assert (await scene.ended(thread, run_id)).answer == "Sent."
    assert await scene.payloads("send_card") == [{"words": "read me first"}]
    assert await scene.executions(thread) == 2
    with pytest.raises(Refused, match="already approved by 'ben'"):
        await thread.decide(card.id, False, by="cleo")
    await scene.history(thread)


async def test_updates_sent_while_a_thread_continues_as_new_again_and_again_all_count(scene: Scene) -> None:
    """Forty from two clients at once, among ten renewals: each has its receipt, and the state holds them all."""
    thread = await scene.thread()
    again = scene.threads.get(thread.id)

    async def put(handle: Thread, name: str) -> list[int]:
        return [(await handle.put_state({f"{name}{n}": n})).revision for n in range(20)]

    async def renew() -> None:
        for _ in range(10):
            await thread.renew()
            await asyncio.sleep(0.1)

    mine, theirs, _ = await asyncio.gather(put(thread, "a"), put(again, "b"), renew())
    assert sorted(mine + theirs) == list(range(1, 41))
    assert await thread.state() == {f"{name}{n}": n for name in "ab" for n in range(20)}
    assert await scene.executions(thread) > 2


async def test_the_signature_of_a_thought_is_the_same_in_every_execution(scene: Scene) -> None:
    """Byte for byte, also for a guest that knows nothing: a model's API refuses any other for ever."""
    call = {"name": "look", "args": {"mark": scene.mark}}
    scene.script({"parts": [{"functionCall": call, "thoughtSignature": "__4A_w=="}]}, "Seen.", words="go")
    scene.script("Here.", words="next")
    thread = await scene.thread(runs_per_execution=1)
    await scene.answered(thread)
    scene.kill_guests()
    await scene.answered(thread, "next")
    assert await scene.executions(thread) > 1
    parts = [part for content in scene.requests()[-1].contents for part in content["parts"]]
    (signature,) = [part["thoughtSignature"] for part in parts if "thoughtSignature" in part]
    assert signature.translate({ord("-"): "+", ord("_"): "/"}) == "//4A/w=="


# ---- while older events go to the Store ------------------------------------------------------------------------------


@contextmanager
def _store_locked() -> Generator[None]:
    """Nobody writes to the Store meanwhile."""
    database = make_url(Settings().store.get_secret_value()).database
    assert database
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def _turns(scene: Scene) -> list[dict[str, Any]]:
    """As many events as are worth keeping in the Store."""
    said = {"role": "user", "parts": [{"text": scene.say("before")}]}
    about = {"invocationId": "before", "timestamp": 1.0, "author": "user", "content": said}
    return [{**about, "id": f"e{n}"} for n in range(60)]


async def _keeping(scene: Scene, thread: Thread) -> None:
    """Continue as new, and wait until older events are on their way to the Store."""
    await thread.renew()
    handle = scene.client.get_workflow_handle(f"thread-{thread.id}")
    async with asyncio.timeout(30):
        async for event in handle.fetch_history_events(wait_new_event=True):
            if event.activity_task_scheduled_event_attributes.activity_type.name == "keep_events":
                return


async def _waiting(scene: Scene) -> tuple[Thread, str]:
    """A thread with older events, a run that waits for an approval, and another one behind it."""
    scene.script(scene.call("pay", amount=5), "Paid.", words="go")
    scene.script("Here.", words="next")
    thread = await scene.thread()
    await thread.append_events(_turns(scene), if_revision=0)
    run_id, _ = await scene.paused(thread)
    await thread.run(scene.say("next"), run_id="behind")
    return thread, run_id


async def test_a_run_that_is_cancelled_while_older_events_are_kept_ends_in_the_next_execution(scene: Scene) -> None:
    thread, run_id = await _waiting(scene)
    await thread.run(scene.say("never"), run_id="queued")
    with _store_locked():
        await _keeping(scene, thread)
        for cancelled in (run_id, "queued"):
            await thread.cancel_run(cancelled, by="ana")
    view = await scene.ended(thread, run_id, "cancelled")
    assert [call.status for call in view.calls] == ["withdrawn"]
    await scene.ended(thread, "queued", "cancelled")
    assert (await scene.ended(thread, "behind")).answer == "Here."
    assert await scene.effects("pay") == 0
    assert await scene.executions(thread) == 2
    await scene.history(thread)


async def test_a_decision_and_state_sent_while_older_events_are_kept_are_carried_on(scene: Scene) -> None:
    thread, run_id = await _waiting(scene)
    with _store_locked():
        await _keeping(scene, thread)
        await thread.decide("ap-1-1", True, by="ben")
        await thread.put_state({"kept": 1})
        with pytest.raises(Refused, match="already approved by 'ben'"):
            await thread.decide("ap-1-1", False, by="cleo")
    assert (await scene.ended(thread, run_id)).answer == "Paid."
    assert (await scene.ended(thread, "behind")).answer == "Here."
    assert await thread.state() == {"kept": 1, "paid": 5}
    assert await scene.effects("pay") == 1
    assert await scene.executions(thread) == 2


@pytest.mark.parametrize("how", ["closed", "cancelled by Temporal"])
async def test_a_thread_that_is_ended_while_older_events_are_kept_ends(scene: Scene, how: str) -> None:
    """Its run ends cancelled, and so does the one behind it; the workflow says how it ended."""
    thread, run_id = await _waiting(scene)
    handle = scene.client.get_workflow_handle(f"thread-{thread.id}")
    with _store_locked():
        await _keeping(scene, thread)
        await (thread.close(by="ana") if how == "closed" else handle.cancel())
        await asyncio.sleep(0.3)
    async with asyncio.timeout(30):
        if how == "closed":
            await handle.result()
        else:
            with pytest.raises(WorkflowFailureError) as ended:
                await handle.result()
            assert isinstance(ended.value.cause, CancelledError)
    recent = (await thread.view()).recent
    assert {run.run_id: run.status for run in recent} == {run_id: "cancelled", "behind": "cancelled"}
    assert await scene.effects("pay") == 0


async def test_a_run_that_is_cancelled_together_with_a_renewal_ends_once(scene: Scene) -> None:
    """In whichever order they arrive: the run ends cancelled, and the thread takes the next one."""
    scene.script(scene.call("pay", amount=5), "never", words="go")
    scene.script("Here.", words="next")
    thread = await scene.thread()
    for _ in range(4):
        run_id, _ = await scene.paused(thread)
        await asyncio.gather(thread.renew(), thread.cancel_run(run_id, by="ana"), thread.renew())
        await scene.ended(thread, run_id, "cancelled")
        assert (await scene.answered(thread, "next")).answer == "Here."
    assert (await thread.view()).runs == 8
    assert await scene.effects("pay") == 0
    assert await scene.executions(thread) > 1
