"""What the Store holds of the sessions of threads: older events, in segments, and values too large for history."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agentvisor.host.store import Blobs
from workflows.cuts import Place, missing, whole
from workflows.messages import BlobRef, JsonObject


class StoredEvents:
    """Of all threads of one Temporal namespace. Every method raises StoreError.

    Segments are a chain, the newest first: each names the one before it.
    """

    def __init__(self, blobs: Blobs, *, namespace: str) -> None:
        self._blobs = blobs
        self._namespace = namespace

    async def put_segment(self, thread_id: str, events: Sequence[JsonObject], *, before: str | None) -> str:
        """Keep events that follow the segment `before`; their digest. To do it twice is as good as once."""
        segment = {"before": before, "events": list(events)}
        return (await self._blobs.put(self._owner(thread_id), segment)).digest

    async def older(self, thread_id: str, digest: str) -> list[JsonObject]:
        """All events up to the end of this segment, from the beginning of the session, without values cut out."""
        segments: list[list[JsonObject]] = []
        before: str | None = digest
        while before is not None:
            segment = await self._blobs.get(self._owner(thread_id), before)
            segments.append(segment["events"])
            before = segment["before"]
        return [event for events in reversed(segments) for event in events]

    async def put_values(self, thread_id: str, values: Mapping[Place, Any]) -> dict[Place, BlobRef]:
        """Keep values that are cut out of an event."""
        refs = await self._blobs.put_all(self._owner(thread_id), list(values.values()))
        return {place: BlobRef(digest=ref.digest, size=ref.size) for place, ref in zip(values, refs, strict=True)}

    async def values(self, thread_id: str, digests: Collection[str]) -> dict[str, Any]:
        """Values by digest."""
        return await self._blobs.get_all(self._owner(thread_id), digests) if digests else {}

    async def whole(self, thread_id: str, events: Sequence[JsonObject]) -> list[JsonObject]:
        """The events with all values that were cut out of them."""
        digests = {digest for event in events for digest in missing(event).values()}
        if not digests:
            return list(events)
        values = await self.values(thread_id, digests)
        return [whole(event, values) for event in events]

    def _owner(self, thread_id: str) -> str:
        return f"{self._namespace}/{thread_id}"
