"""The session of a thread: its events, and the state that follows from them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic import BaseModel, Field

from workflows import door
from workflows.approvals import Refused
from workflows.event_log import EventLog
from workflows.messages import JsonObject, as_object

DELETED_STATE = "deletedState"
"""Key in an event's customMetadata: the state keys that this event deletes (ADK has no such thing)."""


class SessionState(BaseModel):
    """One session. Changed only through its methods."""

    initial_state: JsonObject = {}
    state: JsonObject = {}
    log: EventLog = Field(default_factory=EventLog)
    revision: int = 0
    later: list[JsonObject] = []
    """Events from outside that wait for the end of the running leg."""

    def append(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Add events to the session and apply their state."""
        events = list(events)
        if not events:
            return
        self.log.append(events)
        self.revision += 1
        for event in events:
            self._apply(event)

    def append_from_outside(self, events: list[JsonObject], *, leg_runs: bool) -> None:
        """Add events that no leg made; after the leg's own while one runs."""
        if leg_runs:
            self.later += events
            self.revision += 1
        else:
            self.append(events)

    def put_state(self, values: JsonObject, delete: Iterable[str], *, event_id: str, at: float, leg_runs: bool) -> None:
        """Delete, then set state keys, as an event of the session. Refused where the values are no state."""
        door.check_state(values)
        # While a leg runs nobody knows which keys there will be after it.
        deleted = [key for key in dict.fromkeys(delete) if key not in values and (leg_runs or key in self.state)]
        door.check_size(deleted, what="list of deleted keys", kind="state-refused")
        kept = {key: self.state[key] for key in self.state.keys() - set(deleted)}
        door.check_size({**kept, **values}, what="state", kind="state-refused")
        event: JsonObject = {
            "id": event_id,
            "invocationId": f"state-{event_id}",
            "author": "user",
            "timestamp": at,
            "actions": {"stateDelta": values},
        }
        if deleted:
            event["customMetadata"] = {DELETED_STATE: deleted}
        self.append_from_outside([event], leg_runs=leg_runs)

    def check_revision(self, expected: int | None) -> None:
        """Refused unless the thread is where the sender thinks."""
        if expected is not None and expected != self.revision:
            raise Refused(
                "stale-revision", f"The thread is at revision {self.revision}, not {expected}. Read it again and retry."
            )

    def clear(self) -> None:
        """Forget events and state."""
        self.log.clear()
        self.initial_state, self.state, self.later = {}, {}, []
        self.revision += 1

    def _apply(self, event: Mapping[str, Any]) -> None:
        delta = as_object(as_object(event.get("actions")).get("stateDelta"))
        self.state.update({key: value for key, value in delta.items() if not key.startswith("temp:")})
        deleted = as_object(event.get("customMetadata")).get(DELETED_STATE)
        for key in cast("list[Any]", deleted) if isinstance(deleted, list) else ():
            self.state.pop(str(key), None)
