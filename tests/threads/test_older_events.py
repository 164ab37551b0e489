"""A thread of any length: its older events are in the Store, and nobody misses them."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from temporalio.client import Client

from agentvisor.host.fork_server import ForkServer
from agentvisor.host.settings import Settings
from agentvisor.local_gemini import LocalGemini
from agentvisor.project import read_project
from client import Thread, Threads
from tests.fixtures.effects import Effects
from tests.threads.conftest import Scene
from worker import running_worker


def _turns(scene: Scene, first: int, count: int) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for n in range(first, first + count):
        about = {"invocationId": f"turn-{n}", "timestamp": 1_700_000_000.0 + n}
        asked = {"role": "user", "parts": [{"text": scene.say(f"question {n}")}]}
        said = {"role": "model", "parts": [{"text": f"answer {n}"}]}
        events.append({**about, "id": f"q{n}", "author": "user", "content": asked})
        events.append({**about, "id": f"a{n}", "author": "single", "content": said})
    return events


async def _renewed(scene: Scene, thread: Thread) -> None:
    """Continue as new, and wait until that is done."""
    handle = scene.client.get_workflow_handle(f"thread-{thread.id}")
    run_id = (await handle.describe()).run_id
    await thread.renew()
    with pytest.raises(Exception):  # noqa: B017, PT011 - the old execution ends as continued
        await scene.client.get_workflow_handle(f"thread-{thread.id}", run_id=run_id).result(follow_runs=False)


async def _ids(thread: Thread) -> list[str]:
    return [event["id"] async for page in thread.session() for event in page.events]


async def _carried_bytes(scene: Scene, thread: Thread) -> int:
    return (await scene.history(thread)).events[0].ByteSize()


async def test_the_older_events_of_a_thread_are_whole_after_every_continue_as_new(scene: Scene) -> None:
    """The model is shown everything by a guest that knows nothing; what is carried on does not grow."""
    for block in range(3):
        scene.script(scene.call("look"), "Seen.", words=f"block {block}")
    thread = await scene.thread()
    sizes: list[int] = []
    for block in range(3):
        turns = _turns(scene, block * 100, 100)
        await thread.append_events(turns, if_revision=(await thread.view()).revision)
        await _renewed(scene, thread)
        sizes.append(await _carried_bytes(scene, thread))
        scene.kill_guests()
        assert (await scene.answered(thread, f"block {block}")).answer == "Seen."
    heard = scene.heard(values=True)
    assert [n for n in range(300) if f"USER {scene.say(f'question {n}')}" not in heard] == []
    ids = await _ids(thread)
    assert len(ids) == len(set(ids)) == (await thread.view()).events
    assert [id_ for id_ in ids if id_[0] == "q" and id_[1:].isdecimal()] == [f"q{n}" for n in range(300)]
    assert max(sizes) < 6_000
    await scene.keep_history(thread, "older-events-in-the-store")


async def test_without_the_store_a_reader_is_told_what_it_does_not_see(scene: Scene) -> None:
    thread = await scene.thread()
    await thread.append_events(_turns(scene, 0, 100), if_revision=0)
    await _renewed(scene, thread)
    bare = Threads(scene.client, task_queue=scene.worker.task_queue).get(thread.id)
    (page,) = [page async for page in bare.session()]
    assert page.kept is not None
    assert (page.kept.end, page.base.count, page.events) == (page.base, 200, ())
    assert len(await _ids(thread)) == 200


async def test_a_cleared_thread_has_no_older_events(scene: Scene) -> None:
    scene.script("New.", words="go")
    thread = await scene.thread()
    await thread.append_events(_turns(scene, 0, 100), if_revision=0)
    await _renewed(scene, thread)
    await thread.clear()
    assert await _ids(thread) == []
    scene.kill_guests()
    assert (await scene.answered(thread)).answer == "New."
    assert not [line for line in scene.heard() if "question" in line]


@pytest.mark.timeout(300)
async def test_a_thread_of_five_thousand_turns_opens_and_answers(scene: Scene) -> None:
    scene.script(scene.call("note", text="n"), "Here.", words="go")
    thread = await scene.thread()
    for first in range(0, 5_000, 1_000):
        revision = (await thread.view()).revision
        await thread.append_events(_turns(scene, first, 1_000), if_revision=revision)
        await _renewed(scene, thread)
    assert await _carried_bytes(scene, thread) < 6_000
    assert (await scene.answered(thread)).answer == "Here."
    heard = scene.heard()
    assert f"USER {scene.say('question 0')}" in heard[0]
    assert len(heard) > 10_000
    assert await scene.effects("note") == 1


async def test_without_the_store_a_thread_carries_its_events_on_and_they_go_there_later(
    client: Client, *, model: LocalGemini, counter: Effects, clerk: Path, scene: Scene, fork_server: ForkServer
) -> None:
    """The next worker has a Store again; nothing was lost meanwhile."""
    queue = f"storeless-{uuid.uuid4()}"
    settings = Settings(
        task_queue=queue,
        workflow_sandbox=True,
        leg_guests=1,
        graceful_shutdown=5,
        store=SecretStr("postgresql://nobody@127.0.0.1:1/none"),
    )
    environment = {**os.environ, **model.env(), **counter.env()}
    async with running_worker(
        client, settings, [read_project(clerk)], environment=environment, fork_server=fork_server
    ) as worker:
        without = Scene(client, worker, model, counter)
        without.script(without.call("look"), "Seen.", words="go")
        thread = await without.thread()
        await thread.append_events(_turns(without, 0, 100), if_revision=0)
        await _renewed(without, thread)
        assert await _carried_bytes(without, thread) > 3_000
        assert (await without.answered(thread)).answer == "Seen."
    settings = settings.model_copy(update={"store": Settings().store})
    async with running_worker(
        client, settings, [read_project(clerk)], environment=environment, fork_server=fork_server
    ) as worker:
        back = Scene(client, worker, model, counter)
        thread = back.threads.get(thread.id)
        await _renewed(back, thread)
        assert await _carried_bytes(back, thread) < 3_000
        assert len(await _ids(thread)) == (await thread.view()).events > 200
