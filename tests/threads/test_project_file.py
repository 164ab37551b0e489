"""What agentvisor.yaml says of plain tools, approvals and limits holds in threads."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import AsyncGenerator
from datetime import datetime
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from agentvisor.host.fork_server import ForkServer
from agentvisor.host.settings import Settings
from agentvisor.local_gemini import LocalGemini
from agentvisor.project import read_project
from client import Thread
from tests.fixtures.effects import Effects
from tests.threads.conftest import Scene
from worker import RunningWorker, running_worker
from workflows.messages import Interrupt, RunLimits

PROJECT = Path(__file__).parent / "declared"


@pytest_asyncio.fixture(scope="module")
async def declared_worker(
    client: Client,
    model: LocalGemini,
    counter: Effects,
    fork_server: ForkServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[RunningWorker]:
    """A worker of the project whose functions agentvisor.yaml speaks of."""
    folder = tmp_path_factory.mktemp("declared")
    shutil.copytree(PROJECT, folder, dirs_exist_ok=True)
    counter.install(folder)
    settings = Settings(task_queue=f"declared-{uuid.uuid4()}", workflow_sandbox=True, leg_guests=1, graceful_shutdown=5)
    environment = {**os.environ, **model.env(), **counter.env()}
    async with running_worker(
        client, settings, [read_project(folder)], environment=environment, fork_server=fork_server
    ) as worker:
        yield worker


@pytest.fixture
def scene(client: Client, declared_worker: RunningWorker, model: LocalGemini, counter: Effects) -> Scene:
    """A scene on that worker."""
    return Scene(client, declared_worker, model, counter)


async def activities(scene: Scene, thread: Thread) -> list[str]:
    events = (await scene.history(thread)).events
    scheduled = [event.activity_task_scheduled_event_attributes for event in events]
    return [attributes.activity_type.name for attributes in scheduled if attributes.activity_id]


def lifetime(interrupt: Interrupt) -> float:
    assert interrupt.deadline
    return (datetime.fromisoformat(interrupt.deadline) - datetime.fromisoformat(interrupt.since)).total_seconds()


async def test_a_function_declared_write_is_called_once_in_an_activity_of_its_own(scene: Scene) -> None:
    scene.script(scene.call("send"), "Sent.")
    thread = await scene.thread("declared")
    view = await scene.answered(thread)
    assert view.answer == "Sent."
    assert await activities(scene, thread) == ["run_agent", "run_tool", "run_agent"]
    assert (await scene.effects("send"), view.usage.tool_calls) == (1, 1)
    await scene.keep_history(thread, "declared-write")


@pytest.mark.parametrize("tool", ["peek", "refund"])
async def test_a_read_and_a_call_that_need_not_be_confirmed_stay_in_their_turn(scene: Scene, tool: str) -> None:
    scene.script(scene.call(tool), "Done.")
    thread = await scene.thread("declared")
    view = await scene.answered(thread)
    assert await activities(scene, thread) == ["run_agent"]
    assert (await scene.effects(tool), view.usage.tool_calls) == (1, 1)


async def test_a_function_that_must_be_confirmed_waits_for_a_person_as_long_as_it_is_said(scene: Scene) -> None:
    scene.script(scene.call("erase"), "Erased.")
    thread = await scene.thread("declared")
    run_id, (waiting,) = await scene.paused(thread)
    assert (waiting.tool, lifetime(waiting)) == ("erase", 3600)
    assert await scene.effects("erase") == 0
    await thread.decide(waiting.id, approved=True, by="ana")
    assert (await scene.ended(thread, run_id)).answer == "Erased."
    assert await scene.effects("erase") == 1


@pytest.mark.parametrize(("tool", "seconds"), [("pay", 7200), ("pay_soon", 60)])
async def test_an_approval_expires_as_the_project_says_unless_its_tool_does(
    scene: Scene, tool: str, seconds: int
) -> None:
    scene.script(scene.call(tool), "never")
    _, (waiting,) = await scene.paused(await scene.thread("declared"))
    assert lifetime(waiting) == seconds


@pytest.mark.parametrize("calls", [100, 2], ids=["of the project", "of the thread"])
async def test_the_smaller_limit_ends_a_run_over_its_legs(scene: Scene, calls: int) -> None:
    scene.script(scene.call("send"), *[scene.call("peek") for _ in range(5)])
    thread = await scene.thread("declared", limits=RunLimits(model_calls=calls))
    view = await scene.ended(thread, await thread.run(scene.say()), "error")
    assert view.error
    assert view.error.code == "run-limit-exceeded"
    assert view.usage.model_calls == min(calls, 3) == len(scene.requests())
    assert await activities(scene, thread) == ["run_agent", "run_tool", "run_agent"]
