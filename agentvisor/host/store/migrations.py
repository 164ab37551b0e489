"""The schema of the Store, and the way to it. A migration that was released never changes; new ones are added below."""

from __future__ import annotations

import time
from collections.abc import Sequence

from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncConnection

from agentvisor.host.store.errors import StoreTooNew

# Times are milliseconds since 1970, UTC. Thread, digest, key and owner are opaque text.
_BLOBS = """
    CREATE TABLE agentvisor_blobs (
        thread TEXT NOT NULL, digest TEXT NOT NULL, size BIGINT NOT NULL, data {bytes} NOT NULL,
        stored_at BIGINT NOT NULL, PRIMARY KEY (thread, digest)
    )"""
_SPENT_CALLS = """
    CREATE TABLE agentvisor_spent_calls (
        thread TEXT NOT NULL, call_key TEXT NOT NULL, owner TEXT NOT NULL,
        spent_at BIGINT NOT NULL, PRIMARY KEY (thread, call_key)
    )"""
_FIRST = {
    "sqlite": (_BLOBS.format(bytes="BLOB"), _SPENT_CALLS),
    "postgresql": (
        _BLOBS.format(bytes="BYTEA"),
        "ALTER TABLE agentvisor_blobs ALTER COLUMN data SET STORAGE EXTERNAL",  # it is compressed already
        _SPENT_CALLS,
    ),
}
_MIGRATIONS = (_FIRST,)
_KNOWN = len(_MIGRATIONS)

_SCHEMA = "CREATE TABLE agentvisor_schema (version INTEGER PRIMARY KEY, migrated_at BIGINT NOT NULL)"
_LOCK = {
    "sqlite": ("BEGIN IMMEDIATE",),
    "postgresql": ("BEGIN", "SELECT pg_advisory_xact_lock(4702394921427289928)"),
}


async def migrate(connection: AsyncConnection) -> None:
    """Bring the schema up to this version; of several workers that start at once, one does it. Raises StoreTooNew.

    A database that is up to date is only read, so that a worker needs no right to create tables there.
    """
    if await connection.run_sync(_version) == _KNOWN:
        return
    try:
        await _execute(connection, _LOCK[connection.dialect.name])
        await _migrate_from(connection, await connection.run_sync(_version))
        await _execute(connection, ["COMMIT"])
    except BaseException:
        await connection.invalidate()  # with its transaction
        raise


async def _migrate_from(connection: AsyncConnection, version: int) -> None:
    if version == 0:
        await _execute(connection, [_SCHEMA])
    for number, migration in enumerate(_MIGRATIONS[version:], version + 1):
        await _execute(connection, migration[connection.dialect.name])
        row = {"version": number, "at": time.time_ns() // 1_000_000}
        await connection.execute(text("INSERT INTO agentvisor_schema VALUES (:version, :at)"), row)


def _version(connection: Connection) -> int:
    if not inspect(connection).has_table("agentvisor_schema"):
        return 0
    version = connection.execute(text("SELECT max(version) FROM agentvisor_schema")).scalar_one() or 0
    if version > _KNOWN:
        raise StoreTooNew(version, known=_KNOWN)
    return version


async def _execute(connection: AsyncConnection, statements: Sequence[str]) -> None:
    for statement in statements:
        await connection.exec_driver_sql(statement)
