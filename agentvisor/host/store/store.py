"""The Store of this host, opened once by whoever builds the worker."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Self

import structlog
from pydantic import SecretStr

from agentvisor.host.store.blobs import Blobs
from agentvisor.host.store.database import Database
from agentvisor.host.store.engine import engine_of
from agentvisor.host.store.errors import StoreUnavailable
from agentvisor.host.store.migrations import migrate
from agentvisor.host.store.spent_calls import SpentCalls

PATIENCE = 10.0
"""Seconds that an answer may take; for a blob a minute."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Store:
    """What all workers of a Temporal namespace share beside it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.blobs = Blobs(database)
        self.spent_calls = SpentCalls(database)

    @classmethod
    @asynccontextmanager
    async def open(cls, url: SecretStr, *, patience: float = PATIENCE) -> AsyncGenerator[Self]:
        """The Store at this URL for as long as this lasts, its schema migrated.

        A database that does not answer is logged, tried again at every use, and migrated when it is back: a worker
        starts without it. Raises StoreMisconfigured, StoreTooNew.
        """
        engine = engine_of(url.get_secret_value(), patience=patience)
        database = Database(engine, prepare=migrate, patience=patience)
        try:
            try:
                await database.ready()
            except StoreUnavailable as problem:
                log.warning("store.unavailable", reason=str(problem))
            yield cls(database)
        finally:
            await database.close()

    async def ready(self) -> None:
        """Reach the database. Raises StoreUnavailable, StoreMisconfigured, StoreTooNew."""
        await self._database.ready()

    async def delete_thread(self, thread: str) -> None:
        """Delete all that is kept for a thread, after its history is deleted: nothing guards its calls any longer."""
        await self.blobs.delete_all(thread)
        await self.spent_calls.delete_all(thread)
