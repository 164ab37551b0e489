"""Threads over the real server: with the shop helper's worker, with a worker that hosts no agent, or with none."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.worker import Worker

from agentvisor.host.fork_server import ForkServer
from agentvisor.host.settings import Settings
from agentvisor.local_gemini import LocalGemini, load_script
from agentvisor.project import read_project
from client import Thread, Threads
from worker import running_worker
from workflows.thread import ThreadWorkflow

SHOP = Path(__file__).parents[2] / "examples" / "shop_helper"
AGENT = "shop-helper"
INVOICE = "Send the invoice for order A-1001"


@pytest.fixture
def threads(client: Client, task_queue: str) -> Threads:
    """Threads of a task queue that no worker serves yet."""
    return Threads(client, task_queue=task_queue)


@asynccontextmanager
async def thread_worker(client: Client, task_queue: str) -> AsyncGenerator[None]:
    """A worker that carries threads but hosts no agent: runs stay at their first leg."""
    async with Worker(client, task_queue=task_queue, workflows=[ThreadWorkflow]):
        yield


@pytest_asyncio.fixture
async def carried(client: Client, task_queue: str, threads: Threads) -> AsyncGenerator[Threads]:
    """Threads of a worker that hosts no agent."""
    async with thread_worker(client, task_queue):
        yield threads


@pytest_asyncio.fixture(scope="session")
async def shop_queue(client: Client, fork_server: ForkServer) -> AsyncGenerator[str]:
    """The task queue of a worker that hosts the shop helper, whose model plays the example's own script."""
    settings = Settings(task_queue=f"shop-{uuid.uuid4()}", workflow_sandbox=True, leg_guests=1, graceful_shutdown=5)
    with LocalGemini(load_script(SHOP / "shop.yaml")) as model:
        environment = {**os.environ, **model.env()}
        async with running_worker(
            client, settings, [read_project(SHOP)], environment=environment, fork_server=fork_server
        ):
            yield settings.task_queue


@pytest.fixture
def shop(client: Client, shop_queue: str) -> Threads:
    """Threads of the shop helper."""
    return Threads(client, task_queue=shop_queue)


async def paused(shop: Threads, *, thread_id: str | None = None) -> tuple[Thread, str]:
    """A thread whose run waits for the approval of an invoice, and that run's id."""
    thread = await shop.create(AGENT, principal="ana", thread_id=thread_id)
    run_id = await thread.run(INVOICE)
    view = await thread.wait(run_id, timeout=60)
    assert view.status == "waiting", view
    return thread, run_id


async def eventually(holds: Callable[[], Awaitable[bool]], *, within: float = 20.0) -> None:
    """Ask again until it holds: visibility follows the threads a moment later."""
    give_up = time.monotonic() + within
    while not await holds():
        assert time.monotonic() < give_up, "it never came to hold"
        await asyncio.sleep(0.05)
