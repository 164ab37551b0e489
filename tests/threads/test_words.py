"""What people say to a thread, and when its model hears it."""

from __future__ import annotations

from typing import Any

import pytest

from client.errors import Refused
from tests.threads.conftest import Scene


async def test_words_said_during_a_pause_reach_the_model_after_it_in_order(scene: Scene) -> None:
    """They are queued runs; the paused run never sees them."""
    scene.script(scene.call("pay", amount=5), "Paid.", words="go")
    scene.script("One.", words="first")
    scene.script("Two.", words="second")
    thread = await scene.thread()
    run_id, (approval,) = await scene.paused(thread)
    first = await thread.run(scene.say("first"))
    second = await thread.run(scene.say("second"))
    assert (await thread.view()).queued == (first, second)
    await thread.decide(approval.id, True, by="ben")
    assert (await scene.ended(thread, run_id)).answer == "Paid."
    assert (await scene.ended(thread, second)).answer == "Two."
    assert (await scene.ended(thread, first)).answer == "One."
    assert scene.heard(1)[-1] == "RESP pay"
    assert scene.heard(-1) == [
        f"USER {scene.say('go')}",
        "CALL pay",
        "RESP pay",
        "TEXT Paid.",
        f"USER {scene.say('first')}",
        "TEXT One.",
        f"USER {scene.say('second')}",
    ]


_CONFIRMATION = {"functionResponse": {"id": "x", "name": "adk_request_confirmation", "response": {"confirmed": True}}}


@pytest.mark.parametrize(
    "part",
    [
        {"functionResponse": {"id": "x", "name": "pay", "response": {"paid": 1}}},
        {"functionCall": {"name": "pay", "args": {"amount": 1}}},
        _CONFIRMATION,
        {"text": "hi", **_CONFIRMATION},
        {"executableCode": {"code": "1"}},
        {"text": ""},
        {},
    ],
    ids=["response", "call", "confirmation", "text and confirmation", "code", "no text", "nothing"],
)
async def test_a_message_that_is_not_words_or_data_is_refused(scene: Scene, part: dict[str, Any]) -> None:
    """By the client before it is sent, and by the thread whoever sends it; a pending approval still waits."""
    scene.script(scene.call("pay", amount=5), "Paid.")
    thread = await scene.thread()
    run_id, (approval,) = await scene.paused(thread)
    message = {"role": "user", "parts": [part]}
    with pytest.raises(Refused) as refused:
        await thread.run(message)
    assert refused.value.kind == "message-refused"
    handle = scene.client.get_workflow_handle(f"thread-{thread.id}")
    await handle.signal("run", {"run_id": "sly", "message": message})
    view = await thread.wait("sly", until="ended", timeout=30)
    assert view.error
    assert (view.status, view.error.code) == ("error", "message-refused")
    await thread.decide(approval.id, False, by="ben")
    await scene.ended(thread, run_id)
    assert await scene.effects("pay") == 0


async def test_data_parts_reach_the_model(scene: Scene) -> None:
    """A picture beside the words, in ADK's own field names or in snake case."""
    scene.script("Nice picture.")
    thread = await scene.thread()
    picture = {"mime_type": "image/png", "data": "iVBORw0KGgo="}
    run_id = await thread.run({"parts": [{"text": scene.say()}, {"inline_data": picture}]})
    assert (await scene.ended(thread, run_id)).answer == "Nice picture."
    parts = scene.requests()[-1].contents[-1]["parts"]
    assert "iVBORw0KGgo=" in parts[1]["inlineData"].values()


async def test_a_repeated_run_id_is_one_run(scene: Scene) -> None:
    """A client may send its signal again."""
    scene.script("Once.")
    thread = await scene.thread()
    for _ in range(3):
        await thread.run(scene.say(), run_id="same")
    await scene.ended(thread, "same")
    await thread.run(scene.say(), run_id="same")
    assert (await thread.view()).runs == 1
    assert len(scene.requests()) == 1
