"""Legs of real threads: what guests, workers and models do to them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from temporalio.client import Client

from agentvisor.local_gemini import LocalGemini
from tests.activities.conftest import Hosted, hosting, write_project
from tests.fixtures.effects import Effects
from tests.fixtures.gemini import assert_well_formed, call
from workflows.messages import Options


async def test_a_run_with_a_read_tool_is_one_leg(hosted: Hosted) -> None:
    hosted.gemini.script([{"calls": [call("look", size=3)]}, "It is {response:look.result}."], user="read it")
    view = await hosted.run("read it")
    assert (view.status, view.answer, view.legs) == ("success", "It is xxx.", 1)
    assert (view.usage.model_calls, view.usage.tool_calls) == (2, 1)


async def test_a_write_tool_runs_in_an_activity_of_its_own_between_two_legs(hosted: Hosted) -> None:
    hosted.gemini.script([{"calls": [call("pay", amount=17)]}, "Paid {response:pay.paid}."], user="pay it")
    view = await hosted.run("pay it")
    assert (view.status, view.answer, view.legs) == ("success", "Paid 17.", 2)
    assert (await hosted.effects.all("pay")).count(17) == 1


async def test_a_call_that_needs_approval_waits_and_runs_once_after_it(hosted: Hosted) -> None:
    hosted.gemini.script([{"calls": [call("invoice", amount=18)]}, "Sent {response:invoice.sent}."], user="bill it")
    thread = await hosted.threads.create("shop")
    run_id = await thread.run("bill it")
    view = await hosted.ended(thread, run_id)
    assert view.status == "waiting"
    assert 18 not in await hosted.effects.all("invoice")
    await thread.decide(view.interrupts[0].id, True, by="ana")
    view = await hosted.ended(thread, run_id)
    assert (view.status, view.answer) == ("success", "Sent 18.")
    assert (await hosted.effects.all("invoice")).count(18) == 1


async def test_a_leg_whose_guest_is_killed_goes_on_from_its_last_heartbeat(hosted: Hosted) -> None:
    gemini = hosted.gemini
    gemini.script([{"calls": [call("look", size=3)]}, {"text": "Done.", "hold": "killed"}], user="kill it")
    thread = await hosted.threads.create("shop")
    run_id = await thread.run("kill it")
    await gemini.held("killed")
    for pid in hosted.guests.pids():
        os.kill(pid, signal.SIGKILL)
    gemini.release("killed")
    view = await hosted.ended(thread, run_id)
    assert (view.status, view.answer) == ("success", "Done.")
    turns = [len(request.contents) for request in gemini.requests() if "kill it" in str(request.contents)]
    assert turns.count(1) == 1
    async for page in thread.session():
        assert str(page.events).count("'functionResponse'") == 1
        assert [event["author"] for event in page.events].count("user") == 1


async def test_a_guest_that_dies_in_a_tool_costs_one_attempt(hosted: Hosted) -> None:
    hosted.gemini.script([{"calls": [call("die_once", marker="m1")]}, "{response:die_once.result}"], user="die in it")
    view = await hosted.run("die in it")
    assert (view.status, view.answer) == ("success", "alive")
    assert await hosted.effects.count("m1") == 2


async def test_a_cancelled_run_stops_its_leg_and_the_thread_goes_on(hosted: Hosted) -> None:
    hosted.gemini.script([{"text": "Late.", "hold": "cancelled"}], user="cancel it")
    hosted.gemini.script(["Here."], user="after the cancel")
    thread = await hosted.threads.create("shop")
    run_id = await thread.run("cancel it")
    await hosted.gemini.held("cancelled")
    await thread.cancel_run(run_id, by="ana")
    assert (await hosted.ended(thread, run_id)).status == "cancelled"
    view = await hosted.ended(thread, await thread.run("after the cancel"))
    assert (view.status, view.answer) == ("success", "Here.")


async def test_a_model_that_fails_on_every_attempt_ends_the_run_and_keeps_the_message(hosted: Hosted) -> None:
    hosted.gemini.script([{"text": "x", "faults": [{"code": 503}]}], user="break it")
    hosted.gemini.script(["Here."], user="after the break")
    thread = await hosted.threads.create("shop", options=Options(leg_attempts=2))
    view = await hosted.ended(thread, await thread.run("break it"))
    assert view.error
    assert (view.status, view.error.code) == ("error", "model-error")
    assert len([request for request in hosted.gemini.requests() if "break it" in str(request.contents)]) == 2
    view = await hosted.ended(thread, await thread.run("after the break"))
    assert (view.status, view.answer) == ("success", "Here.")
    assert "break it" in str(hosted.gemini.requests()[-1].contents)


async def test_a_failure_that_another_attempt_cannot_mend_ends_the_run_at_once(hosted: Hosted) -> None:
    hosted.gemini.script([{"text": "x", "faults": [{"code": 404}]}], user="lose it")
    view = await hosted.run("lose it")
    assert view.error
    assert view.error.code == "model-error"
    assert len([request for request in hosted.gemini.requests() if "lose it" in str(request.contents)]) == 1


async def test_an_agent_the_worker_does_not_have_ends_the_run_naming_those_it_has(hosted: Hosted) -> None:
    thread = await hosted.threads.create("other")
    view = await hosted.ended(thread, await thread.run("go"))
    assert view.error
    assert view.error.code == "unknown-agent"
    assert "it has: shop" in view.error.message


async def test_a_result_that_history_cannot_hold_ends_the_run_and_leaves_the_thread_usable(hosted: Hosted) -> None:
    hosted.gemini.script([{"calls": [call("look", size=20_000_000)]}, "Seen."], user="flood it")
    hosted.gemini.script(["Here."], user="after the flood")
    thread = await hosted.threads.create("shop")
    view = await hosted.ended(thread, await thread.run("flood it"))
    assert view.error
    assert view.error.code == "result-too-large"
    view = await hosted.ended(thread, await thread.run("after the flood"))
    assert (view.status, view.answer) == ("success", "Here.")


async def test_a_leg_whose_progress_grows_large_hands_over(hosted: Hosted) -> None:
    slow = [{"text": str(n) * 150_000, "calls": [call("look", size=n)], "delay": 0.7} for n in range(4)]
    hosted.gemini.script([*slow, "Done."], user="grow it")
    view = await hosted.run("grow it")
    assert (view.status, view.answer) == ("success", "Done.")
    assert view.legs > 1
    assert_well_formed(hosted.gemini.requests()[-1].contents)


async def test_a_long_message_and_a_long_session_are_asked_for(hosted: Hosted) -> None:
    hosted.gemini.script(["Short."], user="^(long|short) it", at="last", repeat=True)
    thread = await hosted.threads.create("shop")
    for _ in range(3):
        assert (await hosted.ended(thread, await thread.run("long it " + "x" * 300_000))).status == "success"
    for pid in hosted.guests.pids():
        os.kill(pid, signal.SIGKILL)
    view = await hosted.ended(thread, await thread.run("short it"))
    assert (view.status, view.answer) == ("success", "Short.")
    assert len(hosted.gemini.requests()[-1].contents) == 7


async def test_a_worker_that_ends_hands_its_legs_over(
    client: Client, tmp_path: Path, gemini: LocalGemini, effects: Effects, task_queue: str
) -> None:
    gemini.script([{"calls": [call("look", size=3)]}, {"text": "Done.", "hold": "second"}])
    folder = write_project(tmp_path / "shop")
    async with hosting(client, folder, gemini, effects, task_queue=task_queue) as hosted:
        thread = await hosted.threads.create("shop")
        run_id = await thread.run("go")
        await gemini.held("second")
    gemini.release("second")
    async with hosting(client, folder, gemini, effects, task_queue=task_queue):
        view = await hosted.ended(thread, run_id)
        assert (view.status, view.answer, view.legs) == ("success", "Done.", 2)
