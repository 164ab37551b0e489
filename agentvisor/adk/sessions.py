"""Sessions as live ADK objects, kept at the position the thread knows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, cast

import structlog
from google.adk.events import Event
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from pydantic import ValidationError

from agentvisor.adk.failures import error_text
from agentvisor.adk.json_values import flaw
from agentvisor.channel import Refused
from agentvisor.protocol import Base, JsonObject

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

CACHED_EVENTS = 50_000
"""A live event takes about 5 kB."""
TEMP = "temp:"
DELETED_STATE = "deletedState"
"""Key in an event's custom metadata: the state keys that the thread deleted with it. ADK has no such thing."""


class StateRefused(ValueError):
    """A value that cannot be stored was written to the session state."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"State {key!r} cannot be stored: {reason}. Write JSON values: text, numbers, lists, objects.")


class LiveSession:
    """One thread's session. While a leg runs, `on_event` sees every event that is stored."""

    def __init__(self, *, app: str, principal: str, thread_id: str, state: JsonObject) -> None:
        self.session = Session(id=thread_id, app_name=app, user_id=principal, state=dict(state))
        self.on_event: Callable[[Event], None] | None = None

    @property
    def position(self) -> Base:
        events = self.session.events
        return Base(count=len(events), head=events[-1].id if events else "")

    def extend(self, events: Sequence[JsonObject]) -> list[Event]:
        """Take over events that are stored already: state is replayed, nobody is told."""
        loaded = [_read(event) for event in events]
        for event in loaded:
            self.session.events.append(event)
            self.session.state.update(event.actions.state_delta)
            for key in _deleted(event):
                self.session.state.pop(key, None)
            self.session.last_update_time = event.timestamp
        return loaded

    def put_temp(self, values: JsonObject) -> None:
        """Give a run its `temp:` values."""
        self.session.state.update({key: value for key, value in values.items() if key.startswith(TEMP)})

    def take_temp(self) -> JsonObject:
        """Take the `temp:` values out again: they belong to a run, never to the session."""
        state = self.session.state
        return {key: state.pop(key) for key in [key for key in state if key.startswith(TEMP)]}


class LiveSessions(BaseSessionService):
    """The session service of every runner in this guest, and the cache of sessions between legs."""

    def __init__(self, cached_events: int = CACHED_EVENTS) -> None:
        self._running: dict[str, LiveSession] = {}
        self._kept: OrderedDict[str, LiveSession] = OrderedDict()
        self._room = cached_events
        self._count = 0

    def take(self, *, app: str, principal: str, thread_id: str) -> LiveSession | None:
        """The session of this thread if it is here. It is back in the cache only after `keep`."""
        live = self._kept.pop(thread_id, None)
        if live is None:
            return None
        self._count -= len(live.session.events)
        same = live.session.app_name == app and live.session.user_id == principal
        return live if same else None

    def keep(self, live: LiveSession) -> None:
        """Keep a session whose thread knows all its events; the longest unused make room."""
        live.on_event = None
        self._kept[live.session.id] = live
        self._count += len(live.session.events)
        while self._count > self._room:
            _, oldest = self._kept.popitem(last=False)
            self._count -= len(oldest.session.events)

    def begin(self, live: LiveSession) -> None:
        """Runners find this session from now on."""
        self._running[live.session.id] = live

    def end(self, live: LiveSession) -> None:
        """Runners find it no more."""
        live.on_event = None
        if self._running.get(live.session.id) is live:
            del self._running[live.session.id]

    # ---- BaseSessionService ----------------------------------------------------------------------------------------

    async def get_session(
        self,
        *,
        app_name: str,  # noqa: ARG002 - the base class names them
        user_id: str,  # noqa: ARG002
        session_id: str,
        config: GetSessionConfig | None = None,  # noqa: ARG002
    ) -> Session | None:
        live = self._running.get(session_id)
        return live.session if live else None

    async def append_event(self, session: Session, event: Event) -> Event:
        if event.partial:
            return event
        _refuse_unfit_state(session, event)
        _keep_to_the_log(event)
        event = await super().append_event(session, event)
        session.last_update_time = event.timestamp
        live = self._running.get(session.id)
        if live is not None and live.session is session and live.on_event:
            live.on_event(event)
        return event

    async def create_session(self, **_: Any) -> Session:
        raise NotImplementedError("A thread has one session. Start another thread for another session.")

    async def list_sessions(self, **_: Any) -> ListSessionsResponse:
        raise NotImplementedError("Agent code sees the session of its own thread only.")

    async def delete_session(self, **_: Any) -> None:
        raise NotImplementedError("A session ends with its thread. Close the thread.")


def _deleted(event: Event) -> list[Any]:
    deleted: Any = (event.custom_metadata or {}).get(DELETED_STATE)
    return cast("list[Any]", deleted) if isinstance(deleted, list) else []


def _read(event: JsonObject) -> Event:
    try:
        return Event.model_validate(event)
    except ValidationError as problem:
        text = (
            f"The event {event.get('id')!r} of the session is no ADK event ({problem.error_count()} errors), so no run "
            "can go on. Clear the thread, or create another one."
        )
        raise Refused("session-unreadable", text) from problem


def _keep_to_the_log(event: Event) -> None:
    """The text of an exception that a node raised: where the node is tried again, the event stays in the session."""
    if not event.error_code or not event.error_message or event.content is not None:
        return
    told = error_text(event.error_code, event.error_message)
    if told != event.error_message:
        log.warning("node.failed", agent=event.author, kind=event.error_code, cause=event.error_message)
        event.error_message = told


def _refuse_unfit_state(session: Session, event: Event) -> None:
    for key, value in event.actions.state_delta.items():
        if not key.startswith(TEMP) and (reason := flaw(value)):
            session.state.pop(key, None)
            raise StateRefused(key, reason)
