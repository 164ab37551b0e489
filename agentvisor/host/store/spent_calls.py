"""Which calls were begun, and by whom: what no history can forget, not even one that is reset."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from agentvisor.host.store.database import Database
from agentvisor.host.store.errors import StoreError, StoreUnavailable

# The update changes nothing: it makes the one statement return the row that stands there, whoever wrote it.
_SPEND = text(
    "INSERT INTO agentvisor_spent_calls AS spent (thread, call_key, owner, spent_at) "
    "VALUES (:thread, :call_key, :owner, :at) "
    "ON CONFLICT (thread, call_key) DO UPDATE SET owner = spent.owner RETURNING owner, spent_at"
)
_RELEASE = text("DELETE FROM agentvisor_spent_calls WHERE thread = :thread AND call_key = :call_key AND owner = :owner")
_DELETE = text("DELETE FROM agentvisor_spent_calls WHERE thread = :thread")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentCall:
    """Whose call it is. `mine`: the owner who asked may make it; else `owner` may have, since `at` (UTC)."""

    mine: bool
    owner: str
    at: datetime


class SpentCalls:
    """The calls of all threads that were begun. `thread`: what identifies the thread for ever, not only its name.

    `call_key`: what identifies the call within it. `owner`: what identifies one attempt at it; an attempt that is
    made again is another one. Every method raises StoreUnavailable and StoreMisconfigured.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._doubtful: list[dict[str, str]] = []
        """Calls whose owners were told that the Store is unavailable; the database may have taken them all the same."""

    async def spend(self, thread: str, call_key: str, *, owner: str) -> SpentCall:
        """Make the call this owner's, unless it is somebody's already: one atomic step for all workers.

        Who gets no answer, but StoreUnavailable or a cancellation, does not have the call, and asks again as another
        owner: if the database took it, it is given back as soon as the database answers this worker.
        """
        call = {"thread": thread, "call_key": call_key, "owner": owner}
        try:
            holder, at = await self._insert(call)
        except StoreUnavailable:
            self._doubtful.append(call)
            raise
        except asyncio.CancelledError:
            with suppress(StoreError):
                await self.release(thread, call_key, owner=owner)
            raise
        return SpentCall(mine=holder == owner, owner=holder, at=datetime.fromtimestamp(at / 1000, UTC))

    async def _insert(self, call: dict[str, str]) -> tuple[str, int]:
        if doubtful := self._doubtful.copy():
            await self._release(doubtful)
            self._doubtful = [call for call in self._doubtful if call not in doubtful]
        holder, at = await self._database.row(_SPEND, {**call, "at": time.time_ns() // 1_000_000})
        return holder, at

    async def release(self, thread: str, call_key: str, *, owner: str) -> None:
        """Give back a call that certainly did not begin. Does nothing where it is not this owner's."""
        await self._release([{"thread": thread, "call_key": call_key, "owner": owner}])

    async def _release(self, calls: list[dict[str, str]]) -> None:
        async def delete(connection: AsyncConnection) -> None:
            await connection.execute(_RELEASE, calls)

        await self._database.run(delete)

    async def delete_all(self, thread: str) -> None:
        """Forget every call of the thread: from now on nothing keeps them from being made again."""

        async def delete(connection: AsyncConnection) -> None:
            await connection.execute(_DELETE, {"thread": thread})

        await self._database.run(delete)
