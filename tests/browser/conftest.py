"""The shop helper on a real worker, and a browser that sees Temporal's Web UI."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
import pytest_asyncio
from selenium.webdriver import Chrome
from temporalio.client import Client

from agentvisor.host.fork_server import ForkServer
from agentvisor.host.settings import Settings
from agentvisor.local_gemini import LocalGemini, load_script
from agentvisor.project import read_project
from client import Threads
from tests.browser.chromium import chromium, missing
from worker import running_worker

_SHOP = Path(__file__).parents[2] / "examples" / "shop_helper"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[Chrome]:
    """One browser for the tests of a module: an open page keeps asking the server."""
    if lacking := missing():
        pytest.skip(lacking)
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest_asyncio.fixture(scope="module")
async def shop(client: Client, fork_server: ForkServer) -> AsyncGenerator[Threads]:
    """Threads whose worker hosts the shop helper; its model is the local one."""
    settings = Settings(task_queue="shop", workflow_sandbox=True, leg_guests=1, graceful_shutdown=5)
    with LocalGemini(load_script(_SHOP / "shop.yaml")) as model:
        environment = {**os.environ, **model.env()}
        async with running_worker(
            client, settings, [read_project(_SHOP)], environment=environment, fork_server=fork_server
        ):
            yield Threads(client, task_queue=settings.task_queue)
