"""The project and the model of the threads' tests, on a worker that can be taken away and given back."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest_asyncio
from temporalio.client import Client

from agentvisor.host.fork_server import ForkServer
from agentvisor.host.settings import Settings
from agentvisor.local_gemini import LocalGemini
from agentvisor.project import read_project
from tests.fixtures.effects import Effects
from tests.threads.conftest import Scene, clerk, counter, model
from worker import RunningWorker, running_worker

__all__ = ["clerk", "counter", "model", "stand"]


class Stand:
    """A worker, again and again the same; and scenes on it."""

    def __init__(
        self, client: Client, *, folder: Path, model: LocalGemini, counter: Effects, fork_server: ForkServer
    ) -> None:
        self._client, self._folder, self._model, self._counter = client, folder, model, counter
        self._fork_server = fork_server
        self._settings = Settings(
            task_queue=f"stand-{uuid.uuid4()}", workflow_sandbox=True, leg_guests=1, graceful_shutdown=1
        )
        self._serving: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self.worker: RunningWorker

    def scene(self) -> Scene:
        """A scene with a mark of its own."""
        return Scene(self._client, self.worker, self._model, self._counter)

    async def start(self) -> None:
        """The worker works when this returns."""
        started = asyncio.get_running_loop().create_future()
        self._stop.clear()
        self._serving = asyncio.create_task(self._serve(started))
        self.worker = await started

    async def end(self) -> None:
        """No worker any more: legs are handed over, calls get a second."""
        self._stop.set()
        if self._serving:
            await self._serving

    async def _serve(self, started: asyncio.Future[RunningWorker]) -> None:
        environment = {**os.environ, **self._model.env(), **self._counter.env()}
        async with running_worker(
            self._client,
            self._settings,
            [read_project(self._folder)],
            environment=environment,
            fork_server=self._fork_server,
        ) as worker:
            started.set_result(worker)
            await self._stop.wait()


@pytest_asyncio.fixture
async def stand(
    client: Client, *, clerk: Path, model: LocalGemini, counter: Effects, fork_server: ForkServer
) -> AsyncGenerator[Stand]:
    stand = Stand(client, folder=clerk, model=model, counter=counter, fork_server=fork_server)
    await stand.start()
    yield stand
    await stand.end()
