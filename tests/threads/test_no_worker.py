"""Without any worker threads take runs, everybody is told who is missing, and a worker that comes does what waits."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from temporalio.client import Client

from agentvisor.host.fork_server import ForkServer
from agentvisor.host.settings import Settings
from agentvisor.local_gemini import LocalGemini
from agentvisor.project import read_project
from client import Threads
from client.errors import NoWorker
from tests.cli.conftest import Cli
from tests.fixtures.effects import Effects
from tests.threads.conftest import Scene
from worker import running_worker


async def test_what_was_sent_without_a_worker_is_done_in_its_order_when_one_comes(
    client: Client, *, settings: Settings, clerk: Path, model: LocalGemini, counter: Effects, fork_server: ForkServer
) -> None:
    """Runs from the library and from the command line, one of them with a call that then waits for a person."""
    threads, cli = Threads(client, task_queue=settings.task_queue), Cli(client, settings.task_queue)
    thread = await threads.create("single", principal="ana")
    scene_mark = f"early-{thread.id[:8]}"
    paying = await thread.run(f"{scene_mark} pay")
    told = await cli("threads", "run", thread.id, f"{scene_mark} word")
    assert (told.code, "No worker answers" in told.err) == (5, True)
    asked = (thread.wait(paying), thread.view(), thread.decide("ap-1-1", True, by="ben"))
    for refused in await asyncio.gather(*asked, return_exceptions=True):
        assert isinstance(refused, NoWorker)
    environment = {**os.environ, **model.env(), **counter.env()}
    async with running_worker(
        client, settings, [read_project(clerk)], environment=environment, fork_server=fork_server
    ) as worker:
        scene = Scene(client, worker, model, counter)
        scene.mark = scene_mark
        scene.script(scene.call("pay", amount=5), "Paid.", words="pay")
        scene.script("Noted.", words="word")
        view = await thread.wait(paying, timeout=60)
        (approval,) = view.interrupts
        await thread.decide(approval.id, True, by="ben")
        assert (await scene.ended(thread, paying)).answer == "Paid."
        ended = await scene.idle(thread)
        assert [(run.number, run.status) for run in ended.recent] == [(1, "success"), (2, "success")]
        assert await scene.effects("pay") == 1
        assert [line for line in scene.heard() if line.startswith("USER")] == [
            f"USER {scene_mark} pay",
            f"USER {scene_mark} word",
        ]
        await scene.history(thread)
    with pytest.raises(NoWorker):
        await thread.view()
