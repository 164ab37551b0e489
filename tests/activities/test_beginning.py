"""A write begins when the Store has it, and not before: until then nothing has happened, whatever dies."""

from __future__ import annotations

import os
import signal
import sqlite3
import uuid
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import SecretStr
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from agentvisor.host.fork_server import ForkServer
from agentvisor.local_gemini import LocalGemini
from tests.activities.conftest import Hosted, hosting, write_project
from tests.activities.test_tools import Caller, Pretender
from tests.fixtures.effects import EffectsServer
from workflows.messages import Done, NotStarted, Once, RunTool


class Scene:
    """A worker whose Store is a file that can be locked, and a workflow that has calls made there."""

    def __init__(self, caller: Caller, hosted: Hosted, store: Path) -> None:
        self.caller, self.hosted, self._store = caller, hosted, store

    async def request(self, amount: int) -> RunTool:
        """A write that must not be made twice."""
        request = await self.caller.request("donate", {"amount": amount})
        return request.model_copy(update={"once": Once(thread=str(uuid.uuid4()))})

    @contextmanager
    def locked(self) -> Generator[None]:
        """The Store takes nothing."""
        connection = sqlite3.connect(self._store, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            connection.close()

    async def is_prepared(self, amount: int) -> None:
        """The guest has judged the call: once before it was asked for, once now."""
        judged = await self.hosted.effects.all("judged")
        if judged.count(amount) < 2:
            await self.hosted.effects.wait("judged", count=len(judged) + 1)

    async def made(self, amount: int) -> int:
        return (await self.hosted.effects.all("donate")).count(amount)


@pytest_asyncio.fixture(scope="module")
async def scene(
    client: Client, effects_server: EffectsServer, fork_server: ForkServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Scene]:
    folder = tmp_path_factory.mktemp("beginning")
    store, queue = folder / "store.db", f"beginning-{uuid.uuid4()}"
    with LocalGemini() as gemini:
        async with (
            hosting(
                client,
                write_project(folder / "shop"),
                gemini,
                effects_server.space(),
                task_queue=queue,
                fork_server=fork_server,
                store=SecretStr(f"sqlite:///{store}"),
            ) as hosted,
            Worker(
                client, task_queue=f"of-{queue}", workflows=[Pretender], workflow_runner=UnsandboxedWorkflowRunner()
            ),
        ):
            yield Scene(Caller(client, hosted, f"of-{queue}"), hosted, store)


async def test_a_guest_that_is_lost_before_it_may_begin_has_made_no_call(scene: Scene) -> None:
    request = await scene.request(201)
    with scene.locked():
        handle = await scene.caller.start(request)
        await scene.is_prepared(201)
        for pid in scene.hosted.guests.pids("tools"):
            os.kill(pid, signal.SIGKILL)
    outcome = (await handle.result()).outcome
    assert isinstance(outcome, NotStarted)
    assert await scene.made(201) == 0
    assert isinstance(await scene.caller.outcome(request), Done)
    assert await scene.made(201) == 1


async def test_a_call_that_is_cancelled_before_it_may_begin_was_not_made(scene: Scene) -> None:
    request = await scene.request(202)
    with scene.locked():
        handle = await scene.caller.start(request)
        await scene.is_prepared(202)
        await handle.cancel()
        outcome = (await handle.result()).outcome
    assert isinstance(outcome, NotStarted)
    assert await scene.made(202) == 0
    assert isinstance(await scene.caller.outcome(request), Done)


async def test_while_the_store_takes_nothing_no_write_begins(scene: Scene) -> None:
    request = await scene.request(203)
    with scene.locked():
        outcome = await scene.caller.outcome(request)
        assert isinstance(outcome, NotStarted)
        assert "Store" in outcome.message
    assert await scene.made(203) == 0
    assert isinstance(await scene.caller.outcome(request), Done)


async def test_a_call_that_was_begun_in_another_history_does_not_begin(scene: Scene) -> None:
    request = await scene.request(204)
    assert isinstance(await scene.caller.outcome(request), Done)
    failure = await scene.caller.failure(request)
    assert failure.type == "outcome-unknown"
    assert failure.message.startswith("This call was begun before")
    assert await scene.made(204) == 1
