"""One worker for all tests of this folder: real server, real guests, real ADK, the local model, counted effects.

Each test plays a scene of its own: what it says to the model and what its tools report carry the scene's mark.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import uuid
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from agentvisor.host.fork_server import ForkServer
from agentvisor.host.settings import Settings
from agentvisor.host.stored_events import StoredEvents
from agentvisor.host.workflow_runner import UpdatesLast
from agentvisor.local_gemini import Call, LocalGemini
from agentvisor.project import read_project
from client import Thread, Threads
from tests.fixtures.effects import Effects, EffectsServer
from tests.fixtures.gemini import transcript
from worker import RunningWorker, running_worker
from workflows.messages import Interrupt, Options, RunRequest, RunView, ThreadView
from workflows.thread import ThreadWorkflow

PROJECT = Path(__file__).parent / "project"
HISTORIES = Path(__file__).parent.parent / "replay" / "histories"


class Scene:
    """What one test needs: threads, a script for its own words, counts of its own effects."""

    def __init__(self, client: Client, worker: RunningWorker, gemini: LocalGemini, effects: Effects) -> None:
        self.mark = f"m{uuid.uuid4().hex[:8]}"
        self.client = client
        self.worker = worker
        stored = StoredEvents(worker.store.blobs, namespace=client.namespace)
        self.threads = Threads(client, task_queue=worker.task_queue, stored=stored)
        self._gemini = gemini
        self._effects = effects
        self._seen = len(gemini.requests())

    # ---- the model
    def script(self, *turns: Any, agent: str | None = None, words: str = "") -> None:
        """What the model says to user texts that hold the mark and `words`; for one agent where named."""
        system = None if agent is None else f"You are {agent}\\."
        self._gemini.script(list(turns), user=f"{self.mark}.*{words}", system=system)

    def call(self, tool: str, *, id: str | None = None, **args: Any) -> Call:  # noqa: A002 - the wire's name
        """A scripted call; the mark is among its arguments."""
        return Call(name=tool, args={"mark": self.mark, **args}, id=id)

    def say(self, words: str = "go") -> str:
        """A user text of this scene."""
        return f"{self.mark} {words}"

    def requests(self) -> list[Any]:
        """The requests of this scene that reached the model."""
        return [r for r in self._gemini.requests(self._seen) if any(self.mark in text for text in r.user_texts)]

    def heard(self, number: int = -1, *, values: bool = False) -> list[str]:
        """What one request showed the model, a line per part."""
        return transcript(self.requests()[number].contents, values=values)

    async def held(self, name: str) -> None:
        """Wait until the model holds a reply under this name."""
        await self._gemini.held(name)

    def release(self, name: str) -> None:
        """Let the held reply go."""
        self._gemini.release(name)

    # ---- effects
    async def effects(self, tool: str) -> int:
        """How often a tool of this scene took effect."""
        return await self._effects.count(f"{self.mark}.{tool}")

    async def payloads(self, tool: str) -> list[Any]:
        """What a tool of this scene reported."""
        return await self._effects.all(f"{self.mark}.{tool}")

    async def hold_effect(self, tool: str) -> None:
        """The tool reports, but gets no answer until `release_effect`."""
        await self._effects.hold(f"{self.mark}.{tool}")

    async def release_effect(self, tool: str) -> None:
        await self._effects.release(f"{self.mark}.{tool}")

    async def effect(self, tool: str, *, count: int = 1, timeout: float = 20.0) -> None:
        """Wait for an effect."""
        await self._effects.wait(f"{self.mark}.{tool}", count=count, timeout=timeout)

    # ---- threads
    async def thread(self, agent: str = "single", **options: Any) -> Thread:
        """A new thread."""
        return await self.threads.create(agent, principal="ana", options=Options(**options) if options else None)

    async def send(self, thread: Thread, run: RunRequest) -> None:
        """Signal a run past the client's own checks."""
        await self.client.get_workflow_handle(f"thread-{thread.id}").signal("run", run)

    async def paused(self, thread: Thread, words: str = "go") -> tuple[str, Sequence[Interrupt]]:
        """Say something and wait until the run waits for a person; its id and what it waits for."""
        run_id = await thread.run(self.say(words))
        view = await thread.wait(run_id, timeout=60)
        assert view.status == "waiting", view
        return run_id, view.interrupts

    async def answered(self, thread: Thread, words: str = "go") -> RunView:
        """Say something and wait for the end of the run."""
        return await self.ended(thread, await thread.run(self.say(words)))

    async def ended(self, thread: Thread, run_id: str, status: str = "success") -> RunView:
        """The run at its end, which must be this one."""
        view = await thread.wait(run_id, until="ended", timeout=60)
        assert view.status == status, view
        return view

    async def not_started(self, thread: Thread) -> None:
        """Wait until a call of the thread was tried and never began."""
        handle = self.client.get_workflow_handle(f"thread-{thread.id}")
        async with asyncio.timeout(60):
            async for event in handle.fetch_history_events(wait_new_event=True):
                done = event.activity_task_completed_event_attributes
                if any(b'"not_started"' in payload.data for payload in done.result.payloads):
                    return

    def kill_guests(self, pool: Literal["legs", "tools"] = "legs") -> None:
        """Kill -9 of every guest of a pool: the next leg meets one that knows nothing."""
        for pid in self.worker.guests["clerk"].pids(pool):
            os.kill(pid, signal.SIGKILL)

    async def history(self, thread: Thread) -> WorkflowHistory:
        """What Temporal recorded of the thread's current execution; without any failed workflow task."""
        history = await self.client.get_workflow_handle(f"thread-{thread.id}").fetch_history()
        assert not [event for event in history.events if event.HasField("workflow_task_failed_event_attributes")]
        return history

    async def idle(self, thread: Thread) -> ThreadView:
        """Wait until the thread has nothing to do."""
        async with asyncio.timeout(60):
            while (view := await thread.view()).status != "idle":  # noqa: ASYNC110 - the server is another process
                await asyncio.sleep(0.1)
        return view

    async def executions(self, thread: Thread) -> int:
        """How often the thread has continued as new so far, and one."""
        first = (await self.client.get_workflow_handle(f"thread-{thread.id}").describe()).raw_description
        run_id, count = first.workflow_execution_info.first_run_id, 0
        while run_id:
            handle = self.client.get_workflow_handle(f"thread-{thread.id}", run_id=run_id)
            events = [event async for event in handle.fetch_history_events(skip_archival=True)]
            last = events[-1].workflow_execution_continued_as_new_event_attributes
            run_id, count = last.new_execution_run_id, count + 1
        return count

    async def keep_history(self, thread: Thread, name: str) -> None:
        """Check that the history replays; store it under this name where recording is on and none is stored yet."""
        history = await self.history(thread)
        runner = UpdatesLast(SandboxedWorkflowRunner())
        replayer = Replayer(workflows=[ThreadWorkflow], data_converter=pydantic_data_converter, workflow_runner=runner)
        await replayer.replay_workflow(history)
        path = HISTORIES / f"{name}.json"
        if os.environ.get("RECORD_HISTORIES") == "1" and not path.exists():
            path.write_text(json.dumps(_of_any_machine(history.to_json_dict()), indent=1) + "\n")


def _of_any_machine(value: Any) -> Any:
    """A history without who made it and where its code lay."""
    if isinstance(value, dict):
        kept = cast("dict[str, Any]", value).items()
        return {name: _of_any_machine(item) for name, item in kept if name not in {"identity", "stackTrace"}}
    if isinstance(value, str):
        return re.sub(r"^\d+@\S+$", "worker", value)  # the queue of one worker's process
    return [_of_any_machine(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


@pytest.fixture(scope="session")
def model() -> Any:
    """One local model for all scenes."""
    with LocalGemini() as gemini:
        yield gemini


@pytest.fixture(scope="session")
def counter(effects_server: EffectsServer) -> Effects:
    """One counter for all scenes."""
    return effects_server.space("threads")


@pytest.fixture(scope="session")
def clerk(tmp_path_factory: pytest.TempPathFactory, counter: Effects) -> Path:
    """The project of this folder, beside the client of the effect counter."""
    folder = tmp_path_factory.mktemp("clerk")
    shutil.copytree(PROJECT, folder, dirs_exist_ok=True)
    counter.install(folder)
    return folder


@pytest_asyncio.fixture(scope="session")
async def clerk_worker(
    client: Client, model: LocalGemini, counter: Effects, clerk: Path, fork_server: ForkServer
) -> AsyncGenerator[RunningWorker]:
    """A worker, sandboxed as every workflow under test."""
    settings = Settings(task_queue=f"clerk-{uuid.uuid4()}", workflow_sandbox=True, leg_guests=1, graceful_shutdown=5)
    environment = {**os.environ, **model.env(), **counter.env(), "CLERK_API_KEY": "planted-secret"}
    async with running_worker(
        client, settings, [read_project(clerk)], environment=environment, fork_server=fork_server
    ) as worker:
        yield worker


@pytest.fixture
def scene(client: Client, clerk_worker: RunningWorker, model: LocalGemini, counter: Effects) -> Scene:
    """A scene on the shared worker."""
    return Scene(client, clerk_worker, model, counter)
