"""The events of a thread: text in memory, compressed where an execution of the workflow ends and the next begins."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from workflows.messages import JsonObject, Position

START = Position()


class EventLog(BaseModel):
    """All events of one session, oldest first.

    `packed`: one piece per finished execution (base85 of zlib of a JSON array), opaque while the workflow runs.
    `recent`: JSON text of each event since; text costs a fifth of the memory of parsed objects.
    """

    packed: list[str] = []
    packed_end: Position = START
    recent: list[str] = []
    end: Position = START

    def append(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Add whole events; each has a string `id`."""
        count, head = self.end.count, self.end.head
        for event in events:
            self.recent.append(json.dumps(event, separators=(",", ":"), ensure_ascii=False))
            count, head = count + 1, event["id"]
        self.end = Position(count=count, head=head)

    def pack(self) -> None:
        """Compress what is recent; for continue-as-new."""
        if self.recent:
            text = "[" + ",".join(self.recent) + "]"
            piece = zlib.compress(text.encode("utf-8", "surrogatepass"), 6)
            self.packed.append(base64.b85encode(piece).decode("ascii"))
        self.recent, self.packed_end = [], self.end

    def clear(self) -> None:
        """Forget every event."""
        self.packed, self.packed_end, self.recent, self.end = [], START, [], START

    def slice(self, first: int, last: int) -> list[JsonObject]:
        """The events with the positions first..last-1, counted from the beginning."""
        if first >= self.packed_end.count:
            at = self.packed_end.count
            return [json.loads(text) for text in self.recent[first - at : last - at]]
        return self._all()[first:last]

    def page(self, since: Position, max_bytes: int) -> tuple[Position, list[JsonObject]]:
        """Events after `since`, and the position they begin at: `since` where the log knows it, else the start.

        At most `max_bytes` of JSON text, but at least one event.
        """
        base = since if self._knows(since) else START
        if base == self.end:
            return base, []
        events = self.slice(base.count, self.end.count)
        return base, events[: _how_many(events, max_bytes)]

    def _knows(self, position: Position) -> bool:
        if position in (self.end, self.packed_end, START):
            return True
        if not 0 < position.count <= self.end.count:
            return False
        return self.slice(position.count - 1, position.count)[0]["id"] == position.head

    def _all(self) -> list[JsonObject]:
        events: list[JsonObject] = []
        for piece in self.packed:
            events += json.loads(zlib.decompress(base64.b85decode(piece)).decode("utf-8", "surrogatepass"))
        return events + [json.loads(text) for text in self.recent]


def _how_many(events: Sequence[Mapping[str, Any]], max_bytes: int) -> int:
    size = 0
    for n, event in enumerate(events):
        size += len(json.dumps(event, separators=(",", ":")))
        if size > max_bytes and n:
            return n
    return len(events)
