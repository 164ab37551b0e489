"""A worker that died is left: nobody who is asked for its threads waits until the server gives it up."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.api.enums.v1 import EventType

from agentvisor.host.dev_server import TemporalServer
from tests.faults.case import Case, World
from tests.faults.host import Host


class Two:
    """Two workers of one task queue. The server would wait ten seconds for one that died."""

    def __init__(self, folder: Path, project: Path, address: str, world: World) -> None:
        environment = {**world.model.env(), **world.counter.env(), "AGENTVISOR_STICKY_TIMEOUT": "10"}
        self.lost = Host(folder, project, address=address, environment=environment)
        same = {"AGENTVISOR_TASK_QUEUE": self.lost.task_queue, "AGENTVISOR_STORE": f"sqlite:///{self.lost.store}"}
        self.other = Host(folder, project, address=address, environment={**environment, **same})
        self.world = World(world.client, self.lost.task_queue, world.model, world.counter)


@pytest_asyncio.fixture
async def two(tmp_path: Path, project: Path, temporal_server: TemporalServer, world: World) -> AsyncGenerator[Two]:
    """One of them works, the other one is not started yet."""
    assert temporal_server.connection.address
    two = Two(tmp_path, project, temporal_server.connection.address, world)
    await two.lost.start()
    try:
        yield two
    finally:
        await two.lost.close()
        await two.other.close()


@pytest.mark.timeout(180)
async def test_a_retried_leg_goes_on_although_its_thread_belongs_to_a_worker_that_died(two: Two) -> None:
    """Nobody else asks the thread meanwhile: the leg itself lets it go, and gets the session."""
    case = Case(two.world)
    await case.begin()
    await case.to_its_end()
    case.world.model.script([{"text": "Still here.", "hold": case.mark}], user=f"{case.mark} again")
    run_id = await case.say("again")
    await case.model_held()
    await two.other.start()
    await two.lost.kill()
    await case.release()
    await case.happened(EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, count=2)
    view = await case.thread.wait(run_id, until="ended", timeout=60)
    assert (view.status, view.answer) == ("success", "Still here.")


@pytest.mark.timeout(180)
async def test_a_client_reaches_a_thread_whose_worker_died_beside_an_idle_one(two: Two) -> None:
    """Nothing shows that a worker is there which has had nothing to do."""
    case = Case(two.world)
    await case.begin()
    await case.to_its_end()
    await two.other.start()
    await two.lost.kill()
    assert (await case.thread.view()).runs == 1
