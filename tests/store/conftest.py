"""Both databases, real, behind one suite."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import SecretStr

from agentvisor.host.store import Store
from tests.store.postgresql import Postgresql, make_folder


@pytest_asyncio.fixture(scope="session")
async def postgresql() -> AsyncGenerator[Postgresql]:
    folder = make_folder()
    server = Postgresql(folder)
    try:
        await server.initialize()
        await server.start()
        yield server
    finally:
        await server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def server(request: pytest.FixtureRequest) -> Postgresql | None:
    """None: SQLite."""
    return request.getfixturevalue("postgresql") if request.param == "postgresql" else None


@pytest_asyncio.fixture
async def url(server: Postgresql | None, tmp_path: Path) -> SecretStr:
    """Of an empty database: a file, or a schema of its own."""
    if server is None:
        return SecretStr(f"sqlite:///{tmp_path / 'store.db'}")
    schema = f"s{uuid.uuid4().hex}"
    await server.execute(f"CREATE SCHEMA {schema}")
    return SecretStr(f"{server.url}&search_path={schema}")


@pytest_asyncio.fixture
async def store(url: SecretStr) -> AsyncGenerator[Store]:
    async with Store.open(url) as store:
        yield store
