"""A real PostgreSQL server for the stores of approvals."""

from __future__ import annotations

import pytest_asyncio

from tests.agent_adapter.databases import new_schema
from tests.store.conftest import postgresql
from tests.store.postgresql import Postgresql

__all__ = ["postgresql"]


@pytest_asyncio.fixture
async def postgresql_url(postgresql: Postgresql) -> str:
    """Of an empty database."""
    return await new_schema(postgresql)
