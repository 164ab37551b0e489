"""A worker that can be killed, the model and the counter: each a process, or a server, that survives the others."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from agentvisor.host.dev_server import TemporalServer
from agentvisor.local_gemini import LocalGemini
from tests.faults.case import World
from tests.faults.host import Host
from tests.fixtures.effects import Effects, EffectsServer

PROJECT = Path(__file__).parent / "project"


@pytest.fixture(scope="session")
def model() -> Iterator[LocalGemini]:
    """One local model for all that is struck."""
    with LocalGemini(log_size=5000) as gemini:
        yield gemini


@pytest.fixture(scope="session")
def counter(effects_server: EffectsServer) -> Effects:
    """One counter for all that is struck."""
    return effects_server.space("faults")


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory, counter: Effects) -> Path:
    """The project of this folder, beside the client of the effect counter."""
    folder = tmp_path_factory.mktemp("cashier")
    shutil.copytree(PROJECT, folder, dirs_exist_ok=True)
    counter.install(folder)
    return folder


@pytest_asyncio.fixture(scope="session")
async def host(
    tmp_path_factory: pytest.TempPathFactory,
    project: Path,
    temporal_server: TemporalServer,
    model: LocalGemini,
    counter: Effects,
) -> AsyncGenerator[Host]:
    """The worker that the tests of this folder share, and leave alive."""
    address = temporal_server.connection.address
    assert address
    environment = {**model.env(), **counter.env()}
    host = Host(tmp_path_factory.mktemp("host"), project, address=address, environment=environment)
    await host.start()
    try:
        yield host
    finally:
        await host.close()


@pytest.fixture(scope="session")
def world(client: Client, host: Host, model: LocalGemini, counter: Effects) -> World:
    """What cases on the shared worker need."""
    return World(client, host.task_queue, model, counter)
