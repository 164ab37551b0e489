"""Values that are too large for history are in the Store, and the session is whole for whoever has it."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest

from client import Thread, Threads
from tests.threads.conftest import Scene
from workflows.messages import CallView, UnknownOutcomeDone

LARGE = 300_000


async def _events(thread: Thread) -> list[dict[str, Any]]:
    return [event async for page in thread.session() for event in page.events]


async def _done(thread: Thread, run_id: str) -> CallView:
    """The first call of the run, once it is done."""
    async with asyncio.timeout(60), aclosing(thread.watch(run_id)) as views:
        async for view in views:
            if view.calls and view.calls[0].status == "done":
                return view.calls[0]
    raise AssertionError("the run ended before")


async def _history_bytes(scene: Scene, thread: Thread) -> int:
    return sum(event.ByteSize() for event in (await scene.history(thread)).events)


async def test_a_large_result_of_a_read_is_not_in_history_and_the_session_has_it(scene: Scene) -> None:
    """Also for the next leg, in a guest that knows nothing; who reads without the Store is told what is missing."""
    scene.script(scene.call("weigh", size=LARGE), "Heavy.", words="weigh")
    scene.script("Still.", words="again")
    thread = await scene.thread()
    assert (await scene.answered(thread, "weigh")).answer == "Heavy."
    assert await _history_bytes(scene, thread) < 20_000
    assert "w" * LARGE in json.dumps(await _events(thread))
    scene.kill_guests()
    assert (await scene.answered(thread, "again")).answer == "Still."
    assert "w" * LARGE in "".join(scene.heard(values=True))
    bare = Threads(scene.client, task_queue=scene.worker.task_queue).get(thread.id)
    (cut,) = [event["~cuts"] for event in await _events(bare) if "~cuts" in event]
    assert [(mark["field"], mark["size"] > LARGE) for mark in cut] == [("response", True)]
    assert await scene.effects("weigh") == 1


async def test_a_large_result_of_a_write_is_not_in_history_and_the_model_has_it(scene: Scene) -> None:
    scene.script(scene.call("carve", size=LARGE), scene.call("note", text="n"), "Carved.")
    thread = await scene.thread()
    assert (await scene.answered(thread)).answer == "Carved."
    assert "c" * LARGE in "".join(scene.heard(values=True))
    assert await _history_bytes(scene, thread) < 30_000
    assert json.dumps(await _events(thread)).count("c" * LARGE) == 2  # the answer to the call, and ADK's own response


async def test_a_run_that_is_cancelled_keeps_the_large_result_it_has(scene: Scene) -> None:
    scene.script({"calls": [scene.call("carve", size=LARGE), scene.call("pay", amount=1)]}, "never", words="go")
    scene.script("Next.", words="next")
    thread = await scene.thread()
    run_id, _ = await scene.paused(thread)
    carved = await _done(thread, run_id)
    assert carved.result["blob"]["size"] > LARGE
    await thread.cancel_run(run_id, by="ana")
    await scene.ended(thread, run_id, "cancelled")
    assert (await scene.answered(thread, "next")).answer == "Next."
    assert "c" * LARGE in "".join(scene.heard(values=True))


@pytest.mark.parametrize("size", [1_000, 60_000, 70_000, 2_000_000, 7_000_000])
async def test_a_result_of_any_size_up_to_eight_mebibytes_reaches_the_model(scene: Scene, size: int) -> None:
    scene.script({"calls": [scene.call("weigh", size=size), scene.call("carve", size=size)]}, "Both.")
    thread = await scene.thread()
    assert (await scene.answered(thread)).answer == "Both."
    heard = "".join(scene.heard(values=True))
    assert "w" * size in heard
    assert "c" * size in heard
    assert await _history_bytes(scene, thread) < 160_000


async def test_a_result_that_is_too_large_for_the_store_ends_truthfully(scene: Scene) -> None:
    """A write took effect: a person says with which result. A read ends the run; the thread takes the next one."""
    scene.script(scene.call("carve", size=20_000_000), "Fine.", words="carve")
    scene.script(scene.call("weigh", size=20_000_000), "never", words="weigh")
    scene.script("Here.", words="next")
    thread = await scene.thread()
    run_id, (unknown,) = await scene.paused(thread, "carve")
    assert unknown.kind == "unknown_outcome"
    await thread.answer(UnknownOutcomeDone(interrupt_id=unknown.id, result={"carved": True}), by="ana")
    assert (await scene.ended(thread, run_id)).answer == "Fine."
    assert await scene.effects("carve") == 1
    view = await scene.ended(thread, await thread.run(scene.say("weigh")), "error")
    assert view.error
    assert view.error.code == "result-too-large"
    assert (await scene.answered(thread, "next")).answer == "Here."


@pytest.mark.timeout(300)
async def test_eighty_results_of_twenty_kilobytes_on_a_long_conversation(scene: Scene) -> None:
    """In one turn and in twenty turns of four; the run ends, and history stays small."""
    calls = [scene.call("weigh", size=20_000, sign=chr(97 + n % 26)) for n in range(80)]
    scene.script({"calls": calls}, "One turn.", words="at once")
    scene.script(*({"calls": calls[n : n + 4]} for n in range(0, 80, 4)), "Many turns.", words="in turns")
    thread = await scene.thread()
    words = {"role": "user", "parts": [{"text": scene.say("before " + "word " * 1_000)}]}
    before = [
        {"id": f"e{n}", "invocationId": f"i{n}", "author": "user", "timestamp": 1.0 + n, "content": words}
        for n in range(100)
    ]
    await thread.append_events(before, if_revision=0)
    assert (await scene.answered(thread, "at once")).answer == "One turn."
    assert (await scene.answered(thread, "in turns")).answer == "Many turns."
    assert await scene.effects("weigh") == 160
    assert len((await scene.history(thread)).events) < 200
