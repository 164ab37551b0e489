"""The history of a thread as it grows: read by long polls, which cost the thread nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHistoryEventAsyncIterator
from temporalio.service import RPCError, RPCStatusCode

from client.rpc import within

_LONG_POLL = timedelta(seconds=60)
"""The server itself answers with an empty page after about 20 s."""

_CLOSED = frozenset(
    {
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT,
    }
)


@dataclass(frozen=True)
class Bookmark:
    """A place in the history: an execution of the workflow, and the server's token for what comes next."""

    execution: str | None = None
    token: bytes | None = None


@dataclass(frozen=True)
class Page:
    """What a poll brought. A thread changes only when a workflow task completes."""

    changed: bool
    """A workflow task completed, or the workflow ended."""
    quiet: bool
    """Nothing at all happened for the length of a poll."""
    closed: bool
    """The workflow ended and did not continue as new."""


class Tail:
    """Reads on from a bookmark, across continue-as-new."""

    def __init__(self, client: Client, workflow_id: str, start: Bookmark) -> None:
        self._client = client
        self._workflow_id = workflow_id
        self._pages = self._open(start)
        self.bookmark = start

    async def next(self) -> Page:
        """The next page; waits up to 20 s for one."""
        events = await self._events()
        following = _continued_as(events)
        if following is not None:
            self._go_to(Bookmark(execution=following))
        else:
            self.bookmark = Bookmark(execution=self.bookmark.execution, token=self._pages.next_page_token)
        return Page(
            changed=any(_changes(event) for event in events),
            quiet=not events,
            closed=following is None and self._pages.next_page_token is None,
        )

    async def _events(self) -> Sequence[HistoryEvent]:
        async with within(patience=_LONG_POLL.total_seconds()):
            try:
                await self._pages.fetch_next_page()
            except RPCError as problem:
                if problem.status not in {RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.NOT_FOUND} or self._is_at_start:
                    raise
                self._go_to(Bookmark())  # that execution was reset or deleted meanwhile: read the one there is
                await self._pages.fetch_next_page()
        return self._pages.current_page or ()

    @property
    def _is_at_start(self) -> bool:
        return self.bookmark == Bookmark()

    def _go_to(self, bookmark: Bookmark) -> None:
        self.bookmark = bookmark
        self._pages = self._open(bookmark)

    def _open(self, bookmark: Bookmark) -> WorkflowHistoryEventAsyncIterator:
        handle = self._client.get_workflow_handle(self._workflow_id, run_id=bookmark.execution)
        return handle.fetch_history_events(wait_new_event=True, next_page_token=bookmark.token, rpc_timeout=_LONG_POLL)


def _continued_as(events: Sequence[HistoryEvent]) -> str | None:
    if events and events[-1].event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
        return events[-1].workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    return None


def _changes(event: HistoryEvent) -> bool:
    return event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED or event.event_type in _CLOSED
