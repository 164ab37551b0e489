"""The zoo: one project for all tests here, its model, its effect counter, and fresh guests of it."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from agentvisor.host.fork_server import ForkServer
from agentvisor.local_gemini import LocalGemini
from tests.adk.harness import FakeThread, GuestProcess, Guests
from tests.fixtures.effects import Effects, EffectsServer, effects_server

__all__ = ["effects_server"]

ZOO = Path(__file__).parent / "zoo"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def model() -> Iterator[LocalGemini]:
    """The model of all agents of the zoo. Each test scripts its own words."""
    with LocalGemini() as server:
        yield server


@pytest.fixture(scope="session")
def effects(effects_server: EffectsServer) -> Effects:
    """What the zoo's tools did. Each test uses orders of its own."""
    return effects_server.space("zoo")


@pytest.fixture(scope="session")
def zoo(
    model: LocalGemini, effects: Effects, fork_server: ForkServer, tmp_path_factory: pytest.TempPathFactory
) -> Guests:
    """Fresh guests of the zoo."""
    project = tmp_path_factory.mktemp("zoo")
    shutil.copy(ZOO / "agent.py", project / "agent.py")
    effects.install(project)
    return Guests(project, {**model.env(), **effects.env()}, fork_server)


@pytest.fixture
async def guest(zoo: Guests) -> AsyncGenerator[GuestProcess]:
    """A fresh guest."""
    async with zoo.fresh() as process:
        yield process


@pytest.fixture
def order() -> str:
    """The name of an order that no other test uses; say it to the model."""
    return f"A-{next(_numbers)}"


def thread(agent: str, order: str) -> FakeThread:
    """A new thread of an agent of the zoo."""
    return FakeThread(agent, thread_id=f"thread-{agent}-{order}")
