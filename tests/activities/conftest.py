"""A worker with one project whose tools do what a test wants to see survived."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client

from agentvisor.host.fork_server import ForkServer
from agentvisor.host.guests import GuestProcesses
from agentvisor.host.settings import Settings
from agentvisor.local_gemini import LocalGemini
from agentvisor.project import read_project
from client.thread import Thread
from client.threads import Threads
from tests.fixtures.effects import Effects, EffectsServer
from worker import running_worker
from workflows.messages import Options, RunView

AGENT = """
import asyncio, os, time
from google.adk.agents import LlmAgent
from agent_adapter import ToolContext, ToolError, ToolRegistry
from agent_adapter.integrations.adk import adk_tools
from agentvisor.adk import register_agent
from effects_client import areport, report

registry = ToolRegistry()

@registry.tool(effect="read")
def look(size: int) -> str:
    return "x" * size

@registry.tool
def pay(amount: int) -> dict:
    return {"paid": amount, "count": report("pay", amount)}

@registry.tool(confirm=True)
def invoice(amount: int) -> dict:
    return {"sent": amount, "count": report("invoice", amount)}

def judged(arguments, context):
    report("judged", arguments["amount"])
    return False

@registry.tool(confirm=judged)
def donate(amount: int) -> dict:
    return {"count": report("donate", amount)}

@registry.tool
def remember(value: str, context: ToolContext) -> dict:
    context.state["value"] = value
    return {"key": context.idempotency_key}

@registry.tool
def refuse() -> str:
    raise ToolError("not today")

@registry.tool
def die() -> str:
    report("die")
    os._exit(3)

@registry.tool(effect="read")
def die_once(marker: str) -> str:
    if report(marker) == 1:
        os._exit(3)
    return "alive"

@registry.tool(effect="read")
async def block(seconds: float) -> str:
    report("block")
    time.sleep(seconds)
    return "unblocked"

@registry.tool
async def wait() -> str:
    await areport("wait")
    await asyncio.sleep(1000)
    return "never"

@registry.tool
def insist(seconds: float) -> str:
    report("insist")
    time.sleep(seconds)
    return "done after all"

@registry.tool
def big(size: int) -> str:
    report("big")
    return "x" * size

root_agent = LlmAgent(name="shop", model="gemini-2.0-flash", instruction="Help.", tools=adk_tools(registry))
register_agent(root_agent)
"""


@dataclass(frozen=True)
class Hosted:
    """A worker that runs, its model and effects, and how to talk to it."""

    threads: Threads
    guests: GuestProcesses
    settings: Settings
    gemini: LocalGemini
    effects: Effects

    async def run(self, message: str, *, options: Options | None = None) -> RunView:
        """The run of a new thread, once it has ended or waits."""
        thread = await self.threads.create("shop", options=options)
        return await self.ended(thread, await thread.run(message))

    async def ended(self, thread: Thread, run_id: str) -> RunView:
        return await thread.wait(run_id, timeout=60)


def write_project(folder: Path) -> Path:
    folder.mkdir()
    (folder / "agent.yaml").write_text("name: shop\n")
    (folder / "agent.py").write_text(AGENT)
    return folder


@asynccontextmanager
async def hosting(
    client: Client,
    folder: Path,
    gemini: LocalGemini,
    effects: Effects,
    *,
    task_queue: str,
    fork_server: ForkServer | None = None,
    **more: Any,
) -> AsyncGenerator[Hosted]:
    """A worker for as long as this lasts; another one on the same task queue takes over from it.

    `more`: other Settings.
    """
    effects.install(folder)
    settings = Settings(task_queue=task_queue, workflow_sandbox=True, leg_guests=1, graceful_shutdown=5, **more)
    environment = {**os.environ, **gemini.env(), **effects.env()}
    async with running_worker(
        client, settings, [read_project(folder)], environment=environment, fork_server=fork_server
    ) as worker:
        threads = Threads(client, task_queue=settings.task_queue)
        yield Hosted(threads, worker.guests["shop"], settings, gemini, effects)


@pytest_asyncio.fixture(scope="package")
async def hosted(
    client: Client, effects_server: EffectsServer, fork_server: ForkServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Hosted]:
    """One worker for many tests: each says words of its own, and looks at tools and threads of its own."""
    folder = write_project(tmp_path_factory.mktemp("activities") / "shop")
    with LocalGemini() as gemini:
        queue, effects = f"test-{uuid.uuid4()}", effects_server.space()
        async with hosting(client, folder, gemini, effects, task_queue=queue, fork_server=fork_server) as hosted:
            yield hosted
