"""The port to the older events of threads: they are asked for by query and put into the Store."""

from __future__ import annotations

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from activities.caller import calling_thread
from activities.questions import AskedThreads
from activities.thread_session import events_between
from agentvisor.host.store import StoreError
from agentvisor.host.stored_events import StoredEvents
from client.errors import ThreadsError
from workflows.event_log import START
from workflows.messages import KeepEvents, KeptEvents
from workflows.ports import EventActivities

SEGMENT_BYTES = 4 * 1024 * 1024
"""JSON text of one segment, about; the Store takes much more, but one is read as a whole."""


class StoredEventActivities(EventActivities):
    """Keeps events in the Store of this worker."""

    def __init__(self, client: Client, stored: StoredEvents, *, task_queue: str) -> None:
        self._threads = AskedThreads(client, task_queue=task_queue)
        self._stored = stored

    @activity.defn
    async def keep_events(self, request: KeepEvents) -> KeptEvents:
        thread = self._threads.questions(calling_thread())
        kept = request.kept
        try:
            async for events, end in events_between(thread, kept.end if kept else START, request.until, SEGMENT_BYTES):
                before = kept.digest if kept else None
                kept = KeptEvents(
                    digest=await self._stored.put_segment(thread.thread_id, events, before=before), end=end
                )
        except (StoreError, ThreadsError) as problem:
            raise ApplicationError(str(problem), type=problem.kind) from problem
        if kept is None or kept.end.count != request.until:
            raise ApplicationError("The session is not what it was.", type="session-changed", non_retryable=True)
        return kept
