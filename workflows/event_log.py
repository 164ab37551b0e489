"""The events of a thread: text in memory; what an execution begins with is compressed; what is old is in the Store."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from workflows.messages import JsonObject, KeptEvents, Position

START = Position()
_WORTH_PACKING = 64 * 1024


class EventLog(BaseModel):
    """The events of one session, oldest first, without those that are in the Store.

    `kept`: where those are. `packed`: one piece per earlier execution that could not keep its events there (base85 of
    zlib of a JSON array), opaque while the workflow runs. `recent`: JSON text of each event since; text costs a fifth
    of the memory of parsed objects. Positions count from the beginning of the session.
    """

    kept: KeptEvents | None = None
    packed: list[str] = []
    packed_end: Position = START
    recent: list[str] = []
    end: Position = START

    @property
    def start(self) -> Position:
        """The position of the first event that is here."""
        return START if self.kept is None else self.kept.end

    @property
    def is_small(self) -> bool:
        """Whether all that is here has less text than is worth compressing by itself."""
        return not self.packed and sum(map(len, self.recent)) < _WORTH_PACKING

    def append(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Add whole events; each has a string `id`."""
        count, head = self.end.count, self.end.head
        for event in events:
            self.recent.append(_text(event))
            count, head = count + 1, event["id"]
        self.end = Position(count=count, head=head)

    def pack(self) -> None:
        """Compress what is recent; for continue-as-new. A little text is left: it is compressed with the thread."""
        if not self.recent or (self.is_small and _encodable(self.recent)):
            return
        text = "[" + ",".join(self.recent) + "]"
        piece = zlib.compress(text.encode("utf-8", "surrogatepass"), 6)
        self.packed.append(base64.b85encode(piece).decode("ascii"))
        self.recent, self.packed_end = [], self.end

    def keep(self, kept: KeptEvents) -> None:
        """Let go of the events that are in the Store now. Does nothing where they are not this session's."""
        if not self.knows(kept.end):
            return
        events = self.slice(kept.end.count, self.end.count)
        self.kept, self.packed, self.packed_end = kept, [], kept.end
        self.recent = [_text(event) for event in events]

    def clear(self) -> None:
        """Forget every event."""
        self.kept, self.packed, self.packed_end, self.recent, self.end = None, [], START, [], START

    def slice(self, first: int, last: int) -> list[JsonObject]:
        """The events with the positions first..last-1, as far as they are here."""
        at = self.packed_end.count
        if first >= at:
            return [json.loads(text) for text in self.recent[first - at : max(0, last - at)]]
        at = self.start.count
        return self._all()[max(0, first - at) : max(0, last - at)]

    def page(self, since: Position, max_bytes: int) -> tuple[Position, list[JsonObject]]:
        """Events after `since`, and the position they begin at: `since` where the log knows it, else its start.

        At most `max_bytes` of JSON text, but at least one event.
        """
        base = since if self.knows(since) else self.start
        if base == self.end:
            return base, []
        events = self.slice(base.count, self.end.count)
        return base, events[: _how_many(events, max_bytes)]

    def tail(self, max_bytes: int) -> int:
        """The first position after which at most `max_bytes` of JSON text are left; one event is always left."""
        size, first = 0, self.end.count
        for event in reversed(self.slice(self.start.count, self.end.count)):
            size += len(_text(event))
            if size > max_bytes and first < self.end.count:
                break
            first -= 1
        return first

    def knows(self, position: Position) -> bool:
        """Whether the session is, or was, at this position, as far as can be told from here."""
        if position in (self.end, self.packed_end, self.start):
            return True
        if not self.start.count < position.count <= self.end.count:
            return False
        return self.slice(position.count - 1, position.count)[0]["id"] == position.head

    def _all(self) -> list[JsonObject]:
        events: list[JsonObject] = []
        for piece in self.packed:
            events += json.loads(zlib.decompress(base64.b85decode(piece)).decode("utf-8", "surrogatepass"))
        return events + [json.loads(text) for text in self.recent]


def _text(event: Mapping[str, Any]) -> str:
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False)


def _encodable(texts: Iterable[str]) -> bool:
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


def _how_many(events: Sequence[Mapping[str, Any]], max_bytes: int) -> int:
    size = 0
    for n, event in enumerate(events):
        size += len(json.dumps(event, separators=(",", ":")))
        if size > max_bytes and n:
            return n
    return len(events)
