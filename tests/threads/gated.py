"""The worker of the project `gates`, and what its tests ask of a scene."""

from __future__ import annotations

import base64
import os
import re
import shutil
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from temporalio.client import Client

from agentvisor.host.fork_server import ForkServer
from agentvisor.host.settings import Settings
from agentvisor.local_gemini import LocalGemini
from agentvisor.project import read_project
from client import Thread
from tests.adk.harness import parts_of
from tests.fixtures.effects import Effects
from tests.threads.conftest import Scene
from worker import RunningWorker, running_worker

PROJECT = Path(__file__).parent / "gates"


class Gates:
    """The project in a folder of its own; its workers have one task queue and one Store."""

    def __init__(self, folder: Path, client: Client, model: LocalGemini, counter: Effects, forks: ForkServer) -> None:
        self._client, self._model, self._counter, self._forks = client, model, counter, forks
        self._project = folder / "gates"
        shutil.copytree(PROJECT, self._project)
        counter.install(self._project)
        self._settings = Settings(
            task_queue=f"gates-{uuid.uuid4()}",
            workflow_sandbox=True,
            leg_guests=1,
            graceful_shutdown=5,
            store=SecretStr(f"sqlite:///{folder / 'store.db'}"),
        )

    @asynccontextmanager
    async def worker(self) -> AsyncGenerator[RunningWorker]:
        """A worker, for as long as this lasts."""
        environment = {**os.environ, **self._model.env(), **self._counter.env()}
        async with running_worker(
            self._client,
            self._settings,
            [read_project(self._project)],
            environment=environment,
            fork_server=self._forks,
        ) as worker:
            yield worker

    def scene(self, worker: RunningWorker) -> Scene:
        """A scene on that worker."""
        return Scene(self._client, worker, self._model, self._counter)


async def told(scene: Scene, thread: Thread) -> dict[str, str]:
    """All that the model, the session, the history and the queries hold of a scene, as text."""
    history = (await scene.history(thread)).to_json()
    values = re.findall(r'"data": "([A-Za-z0-9+/=]+)"', history)
    return {
        "model": "\n".join(str(request.contents) for request in scene.requests()),
        "session": "\n".join([str(page) async for page in thread.session()]),
        "history": "\n".join([history, *(base64.b64decode(value).decode(errors="replace") for value in values)]),
        "queries": str(await thread.view()),
    }


async def function_calls(thread: Thread) -> list[dict[str, Any]]:
    """Every function call of the session, in order."""
    events = [event async for page in thread.session() for event in page.events]
    return [part["functionCall"] for event in events for part in parts_of(event) if "functionCall" in part]
