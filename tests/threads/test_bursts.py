"""Many runs at once, to one thread and to many: every one runs, once, in its client's order."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from temporalio.client import Client

from agentvisor.host.dev_server import TemporalServer
from client import Thread, Threads
from client.connection import connect
from tests.threads.conftest import Scene

CLIENTS, RUNS = ("a", "b", "c"), 500


@pytest.mark.timeout(400)
async def test_five_hundred_runs_from_three_clients_run_once_in_the_order_of_each_client(
    scene: Scene, temporal_server: TemporalServer
) -> None:
    """Over several executions; what was said and answered is whole, in the order in which it ran."""
    thread = await scene.thread("echo", runs_per_execution=60)
    clients = [await connect(temporal_server.connection) for _ in CLIENTS]
    sent = await asyncio.gather(
        *(_burst(scene, client, name, thread) for client, name in zip(clients, CLIENTS, strict=True))
    )
    await scene.effect("echo", count=RUNS, timeout=240)
    assert (await scene.idle(thread)).runs == RUNS
    words = await scene.payloads("echo")
    for name, run_ids in zip(CLIENTS, sent, strict=True):
        assert [said for said in words if said.startswith(name)] == run_ids
    assert Counter(words) == Counter(run_id for run_ids in sent for run_id in run_ids)
    assert await _texts(thread) == [text for said in words for text in (scene.say(said), said)]
    assert await scene.executions(thread) > RUNS // 60
    await scene.history(thread)


@pytest.mark.timeout(400)
async def test_forty_threads_take_twenty_five_runs_each_at_once(scene: Scene) -> None:
    """None waits for another thread's, and none gets another's."""
    threads = await asyncio.gather(*(scene.thread("echo", runs_per_execution=10) for _ in range(40)))
    await asyncio.gather(*(_several(scene, thread, n) for n, thread in enumerate(threads)))
    await scene.effect("echo", count=40 * 25, timeout=240)
    words = await scene.payloads("echo")
    for n, thread in enumerate(threads):
        await scene.idle(thread)
        said = [f"{n}-{run}" for run in range(25)]
        assert [word for word in words if word.startswith(f"{n}-")] == said
        assert await _texts(thread) == [text for word in said for text in (scene.say(word), word)]


async def _burst(scene: Scene, client: Client, name: str, thread: Thread) -> list[str]:
    """This client's share of the runs, one signal after the other; their ids are their words."""
    mine = Threads(client, task_queue=scene.worker.task_queue).get(thread.id)
    run_ids = [f"{name}-{n}" for n in range(len(range(CLIENTS.index(name), RUNS, len(CLIENTS))))]
    for run_id in run_ids:
        await mine.run(scene.say(run_id), run_id=run_id)
    return run_ids


async def _several(scene: Scene, thread: Thread, number: int) -> None:
    for run in range(25):
        await thread.run(scene.say(f"{number}-{run}"))


async def _texts(thread: Thread) -> list[str]:
    pages = [page async for page in thread.session()]
    return [event["content"]["parts"][0]["text"] for page in pages for event in page.events]
