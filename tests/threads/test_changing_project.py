"""A project that breaks, or changes, between a call and its approval."""

from __future__ import annotations

import os
import shutil
import signal
import uuid
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from agentvisor.host.fork_server import ForkServer
from agentvisor.host.settings import Settings
from agentvisor.local_gemini import LocalGemini
from agentvisor.project import read_project
from tests.fixtures.effects import Effects
from tests.fixtures.gemini import assert_well_formed
from tests.host.processes import until
from tests.threads.conftest import Scene
from worker import RunningWorker, running_worker

AGENT = """
import os, signal
from effects_client import areport
from google.adk.agents import LlmAgent
from agent_adapter import ToolRegistry
from agent_adapter.integrations.adk import adk_tools
from agentvisor.adk import register_agent

registry = ToolRegistry()

@registry.tool(confirm=True, idempotent=True, summary="the old summary")
async def ship(mark: str, count: int = 1) -> dict:
    made = await areport(f"{mark}.ship", {"count": count})
    if made == 1 and count == 13:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"shipped": count}

root_agent = LlmAgent(name="store", model="gemini-2.5-flash", instruction="You are store.", tools=adk_tools(registry))
register_agent(root_agent)
"""
CHANGED = AGENT.replace('idempotent=True, summary="the old summary"', 'summary="the new summary"')
REMOVED = AGENT.replace("async def ship(", "async def put_away(")  # of another size: Python looks at it and at seconds
LOOSENED = AGENT.replace("confirm=True, ", "")
BROKEN = "raise RuntimeError('half of a deploy')\n"


_GUESTS = 3
"""One for legs, one for calls, and the spare."""


class Store:
    """The project on disk, and the processes that loaded it."""

    def __init__(self, folder: Path, worker: RunningWorker) -> None:
        self._file = folder / "agent.py"
        self._worker = worker

    async def becomes(self, source: str) -> None:
        """Replace its code, and every process that holds the old one."""
        guests = self._worker.guests["store"]
        if self._file.read_text() != BROKEN:  # one that is just starting would keep the old code
            await until(lambda: len(guests.pids()) == _GUESTS)
        self._file.write_text(source)
        old = set(guests.pids())
        for pid in old:
            os.kill(pid, signal.SIGKILL)
        await until(lambda: old.isdisjoint(guests.pids()))


@pytest.fixture
def store_folder(tmp_path: Path, counter: Effects) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / "agent.yaml").write_text("name: store\n")
    (folder / "agent.py").write_text(AGENT)
    counter.install(folder)
    return folder


@pytest_asyncio.fixture
async def store_worker(
    client: Client, model: LocalGemini, counter: Effects, store_folder: Path, fork_server: ForkServer
) -> AsyncGenerator[RunningWorker]:
    settings = Settings(task_queue=f"store-{uuid.uuid4()}", workflow_sandbox=True, leg_guests=1, graceful_shutdown=5)
    environment = {**os.environ, **model.env(), **counter.env()}
    async with running_worker(
        client, settings, [read_project(store_folder)], environment=environment, fork_server=fork_server
    ) as worker:
        yield worker
    shutil.rmtree(store_folder)


@pytest.fixture
def store(store_folder: Path, store_worker: RunningWorker) -> Store:
    return Store(store_folder, store_worker)


@pytest.fixture
def shop(client: Client, store_worker: RunningWorker, model: LocalGemini, counter: Effects) -> Scene:
    return Scene(client, store_worker, model, counter)


async def test_a_run_is_cancelled_between_two_tries_to_start_a_tool(shop: Scene, store: Store) -> None:
    """The project does not load, so nothing was made: the run says so, and the thread goes on once it is mended."""
    shop.script(shop.call("ship"), "never", words="go")
    shop.script("Mended.", words="next")
    thread = await shop.thread("store")
    run_id, (approval,) = await shop.paused(thread)
    await store.becomes(BROKEN)
    await thread.decide(approval.id, True, by="ben")
    await shop.not_started(thread)
    await thread.cancel_run(run_id, by="ana")
    view = await shop.ended(thread, run_id, "cancelled")
    assert [call.status for call in view.calls] == ["withdrawn"]
    await store.becomes(AGENT)
    assert (await shop.answered(thread, "next")).answer == "Mended."
    assert await shop.effects("ship") == 0
    await shop.history(thread)


@pytest.mark.parametrize("edited", [False, True], ids=["as asked", "edited"])
async def test_a_tool_that_changed_is_asked_about_again_and_is_what_it_now_is(
    shop: Scene, store: Store, edited: bool
) -> None:
    """It was idempotent when it was called; approved as it now is, a lost attempt is not repeated."""
    shop.script(shop.call("ship", count=12 if edited else 13), "Shipped?")
    thread = await shop.thread("store")
    run_id, (first,) = await shop.paused(thread)
    assert first.summary == "the old summary"
    await store.becomes(CHANGED)
    edits = {"mark": shop.mark, "count": 13} if edited else None
    await thread.decide(first.id, True, edited_args=edits, by="ben")
    (second,) = (await thread.wait(run_id, timeout=60)).interrupts
    assert (second.kind, second.summary, second.arguments["count"]) == ("approval", "the new summary", 13)
    assert await shop.effects("ship") == 0
    await thread.decide(second.id, True, by="cleo")
    await shop.effect("ship")
    (unknown,) = (await thread.wait(run_id, timeout=60)).interrupts
    assert unknown.kind == "unknown_outcome"
    assert await shop.effects("ship") == 1
    await shop.history(thread)


async def test_a_call_of_a_tool_that_is_gone_is_closed_with_the_reason(shop: Scene, store: Store) -> None:
    """The approval came too late: nothing is made, the run says which tool is missing, and the next one goes on."""
    shop.script(shop.call("ship"), "never", words="go")
    shop.script("Here.", words="next")
    thread = await shop.thread("store")
    run_id, (approval,) = await shop.paused(thread)
    await store.becomes(REMOVED)
    await thread.decide(approval.id, True, by="ben")
    view = await shop.ended(thread, run_id, "error")
    assert view.error
    assert (view.error.code, "'ship'" in view.error.message) == ("tool-not-found", True)
    assert [call.status for call in view.calls] == ["failed"]
    assert (await shop.answered(thread, "next")).answer == "Here."
    assert_well_formed(shop.requests()[-1].contents)
    assert await shop.effects("ship") == 0


@pytest.mark.parametrize("approved", [True, False])
async def test_a_rule_that_no_longer_asks_overrules_nobody(shop: Scene, store: Store, approved: bool) -> None:
    """The call waits on: a no stays a no, and what is approved is asked about again as it now is."""
    shop.script(shop.call("ship"), "So be it.")
    thread = await shop.thread("store")
    run_id, (approval,) = await shop.paused(thread)
    await store.becomes(LOOSENED)
    await thread.decide(approval.id, approved, by="ben")
    if approved:
        (again,) = (await thread.wait(run_id, timeout=60)).interrupts
        assert await shop.effects("ship") == 0
        await thread.decide(again.id, True, by="ben")
    view = await shop.ended(thread, run_id)
    assert [call.status for call in view.calls] == ["done" if approved else "denied"]
    assert await shop.effects("ship") == approved
