"""Values too large for a history, each owned by one thread."""

from __future__ import annotations

import asyncio
import hashlib
import time
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pydantic_core
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from agentvisor.host.store.database import Database
from agentvisor.host.store.errors import BlobDamaged, BlobNotFound, BlobRefused, BlobTooLarge

MAX_BYTES = 64 * 1024 * 1024
"""Largest value, as JSON."""
_SECONDS = 60.0
_LEVEL = 6

_PUT = text(
    "INSERT INTO agentvisor_blobs (thread, digest, size, data, stored_at) "
    "VALUES (:thread, :digest, :size, :data, :at) ON CONFLICT (thread, digest) DO NOTHING"
)
_GET = text("SELECT digest, data FROM agentvisor_blobs WHERE thread = :thread AND digest = :digest")
_DELETE = text("DELETE FROM agentvisor_blobs WHERE thread = :thread")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobRef:
    """What a history keeps of a value: SHA-256 of its JSON text, and how many bytes that has."""

    digest: str
    size: int


class Blobs:
    """The blobs of all threads. `thread`: what identifies the owner; nobody reads another one's blobs.

    Every method raises StoreUnavailable and StoreMisconfigured.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, thread: str, value: Any) -> BlobRef:
        """Keep a JSON value. The same value of the same thread is kept once. Raises BlobRefused, BlobTooLarge."""
        (ref,) = await self.put_all(thread, [value])
        return ref

    async def put_all(self, thread: str, values: Sequence[Any]) -> list[BlobRef]:
        """Keep these values, as `put`; what each is kept as, in their order."""
        packed = [await asyncio.to_thread(_packed, value) for value in values]
        at = time.time_ns() // 1_000_000
        rows = [
            {"thread": thread, "digest": ref.digest, "size": ref.size, "data": data, "at": at} for ref, data in packed
        ]

        async def insert(connection: AsyncConnection) -> None:
            for row in rows:
                await connection.execute(_PUT, row)

        await self._database.run(insert, seconds=_SECONDS)
        return [ref for ref, _ in packed]

    async def get(self, thread: str, digest: str) -> Any:
        """The value as it was put. Raises BlobNotFound, also for another thread's blob, and BlobDamaged."""
        return (await self.get_all(thread, [digest]))[digest]

    async def get_all(self, thread: str, digests: Collection[str]) -> dict[str, Any]:
        """These values, by digest. Raises as `get`."""

        async def select(connection: AsyncConnection) -> dict[str, bytes]:
            rows = [
                (await connection.execute(_GET, {"thread": thread, "digest": digest})).one_or_none()
                for digest in dict.fromkeys(digests)
            ]
            return {row.digest: row.data for row in rows if row is not None}

        found = await self._database.run(select, seconds=_SECONDS)
        if lost := set(digests) - set(found):
            raise BlobNotFound(thread, min(lost))
        return {digest: await _read(thread, digest, data) for digest, data in found.items()}

    async def delete_all(self, thread: str) -> None:
        """Delete every blob of the thread."""

        async def delete(connection: AsyncConnection) -> None:
            await connection.execute(_DELETE, {"thread": thread})

        await self._database.run(delete, seconds=_SECONDS)


async def _read(thread: str, digest: str, data: bytes) -> Any:
    try:
        return await asyncio.to_thread(_unpacked, digest, data)
    except (ValueError, zlib.error) as problem:
        raise BlobDamaged(thread, digest) from problem


def _packed(value: Any) -> tuple[BlobRef, bytes]:
    try:
        plain = pydantic_core.to_json(value, inf_nan_mode="constants")
        same = pydantic_core.from_json(plain, allow_inf_nan=False) == value
    except (ValueError, RecursionError) as problem:
        raise BlobRefused(str(problem)[:200]) from problem
    if not same:
        raise BlobRefused("it holds what JSON has no form for")
    if len(plain) > MAX_BYTES:
        raise BlobTooLarge(len(plain), limit=MAX_BYTES)
    return BlobRef(digest=hashlib.sha256(plain).hexdigest(), size=len(plain)), zlib.compress(plain, _LEVEL)


def _unpacked(digest: str, data: bytes) -> Any:
    """Raises ValueError or zlib.error where it is not what was packed."""
    plain = zlib.decompressobj().decompress(data, MAX_BYTES + 1)
    if hashlib.sha256(plain).hexdigest() != digest:
        raise ValueError(digest)
    return pydantic_core.from_json(plain)
