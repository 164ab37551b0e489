"""A database that answers in bounded time, or is said not to."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from sqlalchemy import TextClause
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from agentvisor.host.store.errors import StoreError, StoreMisconfigured, StoreUnavailable

T = TypeVar("T")
Work = Callable[[AsyncConnection], Awaitable[T]]

_LOOK = "Look at the database that AGENTVISOR_STORE names; the worker goes on when it is back."
_MAX_TEXT = 200
_SETTINGS_ARE_WRONG = ("28", "3D", "42501")
"""Beginnings of SQLSTATE: who we are, which database, what we may do."""


class Database:
    """One database, prepared before its first use and again after every failure.

    All work must be safe to do twice. Used by one event loop.
    """

    def __init__(self, engine: AsyncEngine, *, prepare: Work[None], patience: float) -> None:
        self._engine = engine
        self._prepare = prepare
        self._patience = patience
        self._prepared = False
        self._driver: Any = None
        self._preparing = asyncio.Lock()
        self._left: set[asyncio.Task[Any]] = set()

    async def run(self, work: Work[T], *, seconds: float | None = None) -> T:
        """The result of `work`. `seconds`: how long it may take, at least the patience of this database.

        Raises StoreUnavailable, StoreMisconfigured, and any StoreError of `work`. Where the caller is cancelled, what
        has begun still ends first, as far as time allows: whatever is asked afterwards comes after it.
        """
        return await self._in_time(self._answer(work), max(seconds or 0.0, self._patience))

    async def row(self, statement: TextClause, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """The one row that a statement returns. Raises as `run` does."""
        return await self._in_time(self._row(statement, values), self._patience)

    async def _in_time(self, work: Coroutine[Any, Any, T], limit: float) -> T:
        task = asyncio.create_task(work)
        deadline = task.get_loop().time() + limit
        try:
            await _wait(task, deadline)
        finally:
            self._leave(task)
        if not task.done():
            self._prepared = False
            raise StoreUnavailable(f"The Store did not answer within {limit:g} s. {_LOOK}")
        try:
            return task.result()
        except (SQLAlchemyError, sqlite3.Error, OSError) as problem:  # TimeoutError is an OSError
            self._prepared = False
            raise _translated(problem) from problem

    async def ready(self) -> None:
        """Reach and prepare it. Raises as `run` does."""
        await self.run(_nothing)

    async def close(self) -> None:
        """Close its connections, in bounded time as well."""
        closing = asyncio.create_task(self._close())
        try:
            await _wait(closing, closing.get_loop().time() + 2 * self._patience)
        finally:
            self._leave(closing)

    async def _close(self) -> None:
        if self._left:
            await asyncio.wait(self._left, timeout=self._patience)
        await self._engine.dispose()

    async def _answer(self, work: Work[T]) -> T:
        await self._ensure_prepared()
        try:
            return await self._attempt(work)
        except DBAPIError as problem:
            if not problem.connection_invalidated:
                raise
        return await self._attempt(work)  # the connection had died since its last use

    async def _row(self, statement: TextClause, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Where the driver is SQLite's, straight to its thread: a connection of SQLAlchemy's goes there four times."""
        await self._ensure_prepared()
        if self._driver is not None:
            try:
                rows = await self._driver.execute_fetchall(statement.text, values)
            except ValueError:
                pass  # SQLAlchemy has closed this connection since, and makes another one
            else:
                (row,) = rows
                return tuple(row)
        return await self._answer(lambda connection: _only_row(connection, statement, values))

    async def _ensure_prepared(self) -> None:
        async with self._preparing:
            if not self._prepared:
                await self._attempt(self._prepare)
                self._driver = await self._attempt(_sqlite_driver)
                self._prepared = True

    async def _attempt(self, work: Work[T]) -> T:
        async with self._engine.connect() as connection:
            return await work(connection)

    def _leave(self, task: asyncio.Task[Any]) -> None:
        """Nobody waits for it any longer: a database that hangs can hang the cancellation, too."""
        task.add_done_callback(_look_at)
        if task.done():
            return
        self._left.add(task)
        task.add_done_callback(self._left.discard)
        if self._engine.dialect.name != "sqlite":  # there a statement ends by itself; one that is cut keeps its lock
            task.cancel()


async def _only_row(connection: AsyncConnection, statement: TextClause, values: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple((await connection.execute(statement, values)).one())


async def _sqlite_driver(connection: AsyncConnection) -> Any:
    """The one connection to a SQLite file, which takes statements of several tasks; None for other databases."""
    if connection.dialect.name != "sqlite":
        return None
    return (await connection.get_raw_connection()).driver_connection


async def _nothing(_connection: AsyncConnection) -> None:
    pass


async def _wait(task: asyncio.Task[Any], deadline: float) -> None:
    """Until the task is done or its time is up. A cancellation takes effect after that."""
    loop = asyncio.get_running_loop()
    try:
        await asyncio.wait({task}, timeout=deadline - loop.time())
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=max(0.0, deadline - loop.time()))
        raise


def _look_at(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # else asyncio reports it as never retrieved


def _translated(problem: Exception) -> StoreError:
    cause = getattr(problem, "orig", None) or problem
    lines = str(cause).rpartition(">: ")[2].splitlines()  # SQLAlchemy puts the driver's class before its text
    text = lines[0][:_MAX_TEXT] if lines else type(cause).__name__
    state = str(getattr(cause, "sqlstate", None) or "")
    if state.startswith(_SETTINGS_ARE_WRONG) or "file is not a database" in text:
        return StoreMisconfigured(f"The Store cannot be used: {text}. Correct AGENTVISOR_STORE, or what it names.")
    return StoreUnavailable(f"The Store does not work: {text}. {_LOOK}")
